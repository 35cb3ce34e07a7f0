#include "oracle/judge/verdict.hpp"

#include <array>
#include <stdexcept>

namespace ringproof::oracle {

namespace {

struct Word {
  Verdict verdict;
  std::string_view word;
  int exit_code;
};

/// Worst first.
constexpr std::array<Word, 6> kWords{{{Verdict::bad_input, "BAD INPUT", 2},
                                      {Verdict::fail, "FAIL", 1},
                                      {Verdict::suspect, "SUSPECT", 4},
                                      {Verdict::undecided, "UNDECIDED", 3},
                                      {Verdict::pass, "PASS", 0},
                                      {Verdict::skipped, "SKIPPED", 77}}};

const Word& entry(Verdict verdict) {
  for (const Word& word : kWords) {
    if (word.verdict == verdict) return word;
  }
  throw std::logic_error("unknown verdict");
}

}  // namespace

std::string_view word(Verdict verdict) { return entry(verdict).word; }
int exit_code(Verdict verdict) { return entry(verdict).exit_code; }

Verdict worst(Verdict a, Verdict b) { return &entry(a) < &entry(b) ? a : b; }

Verdict worst(std::span<const Verdict> verdicts) {
  Verdict result = Verdict::skipped;
  for (const Verdict verdict : verdicts) result = worst(result, verdict);
  return result;
}

}  // namespace ringproof::oracle
