// Running laws, shrinking, reporting (suite.hpp).
#include "tests/suite/suite.hpp"

#include <algorithm>
#include <filesystem>
#include <map>

#include "oracle/case/error.hpp"
#include "tests/suite/interrupt.hpp"

namespace ringproof::suite {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSize = 100;  // RapidCheck's size at which ranges are drawn in full
/// After so many laws that ended in the death of the kernel the next ones are not shrunk, and after
/// so many that ended in a hang no other law runs: each would wait for the time limit again.
constexpr int kDeaths = 3;

/// The kernel answers or refuses when it is asked what it supports.
constexpr Law kProbe{"probe", "asked what it supports, the kernel answers or refuses"};

std::string padded(std::string_view text, std::size_t width) {
  std::string result(text);
  result.resize(std::max(width, result.size() + 1), ' ');
  return result;
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
      : trial_(trial), options_(options), stream_(stream) {
    progress_.problems = options.count;
    trial_.before_calls([this] { show(); });
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run() { trial_.before_calls({}); }

  /// All laws, until the kernel has hung too often.
  std::vector<LawResult> laws(const std::vector<const Law*>& laws) {
    std::vector<LawResult> results;
    progress_.laws = static_cast<int>(laws.size());
    for (const Law* one : laws) {
      if (hangs_ >= kDeaths) break;
      progress_.law = one->id;
      const long before = trial_.calls();
      results.push_back(law(*one));
      results.back().calls = trial_.calls() - before;
      progress_.law = {};
      show();
      print(results.back());
      ++progress_.laws_done;
    }
    return results;
  }

  /// What the probe found, as a law that is broken.
  LawResult death(const Failure& failure) {
    LawResult result{.law = &kProbe, .word = Word::fail, .problems = 1, .calls = trial_.calls()};
    result.reason = in_words(kProbe, failure) + " --count 1";
    print(result);
    return result;
  }

 private:
  LawResult law(const Law& law) {
    LawResult result{.law = &law};
    const Features missing = trial_.sizes().support.missing(law.needs);
    if (!missing.empty()) {
      result.word = Word::skipped;
      result.reason = "needs " + suite::text_of(missing);
      return result;
    }
    trial_.judgements() = {};
    // Where no problem so far had the power to refuse anything, as many again may have it.
    const auto open = [&] { return !trial_.judgements().never_decided().empty(); };
    for (int n = 0; n < options_.count || (n < 2 * options_.count && open()); ++n) {
      progress_.problem = n + 1;
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

  /// The smallest failure in words, its case file, and the command that repeats it.
  std::string report(const Law& law, std::uint64_t seed,
                     const rc::Shrinkable<Description>& description, Failure failure) {
    const bool dead = failure.death != Death::none;
    if (dead) ++deaths_;
    if (failure.death == Death::hung) ++hangs_;
    if (options_.shrink.count() > 0 && (!dead || deaths_ <= kDeaths)) {
      progress_.shrinking = true;
      failure = smallest(trial_, law, description, std::move(failure), options_.shrink);
      progress_.shrinking = false;
    }
    return in_words(law, failure) + " --only " + std::string(law.id) + " --seed " +
           std::to_string(seed) + " --count 1";
  }

  /// The failure in words, its case file, and the command that repeats it, but for law and seed.
  std::string in_words(const Law& law, const Failure& failure) {
    const std::string indent = "\n          ";
    std::string text = failure.what + indent + "problem: " + suite::describe(failure.draft);
    if (!options_.folder.empty()) {
      std::filesystem::create_directories(options_.folder);
      const std::string path = options_.folder + "/" + std::string(law.id) + ".safetensors";
      trial_.write(path, failure.draft, failure.answer);
      text += indent + "case: " + path;
    }
    return text + indent + "repeat: " + options_.command;
  }

  void show() {
    progress_.calls = trial_.calls();
    if (options_.progress) options_.progress(progress_);
  }

  Trial& trial_;
  const SuiteOptions& options_;
  std::ostream& stream_;
  Progress progress_;
  int deaths_ = 0, hangs_ = 0;
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
  if (outcome.not_run > 0) {
    stream << "\nthe kernel hung in " << kDeaths << " laws: " << outcome.not_run
           << " more were not run";
  }
  if (unsupported > 0) stream << ", " << unsupported << " refused by the kernel";
  const Features unknown = outcome.unknown;
  const Features missing = unknown.missing(trial.sizes().support.missing(Features::all()));
  if (!missing.empty()) stream << "\nnot supported: " << suite::text_of(missing);
  if (!unknown.empty()) {
    stream << "\nunknown, since the kernel died in the probe: "
           << (unknown.bits == Features::all().bits ? "every feature" : suite::text_of(unknown));
  }
  stream << "\ncontract: " << trial.contract() << '\n';
  const auto required = [&](Features features, const char* what) {
    if (features.empty()) return;
    stream << "FAIL      required, but " << what << ": " << suite::text_of(features) << '\n';
  };
  const Features refused = unknown.missing(outcome.missing_required);
  required(refused, "not supported");
  required(refused.missing(outcome.missing_required), "unknown");
}

/// A whole id names its law alone, so that one law can be repeated; any other word names the laws
/// whose ids begin so.
bool names(const std::string& word, const Law& law) {
  const auto& laws = all_laws();
  const bool is_id =
      std::any_of(laws.begin(), laws.end(), [&](const Law& one) { return one.id == word; });
  return is_id ? law.id == word : law.id.starts_with(word);
}

}  // namespace

std::string_view text_of(Word word) {
  constexpr std::string_view kWords[] = {"PASS", "FAIL", "UNDECIDED", "SKIPPED"};
  return kWords[static_cast<std::size_t>(word)];
}

std::vector<const Law*> choose_laws(const std::vector<std::string>& words) {
  std::vector<const Law*> laws;
  for (const Law& law : all_laws()) {
    if (words.empty() || std::any_of(words.begin(), words.end(),
                                     [&](const std::string& word) { return names(word, law); })) {
      laws.push_back(&law);
    }
  }
  for (const std::string& word : words) {
    if (std::none_of(laws.begin(), laws.end(), [&](const Law* law) { return names(word, *law); })) {
      throw oracle::BadInput("--only " + word + ": no law begins so (--list shows them)");
    }
  }
  return laws;
}

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

Outcome run_suite(Trial& trial, const SuiteOptions& options, std::ostream& stream,
                  const Probed& probed) {
  const std::vector<const Law*> laws = choose_laws(options.only);
  Outcome outcome;
  outcome.missing_required = trial.sizes().support.missing(options.require);
  outcome.unknown = probed.unknown;
  Run run(trial, options, stream);
  if (probed.death) outcome.laws.push_back(run.death(*probed.death));
  if (probed.plain) {
    const std::vector<LawResult> results = run.laws(laws);
    outcome.laws.insert(outcome.laws.end(), results.begin(), results.end());
    outcome.not_run = static_cast<int>(laws.size() - results.size());
  } else if (!probed.death) {
    stream << kNotPlain;
    return outcome;
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
