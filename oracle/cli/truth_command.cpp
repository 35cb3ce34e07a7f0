// `ringproof truth CASE -o F`: certified intervals of out, lse and the gradients, and the
// correctly rounded answers.
#include <fmt/format.h>

#include <memory>

#include "oracle/case/error.hpp"
#include "oracle/cli/arguments.hpp"
#include "oracle/cli/commands.hpp"
#include "oracle/cli/output_file.hpp"
#include "oracle/judge/certified_rows.hpp"
#include "oracle/judge/gradient_truth.hpp"
#include "oracle/judge/truth_tensors.hpp"

namespace ringproof::oracle::cli {

namespace {

struct Arguments {
  CaseArguments from;
  TruthArguments truth;
  std::string output;
};

/// The type of the correctly rounded answer: the contract's, else that of the queries.
DType answer_type(const Arguments& arguments, const Case& input) {
  if (!arguments.from.has_contract(input)) return input.problem.q.dtype;
  return arguments.from.contract_of(input).out.dtype;
}

/// The tensors of the file, and the bytes that the rounded ones need.
class TruthFile {
 public:
  /// NAME, NAME_lo and NAME_hi.
  void add(const std::string& name, const IntervalTensor& tensor, DType type,
           const std::vector<std::int64_t>& shape) {
    bytes_.push_back(std::make_unique<std::vector<std::byte>>(encoded(type, tensor.rounded)));
    tensors_.push_back({name, type, shape, bytes_.back()->data()});
    tensors_.push_back({name + "_lo", DType::f64, shape, bytes_of(tensor.lo)});
    tensors_.push_back({name + "_hi", DType::f64, shape, bytes_of(tensor.hi)});
    undecided_ += tensor.undecided();
    names_ += (names_.empty() ? "" : " ") + name;
  }
  void write(const std::string& path, const Spec& spec) const {
    write_case(path, tensors_, to_json(spec));
  }
  const std::string& names() const { return names_; }
  std::int64_t undecided() const { return undecided_; }

 private:
  static const std::byte* bytes_of(const std::vector<double>& values) {
    return reinterpret_cast<const std::byte*>(values.data());
  }

  std::vector<std::unique_ptr<std::vector<std::byte>>> bytes_;
  std::vector<NamedTensor> tensors_;
  std::string names_;
  std::int64_t undecided_ = 0;
};

void add_gradients(const Problem& problem, const GradientTensors& gradients, DType type,
                   TruthFile& file) {
  const std::int64_t batches = problem.batches;
  file.add("dq", gradients.dq, type, {batches, problem.heads, problem.queries, problem.head_dim});
  file.add("dk", gradients.dk, type, {batches, problem.kv_heads, problem.keys, problem.head_dim});
  file.add("dv", gradients.dv, type, {batches, problem.kv_heads, problem.keys, problem.value_dim});
  if (problem.bias) {
    const BiasShape shape = bias_shape(problem);
    file.add("dbias", gradients.dbias, type, {shape.begin(), shape.end()});
  }
  if (problem.sinks) file.add("dsinks", gradients.dsinks, type, {problem.heads});
}

int run(const Arguments& arguments) {
  require_output(arguments.output, arguments.from);
  const Case input = arguments.from.read(arguments.from.only_case("truth"));
  const Problem& problem = input.problem;
  const DType type = answer_type(arguments, input);
  const RoundTo types{type, type == DType::f64 ? DType::f64 : DType::f32};
  const WalkOptions walk = arguments.truth.walk();
  const unsigned bits = arguments.truth.bits();
  const TruthTensors truth =
      truth_tensors(problem, problem.spec.lse_base.value_or(LseBase::e), bits, walk, types);
  const std::vector<std::int64_t> rows{problem.batches, problem.heads, problem.queries};
  TruthFile file;
  file.add("out", truth.out, types.out, {rows[0], rows[1], rows[2], problem.value_dim});
  file.add("lse", truth.lse, types.lse, rows);
  GradientTensors gradients;
  if (input.dout || input.dlse) {
    gradients = gradient_tensors(problem, {input.dout, input.dlse, {}}, bits, walk, type);
    add_gradients(problem, gradients, type, file);
  }
  // The arrays are in canonical order whatever the order of the file was, and the spec says so.
  Spec spec = problem.spec;
  spec.layout = AxisOrder::bhnd;
  file.write(arguments.output, spec);
  fmt::print("{}: {} of {} rows, rounded to {} (lse to {})\n", arguments.output, file.names(),
             rows[0] * rows[1] * rows[2], name(type), name(types.lse));
  if (file.undecided() > 0) {
    fmt::print("{} numbers are not decided by {} binary digits and written as NaN\n",
               file.undecided(), kMostBits);
  }
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
