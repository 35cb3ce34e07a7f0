// `ringproof fit CASE`: "my kernel or my contract?". The contracts that would accept the answer and
// the field that decides, beside the mistakes that explain it.
#include <fmt/format.h>

#include <memory>

#include "oracle/case/error.hpp"
#include "oracle/cli/case_options.hpp"
#include "oracle/cli/commands.hpp"
#include "oracle/cli/progress_bar.hpp"
#include "oracle/diagnose/diagnose.hpp"
#include "oracle/report/diagnosis_text.hpp"
#include "oracle/report/report.hpp"

namespace ringproof::oracle::cli {

namespace {

/// The declared contract as text, from where check would take it.
std::string declared(const CaseArguments& from, const Case& input) {
  if (!from.contract) return input.problem.spec.contract;
  return from.contract->starts_with('@') ? small_file(from.contract->substr(1)) : *from.contract;
}

int run(const JudgeArguments& arguments) {
  const CheckOptions options = arguments.options();
  const std::vector<std::string> files = arguments.from.only_case("fit");
  const Case input = arguments.from.read(files);
  const Contract contract = arguments.from.contract_of(input);  // throws if there is none
  const Fit result = fit(input, declared(arguments.from, input), options);
  Diagnosis diagnosis;  // mistakes are only looked for if no kernel that is known is as inaccurate
  std::string mistakes;
  if (!result.declared.answers.empty() && !loosened(result, true)) {
    CheckOptions search = options;
    search.walk.progress = progress_bar("families of mistakes");
    diagnosis = diagnose(input, contract, search, result.declared);
    mistakes = to_text(result.declared, diagnosis);
  }
  fmt::print("{}{}{}", to_text(result.declared, arguments.repeat("fit", files, result.declared)),
             mistakes, to_text(result, diagnosis));
  return exit_code(result.declared.verdict);
}

}  // namespace

void add_fit(CLI::App& program, Command& chosen) {
  auto arguments = std::make_shared<JudgeArguments>();
  CLI::App& app = *program.add_subcommand(
      "fit", "find the contracts that would accept an answer, and the field that decides");
  arguments->add_to(app);
  app.callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace ringproof::oracle::cli
