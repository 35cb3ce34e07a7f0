// ringproof-suite: the property suite on somebody's kernel; `ringproof suite` runs it.
//   ringproof-suite --so LIB --contract C | --command './k {in} {out}' --contract C
// Exit status: 0 PASS, 1 FAIL, 2 bad input or usage, 3 UNDECIDED, 77 SKIPPED, 128 + signal.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "oracle/case/error.hpp"
#include "oracle/case/mapped_file.hpp"
#include "tests/suite/candidate_command.hpp"
#include "tests/suite/candidate_library.hpp"
#include "tests/suite/cases.hpp"
#include "tests/suite/interrupt.hpp"
#include "tests/suite/probe.hpp"
#include "tests/suite/suite.hpp"

namespace {

using namespace ringproof;
using namespace ringproof::suite;

constexpr int kBadInput = 2, kFailureOfTheSuite = 70;
constexpr double kTimeout = 30;  // seconds for one call

struct Arguments {
  std::string library, command, contract, promise = "deterministic", require;
  std::vector<std::string> cases;
  double timeout = kTimeout, shrink = 10;
  bool list = false;
  SuiteOptions suite;
};

/// Seconds from `least` on; CLI11's own checks let "nan" and "inf" pass.
CLI::Validator seconds(double least, const char* what) {
  constexpr double kMost = 1e6;
  return {[=](std::string& text) {
            double number = 0;
            const char* end = text.data() + text.size();
            const auto [stop, error] = std::from_chars(text.data(), end, number);
            const bool right =
                error == std::errc() && stop == end && number >= least && number <= kMost;
            return right ? std::string() : "\"" + text + "\" is no " + what;
          },
          "", "S"};
}

/// A whole number without a sign that fits the type, from `least` on.
template <class Number>
CLI::Validator whole(Number least, const char* what) {
  return {[=](std::string& text) {
            Number number = 0;
            const char* end = text.data() + text.size();
            const auto [stop, error] = std::from_chars(text.data(), end, number);
            const bool right = error == std::errc() && stop == end && number >= least;
            return right ? std::string() : "\"" + text + "\" is no " + what;
          },
          "", "N"};
}

/// Throws BadInput unless failures can be written into the folder (none is named: nothing will be).
/// Made for a moment, which alone says for certain that it can be; nothing is left behind.
void require_folder(const std::string& folder) {
  if (folder.empty()) return;
  namespace fs = std::filesystem;
  std::error_code error, ignored;
  std::vector<fs::path> missing;  // the deepest first
  for (fs::path path = fs::absolute(folder).lexically_normal();
       !fs::exists(path, ignored) && path.has_relative_path(); path = path.parent_path()) {
    missing.push_back(path);
  }
  fs::create_directories(folder, error);
  if (!error && !fs::is_directory(folder, ignored)) error.assign(ENOTDIR, std::generic_category());
  if (!error && access(folder.c_str(), W_OK | X_OK) != 0) {
    error.assign(errno, std::generic_category());
  }
  for (const fs::path& path : missing) fs::remove(path, ignored);
  if (error) {
    throw oracle::BadInput("--failures " + folder + ": no folder to write into (" +
                           error.message() + ")");
  }
}

void add_options(CLI::App& app, Arguments& arguments) {
  constexpr double kShortest = 1e-3;
  app.add_option("--so", arguments.library, "shared object that exports ringproof_candidate_v1")
      ->type_name("LIB");
  app.add_option("--command", arguments.command,
                 "command line with {in} and {out}; exit status 77 means not supported")
      ->type_name("CMD");
  app.add_option("--contract", arguments.contract, "numeric contract of the kernel")
      ->type_name("C");
  app.add_option("--only", arguments.suite.only, "laws by their ids, or by how these begin")
      ->delimiter(',')
      ->type_name("LAW");
  app.add_option("--seed", arguments.suite.seed, "seed of the first problem of each law")
      ->check(whole<std::uint64_t>(0, "seed (0, 1, 2, ...)"))
      ->capture_default_str();
  app.add_option("--count", arguments.suite.count,
                 "problems for each law; up to twice as many where none has power")
      ->check(whole<int>(1, "number of problems (1, 2, ...)"))
      ->capture_default_str();
  app.add_option("--promise", arguments.promise,
                 "deterministic, batch_invariant (separated by commas), or none")
      ->capture_default_str();
  app.add_option("--require", arguments.require, "features without which the kernel fails, or all")
      ->type_name("FEATURES");
  app.add_option("--timeout", arguments.timeout, "seconds for one call")
      ->check(seconds(kShortest, "time from 0.001 to 1000000 seconds"))
      ->capture_default_str();
  app.add_option("--shrink", arguments.shrink, "seconds to shrink a failure; 0: not at all")
      ->check(seconds(0, "time from 0 to 1000000 seconds"))
      ->capture_default_str();
  app.add_option("--failures", arguments.suite.folder, "folder for cases that break a law")
      ->capture_default_str();
  app.add_option("--cases", arguments.cases,
                 "in place of the laws: problems in case files or folders (`ringproof gen`)")
      ->type_name("CASE");
  app.add_flag("--list", arguments.list, "print the laws and stop");
}

Promises promises_of(const std::string& list) {
  Promises promises{.deterministic = false, .batch_invariant = false};
  if (list == "none") return promises;
  for (std::size_t first = 0; first < list.size();) {
    const std::size_t comma = std::min(list.find(',', first), list.size());
    const std::string word = list.substr(first, comma - first);
    first = comma + 1;
    if (word == "deterministic") {
      promises.deterministic = true;
    } else if (word == "batch_invariant") {
      promises.deterministic = promises.batch_invariant = true;
    } else {
      throw oracle::BadInput("--promise: \"" + word +
                             "\" is none of deterministic, batch_invariant, none");
    }
  }
  return promises;
}

std::string in_quotes(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

/// Where the run is, on a terminal, ten times a second at most.
void show_progress(const Progress& now) {
  using Clock = std::chrono::steady_clock;
  static Clock::time_point last{};
  static bool shown = false;
  const Clock::time_point time = Clock::now();
  if (now.law.empty()) {
    if (shown) fmt::print(stderr, "\r\033[K");
    shown = false;
  } else if (time - last > std::chrono::milliseconds(100)) {
    fmt::print(stderr, "\r\033[K[{} of {}] {}: {} {} of {}, {} calls", now.laws_done + 1, now.laws,
               now.law, now.shrinking ? "shrinking problem" : "problem", now.problem, now.problems,
               now.calls);
    shown = true;
    last = time;
  }
  std::fflush(stderr);
}

int list_laws() {
  for (const Law& law : all_laws()) {
    fmt::print("{:<26}{}{}\n", law.id, law.sentence,
               law.needs.empty() ? "" : " [" + text_of(law.needs) + "]");
  }
  return 0;
}

int run_kernel(const Candidate& kernel, Arguments& arguments) {
  Candidate candidate = kernel;
  candidate.promises = promises_of(arguments.promise);
  Trial trial(candidate, arguments.contract);
  SuiteOptions& options = arguments.suite;
  options.require = parse_features(arguments.require);
  options.shrink = std::chrono::milliseconds(static_cast<long>(1000 * arguments.shrink));
  options.command =
      "ringproof suite " +
      (arguments.library.empty() ? "--command " + in_quotes(arguments.command)
                                 : "--so " + in_quotes(arguments.library)) +
      " --contract " + in_quotes(arguments.contract) +
      (arguments.promise == "deterministic" ? "" : " --promise " + arguments.promise) +
      (arguments.timeout == kTimeout ? "" : fmt::format(" --timeout {}", arguments.timeout));
  if (isatty(STDERR_FILENO) != 0) options.progress = show_progress;
  const Probed probed = probe(trial);
  if (!arguments.cases.empty())
    return run_cases(trial, arguments.cases, options, std::cout, probed);
  return exit_code(run_suite(trial, options, std::cout, probed));
}

int run(Arguments& arguments) {
  if (arguments.list) return list_laws();
  if (arguments.library.empty() == arguments.command.empty()) {
    throw oracle::BadInput("one of --so LIB and --command CMD is needed (see --help)");
  }
  choose_laws(arguments.suite.only);
  require_folder(arguments.suite.folder);
  if (arguments.contract.empty()) {
    throw oracle::BadInput("no contract is given (--contract; `ringproof contracts` lists them)");
  }
  const std::chrono::milliseconds limit(static_cast<long>(1000 * arguments.timeout));
  if (!arguments.library.empty()) {
    Library library(arguments.library, limit);
    return run_kernel(library.candidate(), arguments);
  }
  Command command(arguments.command, limit);
  return run_kernel(command.candidate(), arguments);
}

}  // namespace

int main(int argc, char** argv) {
  oracle::guard_against_file_signals();
  remember_signals();
  Arguments arguments;
  CLI::App app("Runs the laws of attention on a kernel and judges its answers.", "ringproof suite");
  add_options(app, arguments);
  try {
    app.parse(argc, argv);
    return run(arguments);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "ringproof suite: {} (usage; see --help)\n", error.what());
    return kBadInput;
  } catch (const oracle::BadInput& error) {
    fmt::print(stderr, "ringproof suite: {}\n", error.what());
    return kBadInput;
  } catch (const Interrupted& interrupted) {
    fmt::print(stderr, "\nringproof suite: interrupted\n");
    return 128 + interrupted.signal;
  } catch (const std::exception& error) {
    fmt::print(stderr, "ringproof suite: failure of the suite: {}\n", error.what());
  }
  return kFailureOfTheSuite;
}
