// `ringproof check CASE...`: judges every answer present; the exit code is the worst verdict.
#include <fmt/format.h>

#include <memory>

#include "oracle/case/error.hpp"
#include "oracle/cli/arguments.hpp"
#include "oracle/cli/commands.hpp"
#include "oracle/report/report.hpp"

namespace ringproof::oracle::cli {

namespace {

struct Arguments {
  CaseArguments from;
  TruthArguments truth;
  CheckArguments check;
  ReservedOptions reserved;
};

/// True if the options leave an answer of this case to judge.
bool has_answer(const Case& input, const CheckOptions& options) {
  for (const Answer& answer : input.answers) {
    if (options.only.empty()) return true;
    for (const AnswerKind kind : options.only) {
      if (kind == answer.kind) return true;
    }
  }
  return false;
}

Verdict check_one(const Arguments& arguments, const std::vector<std::string>& files,
                  const CheckOptions& options) {
  const Case input = arguments.from.read(files);
  // A problem without an answer carries no contract, and nothing is wrong with it: it is skipped.
  const bool skipped = !has_answer(input, options) && options.require.empty();
  if (skipped && !arguments.from.has_contract(input)) {
    fmt::print("{}  {} (no answer to judge)\n", word(Verdict::skipped), input.name);
    return Verdict::skipped;
  }
  const Contract contract = arguments.from.contract_of(input);
  const Report report = check(input, contract, options);
  fmt::print("{}", to_text(report, repeat_command("check", files, arguments.from, arguments.truth,
                                                  arguments.check)));
  return report.verdict;
}

int run(const Arguments& arguments) {
  arguments.reserved.refuse();
  const CheckOptions options = arguments.check.options(arguments.truth);
  std::vector<Verdict> verdicts;
  const auto cases = arguments.from.cases();
  for (const std::vector<std::string>& files : cases) {
    try {
      verdicts.push_back(check_one(arguments, files, options));
    } catch (const BadInput& error) {
      print_error(error.what());
      verdicts.push_back(Verdict::bad_input);
    }
  }
  if (cases.size() > 1) fmt::print("{}", summary(verdicts));
  return exit_code(worst(verdicts));
}

}  // namespace

void add_check(CLI::App& program, Command& chosen) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App& app = *program.add_subcommand("check", "judge the answers in case files");
  arguments->from.add_to(app);
  arguments->check.add_to(app);
  arguments->truth.add_to(app);
  for (const char* name : {"--budget", "--probabilistic", "--report"}) {
    arguments->reserved.add(app, name);
  }
  app.callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace ringproof::oracle::cli
