// ringproof-demo: the worked example certified, a real head judged, a planted fault explained.
//   ringproof-demo [example|head|fault]    all three parts, or one
// Everything printed is computed here and now; exit status 1 if anything is not as the text says.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string>

#include "oracle/report/report.hpp"
#include "tutorials/00_demo/example.hpp"
#include "tutorials/00_demo/real_head.hpp"

namespace {

using namespace ringproof;
using oracle::AnswerKind;
using oracle::Verdict;

constexpr int kRanks = 4;

/// One line about one judged tensor.
void print_answer(const oracle::Report& report, AnswerKind kind) {
  const oracle::AnswerReport* answer = report.find(kind);
  if (answer == nullptr) return;
  const oracle::TensorTally& tally = answer->tally;
  fmt::print("   {:<4} {}, {} of {} elements refused", name(kind), word(answer->verdict),
             tally.failed, tally.elements);
  if (tally.worst_element) {
    const oracle::Element& worst = *tally.worst_element;
    fmt::print("; worst error over bound {:.3g} at {}", worst.error_over_bound,
               oracle::place(worst.row, kind == AnswerKind::lse ? -1 : worst.column));
  }
  fmt::print("\n");
}

void print_report(const std::string& what, const demo::Judged& judged) {
  const oracle::Report& report = judged.report;
  fmt::print("   {}: {} under {} ({})\n", what, word(report.verdict), report.contract_name,
             report.contract_hash);
  print_answer(report, AnswerKind::out);
  print_answer(report, AnswerKind::lse);
}

bool print_example() {
  fmt::print("1. The document's example: one query, four keys in two blocks (claim C10)\n");
  fmt::print("   {:<6} {:<15} {:>8} {:>20} {:>28}\n", "block", "figure", "printed",
             "reference, binary64", "certified, 24 digits");
  bool all = true;
  for (const demo::Figure& figure : demo::worked_example()) {
    fmt::print("   {:<6} {:<15} {:>8} {:>20} {:>28}\n", figure.step, figure.what, figure.printed,
               fmt::format("{:.16g}", figure.computed),
               figure.certified ? figure.exact : "not certified");
    all = all && figure.certified;
  }
  fmt::print("   {}\n", all ? "Every exact value lies in an interval that rounds to its figure."
                            : "Some figure is NOT what its interval rounds to.");
  return all;
}

bool print_head() {
  fmt::print("2. Real heads: SmolLM2-135M, layer 12, 3 heads, 256 tokens, causal, bfloat16\n");
  const demo::Judged ring = demo::run_and_judge(demo::Ring::as_it_should_be, kRanks);
  print_report(fmt::format("the ring on {} ranks", kRanks), ring);
  fmt::print("   power: gain errors from {:.2g} on, lost probability from {:.2g} on are refused\n",
             ring.report.power.gain, ring.report.power.missing_mass_lse);
  const demo::Judged stranger = demo::judge_file(demo::stranger_path(), "", false);
  print_report("PyTorch's CPU flash kernel", stranger);
  return ring.report.verdict == Verdict::pass && stranger.report.verdict == Verdict::pass;
}

bool print_fault() {
  fmt::print("3. The same ring, but each block normalised and the blocks averaged\n");
  const demo::Judged judged = demo::run_and_judge(demo::Ring::averaging, kRanks);
  print_report("the averaging ring", judged);
  bool explained = false;
  for (const oracle::Explanation& one : judged.diagnosis.explanations) {
    if (one.id != "NORM-AVERAGE" || explained) continue;
    explained = true;
    fmt::print("   explained by {}: {}\n", one.id, one.words);
    fmt::print("   each of the {} elements lies in the bounds of that mistake\n", one.elements);
  }
  return judged.report.verdict == Verdict::fail && explained;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string part = argc > 1 ? argv[1] : "";
  if (argc > 2 || (part != "" && part != "example" && part != "head" && part != "fault")) {
    fmt::print(stderr, "usage: ringproof-demo [example|head|fault]\n");
    return 2;
  }
  bool as_expected = true;
  if (part.empty() || part == "example") as_expected = print_example() && as_expected;
  if (part.empty() || part == "head") as_expected = print_head() && as_expected;
  if (part.empty() || part == "fault") as_expected = print_fault() && as_expected;
  if (part.empty()) {
    fmt::print(
        "Read next: docs/math.md for why it works, reference/ring.hpp for the loop itself,\n"
        "docs/verdicts.md for what the words mean, docs/your-kernel.md for your own kernel.\n");
  }
  return as_expected ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "ringproof-demo: {}\n", error.what());
  return 2;
}
