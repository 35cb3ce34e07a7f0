// Running laws, shrinking, reporting (suite.hpp).
#include "tests/suite/suite.hpp"

#include <algorithm>
#include <filesystem>
#include <map>

#include "tests/suite/interrupt.hpp"

namespace ringproof::suite {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSize = 100;  // RapidCheck's size at which ranges are drawn in full

std::string_view text_of(Word word) {
  constexpr std::string_view kWords[] = {"PASS", "FAIL", "UNDECIDED", "SKIPPED"};
  return kWords[static_cast<std::size_t>(word)];
}

std::string padded(std::string_view text, std::size_t width) {
  std::string result(text);
  result.resize(std::max(width, result.size() + 1), ' ');
  return result;
}

bool chosen(const Law& law, const SuiteOptions& options) {
  return options.only.empty() ||
         std::any_of(options.only.begin(), options.only.end(),
                     [&](const std::string& word) { return law.id.starts_with(word); });
}

/// What breaks the law on this description, if anything does. Throws NotSupported, Interrupted.
std::optional<Failure> broken(Trial& trial, const Law& law, const Description& description) {
  check_interrupt();
  try {
    law.holds(trial, description);
    return std::nullopt;
  } catch (Failure& failure) {
    return std::move(failure);
  }
}

/// Follows the shrinks of a broken description as long as they break the law, too.
Failure smallest(Trial& trial, const Law& law, rc::Shrinkable<Description> description,
                 Failure failure, std::chrono::milliseconds limit) {
  const auto end = Clock::now() + limit;
  for (bool smaller = true; smaller;) {
    smaller = false;
    auto shrinks = description.shrinks();
    while (Clock::now() < end) {
      auto next = shrinks.next();
      if (!next) break;
      std::optional<Failure> found;
      try {
        found = broken(trial, law, next->value());
      } catch (const NotSupported&) {
        continue;
      }
      if (!found) continue;
      failure = std::move(*found);
      description = *next;
      smaller = true;
      break;
    }
  }
  return failure;
}

class Run {
 public:
  Run(Trial& trial, const SuiteOptions& options, std::ostream& stream)
      : trial_(trial), options_(options), stream_(stream) {}

  LawResult law(const Law& law) {
    LawResult result{.law = &law};
    const Features missing = trial_.sizes().support.missing(law.needs);
    if (!missing.empty()) {
      result.word = Word::skipped;
      result.reason = "needs " + suite::text_of(missing);
      return result;
    }
    trial_.judgements() = {};
    for (int n = 0; n < options_.count; ++n) {
      const std::uint64_t seed = options_.seed + static_cast<std::uint64_t>(n);
      const auto description = describe_case(law, trial_.sizes(), seed);
      try {
        if (auto failure = broken(trial_, law, description.value())) {
          result.word = Word::fail;
          result.reason = report(law, seed, description, std::move(*failure));
          ++result.problems;
          return result;
        }
        ++result.problems;
      } catch (const NotSupported& refusal) {
        ++result.unsupported;
        result.reason = "not supported together: " + suite::text_of(refusal.asked);
      }
    }
    const std::string undecided = trial_.judgements().never_decided();
    if (result.problems == 0) {
      result.word = Word::skipped;
    } else if (!undecided.empty()) {
      result.word = Word::undecided;
      result.reason = undecided;
    }
    return result;
  }

  void print(const LawResult& result) {
    stream_ << padded(text_of(result.word), 10) << padded(result.law->id, 26)
            << result.law->sentence << " (" << result.problems << " problems, " << result.calls
            << " calls)\n";
    if (result.word != Word::pass) stream_ << "          " << result.reason << '\n';
    stream_.flush();
  }

 private:
  /// The smallest failure in words, its case file, and the command that repeats it.
  std::string report(const Law& law, std::uint64_t seed,
                     const rc::Shrinkable<Description>& description, Failure failure) {
    if (options_.shrink.count() > 0) {
      failure = smallest(trial_, law, description, std::move(failure), options_.shrink);
    }
    const std::string indent = "\n          ";
    std::string text = failure.what + indent + "problem: " + suite::describe(failure.draft);
    if (!options_.folder.empty()) {
      std::filesystem::create_directories(options_.folder);
      const std::string path = options_.folder + "/" + std::string(law.id) + ".safetensors";
      trial_.write(path, failure.draft, failure.answer);
      text += indent + "case: " + path;
    }
    return text + indent + "repeat: " + options_.command + " --only " + std::string(law.id) +
           " --seed " + std::to_string(seed) + " --count 1";
  }

  Trial& trial_;
  const SuiteOptions& options_;
  std::ostream& stream_;
};

void summarise(const Outcome& outcome, const Trial& trial, std::ostream& stream) {
  std::map<Word, int> count;
  int problems = 0, unsupported = 0;
  for (const LawResult& result : outcome.laws) {
    ++count[result.word];
    problems += result.problems;
    unsupported += result.unsupported;
  }
  stream << outcome.laws.size() << " laws:";
  for (const Word word : {Word::pass, Word::fail, Word::undecided, Word::skipped}) {
    if (count[word] > 0) stream << ' ' << count[word] << ' ' << text_of(word);
  }
  stream << "; " << problems << " problems, " << outcome.calls << " calls";
  if (unsupported > 0) stream << ", " << unsupported << " refused by the kernel";
  const Features missing = trial.sizes().support.missing(Features::all());
  if (!missing.empty()) stream << "\nnot supported: " << suite::text_of(missing);
  stream << "\ncontract: " << trial.contract() << '\n';
  if (!outcome.missing_required.empty()) {
    stream << "FAIL      required, but not supported: " << suite::text_of(outcome.missing_required)
           << '\n';
  }
}

}  // namespace

rc::Shrinkable<Description> describe_case(const Law& law, const Sizes& sizes, std::uint64_t seed) {
  std::uint64_t mixed = seed;  // laws draw different problems from one seed
  for (const char letter : law.id)
    mixed = mixed * 1099511628211u + static_cast<unsigned char>(letter);
  const auto adjusted = rc::gen::map(descriptions(sizes), [&law, sizes](Description description) {
    if (law.adjust != nullptr) law.adjust(description);
    restrict(description, sizes);
    return description;
  });
  return adjusted(rc::Random(mixed), kSize);
}

Outcome run_suite(Trial& trial, const SuiteOptions& options, std::ostream& stream) {
  Outcome outcome;
  outcome.missing_required = trial.sizes().support.missing(options.require);
  std::vector<const Law*> laws;
  for (const Law& law : all_laws()) {
    if (chosen(law, options)) laws.push_back(&law);
  }
  Run run(trial, options, stream);
  const int all = static_cast<int>(laws.size());
  for (const Law* law : laws) {
    if (options.progress) options.progress(static_cast<int>(outcome.laws.size()), all, law->id);
    const long before = trial.calls();
    outcome.laws.push_back(run.law(*law));
    outcome.laws.back().calls = trial.calls() - before;
    if (options.progress) options.progress(all, all, {});
    run.print(outcome.laws.back());
  }
  outcome.calls = trial.calls();
  summarise(outcome, trial, stream);
  return outcome;
}

int exit_code(const Outcome& outcome) {
  bool fail = !outcome.missing_required.empty(), undecided = false, pass = false;
  for (const LawResult& result : outcome.laws) {
    fail = fail || result.word == Word::fail;
    undecided = undecided || result.word == Word::undecided;
    pass = pass || result.word == Word::pass;
  }
  return fail ? 1 : undecided ? 3 : pass ? 0 : 77;
}

}  // namespace ringproof::suite
