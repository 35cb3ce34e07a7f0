// `ringproof truth CASE -o F`: certified intervals of out and lse, and the correctly rounded
// answer.
#include <fmt/format.h>

#include <memory>

#include "oracle/case/error.hpp"
#include "oracle/cli/arguments.hpp"
#include "oracle/cli/commands.hpp"
#include "oracle/judge/truth_tensors.hpp"

namespace ringproof::oracle::cli {

namespace {

struct Arguments {
  CaseArguments from;
  TruthArguments truth;
  std::string output;
};

const std::byte* bytes_of(const std::vector<double>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

/// The type of the correctly rounded answer: the contract's, else that of the queries.
DType answer_type(const Arguments& arguments, const Case& input) {
  if (!arguments.from.has_contract(input)) return input.problem.q.dtype;
  return arguments.from.contract_of(input).out.dtype;
}

std::vector<std::int64_t> stored_shape(const Problem& problem, bool with_columns) {
  std::vector<std::int64_t> shape{problem.batches, problem.heads, problem.queries};
  if (with_columns) shape.push_back(problem.value_dim);
  return shape;
}

int run(const Arguments& arguments) {
  const auto cases = arguments.from.cases();
  if (cases.size() != 1) throw BadInput("truth takes one case (several files need --shards)");
  const Case input = arguments.from.read(cases.front());
  const Problem& problem = input.problem;
  const DType type = answer_type(arguments, input);
  const DType lse_type = type == DType::f64 ? DType::f64 : DType::f32;
  const TruthTensors truth = truth_tensors(problem, problem.spec.lse_base.value_or(LseBase::e),
                                           arguments.truth.bits(), arguments.truth.walk());
  const std::vector<std::byte> out = decided(type, truth.out_lo, truth.out_hi);
  const std::vector<std::byte> lse = decided(lse_type, truth.lse_lo, truth.lse_hi);
  const auto out_shape = stored_shape(problem, true), lse_shape = stored_shape(problem, false);

  // The arrays are in canonical order whatever the order of the file was, and the spec says so.
  Spec spec = problem.spec;
  spec.layout = AxisOrder::bhnd;
  write_case(arguments.output,
             {{"lse", lse_type, lse_shape, lse.data()},
              {"lse_hi", DType::f64, lse_shape, bytes_of(truth.lse_hi)},
              {"lse_lo", DType::f64, lse_shape, bytes_of(truth.lse_lo)},
              {"out", type, out_shape, out.data()},
              {"out_hi", DType::f64, out_shape, bytes_of(truth.out_hi)},
              {"out_lo", DType::f64, out_shape, bytes_of(truth.out_lo)}},
             to_json(spec));
  fmt::print("{}: out and lse of {} rows, out rounded to {}\n", arguments.output,
             problem.batches * problem.heads * problem.queries, name(type));
  return 0;
}

}  // namespace

void add_truth(CLI::App& program, Command& chosen) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App& app = *program.add_subcommand("truth", "write the certified truth of a problem");
  arguments->from.add_to(app);
  arguments->truth.add_to(app);
  app.add_option("-o,--output", arguments->output, "file to write")->required()->type_name("F");
  app.callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace ringproof::oracle::cli
