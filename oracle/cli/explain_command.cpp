// `ringproof explain CASE`: the verdict, which known mistakes explain a refused answer, and where
// it is refused if none does; with --svg a picture of the errors.
#include <fmt/format.h>

#include <memory>

#include "oracle/case/error.hpp"
#include "oracle/cli/case_options.hpp"
#include "oracle/cli/commands.hpp"
#include "oracle/cli/output_file.hpp"
#include "oracle/cli/progress_bar.hpp"
#include "oracle/diagnose/locate.hpp"
#include "oracle/report/diagnosis_text.hpp"
#include "oracle/report/heat_map.hpp"
#include "oracle/report/report.hpp"

namespace ringproof::oracle::cli {

namespace {

struct Arguments : JudgeArguments {
  std::string svg;
};

int run(const Arguments& arguments) {
  if (!arguments.svg.empty()) require_output(arguments.svg, arguments.from);
  const CheckOptions options = arguments.options();
  const std::vector<std::string> files = arguments.from.only_case("explain");
  const Case input = arguments.from.read(files);
  const Contract contract = arguments.from.contract_of(input);
  const Report report = check(input, contract, options);
  const bool refused = report.verdict == Verdict::fail, drawn = !arguments.svg.empty();
  fmt::print("{}", to_text(report, arguments.repeat("explain", files, report)));
  if (!refused && !drawn) return exit_code(report.verdict);
  const ErrorField field = error_field(input, contract, options, report);
  const auto gradients = gradient_fields(input, contract, options, report);
  if (refused) {
    CheckOptions search = options;
    search.walk.progress = progress_bar("families of mistakes");
    const Diagnosis diagnosis = diagnose(input, contract, search, report, &field);
    fmt::print("{}{}", to_text(report, diagnosis), to_text(locate(input, contract, field)));
  }
  if (drawn) {
    write_output(arguments.svg, heat_map_svg(field, gradients,
                                             fmt::format("{}: {} under {}", input.name,
                                                         word(report.verdict), contract.name)));
  }
  for (const GradientLocation& one : locate_gradients(input, contract, gradients)) {
    if (refused) fmt::print("{}", to_text(one));
  }
  return exit_code(report.verdict);
}

}  // namespace

void add_explain(CLI::App& program, Command& chosen) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App& app =
      *program.add_subcommand("explain", "name the known mistakes that explain a refused answer");
  arguments->add_to(app);
  app.add_option("--svg", arguments->svg, "draw error over bound into this file")->type_name("F");
  app.callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace ringproof::oracle::cli
