// `ringproof explain CASE`: the verdict, and which known mistakes explain a refused answer.
#include <fmt/format.h>

#include <memory>

#include "oracle/case/error.hpp"
#include "oracle/cli/arguments.hpp"
#include "oracle/cli/commands.hpp"
#include "oracle/judge/diagnose.hpp"
#include "oracle/report/report.hpp"

namespace ringproof::oracle::cli {

namespace {

struct Arguments {
  CaseArguments from;
  TruthArguments truth;
  CheckArguments check;
};

int run(const Arguments& arguments) {
  const CheckOptions options = arguments.check.options(arguments.truth);
  const auto cases = arguments.from.cases();
  if (cases.size() != 1) throw BadInput("explain takes one case (several files need --shards)");
  const Case input = arguments.from.read(cases.front());
  const Contract contract = arguments.from.contract_of(input);
  const Report report = check(input, contract, options);
  const std::vector<Explanation> explanations = diagnose(input, contract, options, report);
  fmt::print("{}{}",
             to_text(report, repeat_command("explain", cases.front(), arguments.from,
                                            arguments.truth, arguments.check)),
             to_text(report, explanations));
  return exit_code(report.verdict);
}

}  // namespace

void add_explain(CLI::App& program, Command& chosen) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App& app =
      *program.add_subcommand("explain", "name the known mistakes that explain a refused answer");
  arguments->from.add_to(app);
  arguments->check.add_to(app);
  arguments->truth.add_to(app);
  app.callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace ringproof::oracle::cli
