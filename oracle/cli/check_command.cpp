// `ringproof check CASE...`: judges every answer present; the exit code is the worst verdict. With
// a team every member does all of this, on its part of the rows, and the first one speaks.
#include <fmt/format.h>

#include <memory>
#include <optional>

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
  const Team* team = nullptr;

  bool speaks() const { return team == nullptr || team->rank() == 0; }
};

void print_text(const Arguments& arguments, const std::string& text) {
  if (arguments.speaks()) fmt::print("{}", text);
}

/// The case, which all members read; none may see another one than the first does.
Case read_together(const Arguments& arguments, const std::vector<std::string>& files) {
  Case input;
  together(arguments.team, [&] { input = arguments.from.read(files); });
  if (arguments.team == nullptr) return input;
  require_same(arguments.team, to_wire(digest_of(input)),
               input.name + ": is another case than rank 0 reads");
  return input;
}

Contract contract_together(const Arguments& arguments, const Case& input) {
  Contract contract;
  together(arguments.team, [&] { contract = arguments.from.contract_of(input); });
  require_same(arguments.team, contract.hash, input.name + ": its contract is not that of rank 0");
  return contract;
}

CaseOutcome check_one(const Arguments& arguments, const std::vector<std::string>& files,
                      const CheckOptions& options, const ReportFiles& reports) {
  const Case input = read_together(arguments, files);
  CaseOutcome outcome{.name = input.name};
  // A problem without an answer carries no contract, and nothing is wrong with it: it is skipped.
  const bool skipped = !has_answer(input, options) && options.require.empty();
  if (skipped && !arguments.from.has_contract(input)) {
    print_text(arguments, fmt::format("{}  {} (no answer to judge)\n", word(Verdict::skipped),
                                      printable(input.name)));
    outcome.report.reason = "no answer to judge";
    return outcome;
  }
  const Contract contract = contract_together(arguments, input);
  outcome.report = check(input, contract, options);
  outcome.verdict = outcome.report.verdict;
  outcome.command = arguments.repeat("check", files, outcome.report);
  print_text(arguments, to_text(outcome.report, outcome.command));
  if (arguments.speaks()) {  // the others wait for the next case meanwhile
    CheckOptions alone = options;
    alone.team = nullptr;
    reports.complete(outcome, input, contract, alone);
  }
  return outcome;
}

int run(const Arguments& arguments) {
  std::optional<ReportFiles> reports;
  CheckOptions options;
  std::vector<std::vector<std::string>> cases;
  together(arguments.team, [&] {
    // The others write nothing, and may not see where the first one does.
    reports.emplace(arguments.speaks() ? arguments.report : "", arguments.from);
    options = arguments.options();
    cases = arguments.from.cases();
  });
  require_same(arguments.team, to_wire(cases), "other case files are found here than by rank 0");
  options.team = arguments.team;
  if (arguments.team != nullptr && options.walk.threads == 0) {
    options.walk.threads = arguments.team->threads();
  }
  if (!arguments.speaks()) options.walk.progress = nullptr;
  std::vector<CaseOutcome> outcomes;
  std::vector<Verdict> verdicts;
  for (const std::vector<std::string>& files : cases) {
    try {
      outcomes.push_back(check_one(arguments, files, options, *reports));
    } catch (const BadInput& error) {  // the same for all members
      if (arguments.speaks()) print_error(error.what());
      outcomes.push_back(
          {.name = files.front(), .verdict = Verdict::bad_input, .error = error.what()});
    }
    verdicts.push_back(outcomes.back().verdict);
  }
  if (outcomes.size() > 1) print_text(arguments, summary(verdicts));
  together(arguments.team, [&] {
    if (arguments.speaks()) reports->write(outcomes);
  });
  return exit_code(worst(verdicts));
}

}  // namespace

Command check_command(CLI::App& app, const Team* team) {
  auto arguments = std::make_shared<Arguments>();
  arguments->team = team;
  arguments->add_to(app);
  app.add_option("--report", arguments->report, "write reports for programs, for CI, for people")
      ->check(not_empty())
      ->type_name("json=F,junit=F,html=F");
  return [arguments] { return run(*arguments); };
}

void add_check(CLI::App& program, Command& chosen) {
  CLI::App& app = *program.add_subcommand("check", "judge the answers in case files or folders");
  app.callback([command = check_command(app, nullptr), &chosen] { chosen = command; });
}

}  // namespace ringproof::oracle::cli
