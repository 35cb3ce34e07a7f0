// `ringproof gen SUITE -o DIR`: writes the problems of a suite. The author of a kernel adds answers
// beside them, and `ringproof check DIR` judges those.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "oracle/case/error.hpp"
#include "oracle/cli/arguments.hpp"
#include "oracle/cli/commands.hpp"
#include "oracle/cli/progress_bar.hpp"
#include "oracle/generate/mutation_score.hpp"
#include "oracle/generate/suite.hpp"
#include "oracle/generate/write_suite.hpp"

namespace ringproof::oracle::cli {

namespace {

struct Arguments {
  std::string suite, output;
  bool score = false, table = false;
  std::uint64_t seed = 1;
  int threads = 0;
};

int print_score(const Arguments& arguments) {
  ScoreOptions options;
  options.seed = arguments.seed;
  options.threads = arguments.threads;
  options.progress = progress_bar("cases");
  const std::vector<ContractScore> scores = mutation_score(arguments.suite, options);
  if (arguments.table) {
    fmt::print("Suite `{}`, seed {}, inputs {}.\n\n{}", arguments.suite, arguments.seed,
               digest_of(arguments.suite, arguments.seed), to_table(scores));
  } else {
    fmt::print("{}", to_text(scores));
  }
  return 0;
}

int run(const Arguments& arguments) {
  if (arguments.table && !arguments.score) throw BadInput("gen: --table is a form of --score");
  if (arguments.score) {
    if (!arguments.output.empty()) throw BadInput("gen: --score writes no folder");
    return print_score(arguments);
  }
  if (arguments.output.empty()) throw BadInput("gen: -o names no folder");
  SuiteOptions options;
  options.seed = arguments.seed;
  options.walk.threads = arguments.threads;
  options.walk.progress = progress_bar("cases");
  const SuiteSummary summary = write_suite(arguments.suite, arguments.output, options);
  fmt::print("{}: {} cases of suite {}, seed {}\n", arguments.output, summary.written,
             arguments.suite, arguments.seed);
  for (const std::string& refused : summary.refused) fmt::print("left out, {}\n", refused);
  for (const std::string& one : summary.without_gradients) {
    fmt::print("without gradients, {}\n", one);
  }
  return 0;
}

}  // namespace

void add_gen(CLI::App& program, Command& chosen) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App& app = *program.add_subcommand("gen", "write the problems of a suite");
  app.add_option("SUITE", arguments->suite, "quick, full, long or vectors")->required();
  app.add_option("-o,--output", arguments->output, "folder to write")->type_name("DIR");
  app.add_flag("--score", arguments->score, "print which mistakes the suite provably refuses");
  app.add_flag("--table", arguments->table, "with --score: as a table of the documentation");
  app.add_option("--seed", arguments->seed, "seed of the numbers")
      ->check(plain_number(kSeed, true))
      ->capture_default_str();
  app.add_option("--threads", arguments->threads, "threads (default: one a processor)")
      ->check(CLI::Range(1, kMostThreads));
  app.callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace ringproof::oracle::cli
