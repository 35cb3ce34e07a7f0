// `ringproof check CASE...`: judges every answer present; the exit code is the worst verdict.
#include <fmt/format.h>

#include <memory>

#include "oracle/case/error.hpp"
#include "oracle/case/words.hpp"
#include "oracle/cli/case_options.hpp"
#include "oracle/cli/commands.hpp"
#include "oracle/cli/report_files.hpp"
#include "oracle/report/report.hpp"

namespace ringproof::oracle::cli {

namespace {

struct Arguments : JudgeArguments {
  std::string report;  // FORMAT=FILE, separated by commas
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

CaseOutcome check_one(const Arguments& arguments, const std::vector<std::string>& files,
                      const CheckOptions& options, const ReportFiles& reports) {
  const Case input = arguments.from.read(files);
  CaseOutcome outcome{.name = input.name};
  // A problem without an answer carries no contract, and nothing is wrong with it: it is skipped.
  const bool skipped = !has_answer(input, options) && options.require.empty();
  if (skipped && !arguments.from.has_contract(input)) {
    fmt::print("{}  {} (no answer to judge)\n", word(Verdict::skipped), printable(input.name));
    outcome.report.reason = "no answer to judge";
    return outcome;
  }
  const Contract contract = arguments.from.contract_of(input);
  outcome.report = check(input, contract, options);
  outcome.verdict = outcome.report.verdict;
  outcome.command = arguments.repeat("check", files, outcome.report);
  fmt::print("{}", to_text(outcome.report, outcome.command));
  reports.complete(outcome, input, contract, options);
  return outcome;
}

int run(const Arguments& arguments) {
  const ReportFiles reports(arguments.report, arguments.from);
  const CheckOptions options = arguments.options();
  std::vector<CaseOutcome> outcomes;
  std::vector<Verdict> verdicts;
  for (const std::vector<std::string>& files : arguments.from.cases()) {
    try {
      outcomes.push_back(check_one(arguments, files, options, reports));
    } catch (const BadInput& error) {
      print_error(error.what());
      outcomes.push_back(
          {.name = files.front(), .verdict = Verdict::bad_input, .error = error.what()});
    }
    verdicts.push_back(outcomes.back().verdict);
  }
  if (outcomes.size() > 1) fmt::print("{}", summary(verdicts));
  reports.write(outcomes);
  return exit_code(worst(verdicts));
}

}  // namespace

void add_check(CLI::App& program, Command& chosen) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App& app = *program.add_subcommand("check", "judge the answers in case files or folders");
  arguments->add_to(app);
  app.add_option("--report", arguments->report, "write reports for programs, for CI, for people")
      ->type_name("json=F,junit=F,html=F");
  app.callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace ringproof::oracle::cli
