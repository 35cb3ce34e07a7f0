// `ringproof onnx-case TEST -o CASE`: a node test of the ONNX operator Attention as a case, with
// the test's Y as the answer to be judged.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>

#include "oracle/cli/commands.hpp"
#include "oracle/cli/output_file.hpp"
#include "oracle/onnx/onnx_case.hpp"

namespace ringproof::oracle::cli {

namespace {

struct Arguments {
  std::string test, output, contract, data_set = "test_data_set_0";
};

int run(const Arguments& arguments) {
  const std::filesystem::path data = std::filesystem::path(arguments.test) / arguments.data_set;
  require_output(arguments.output, std::vector{arguments.test, data.string()});
  const NodeTest test = read_node_test(arguments.test, arguments.data_set);
  const OnnxCase made = onnx_case(test, arguments.contract);
  write_onnx_case(arguments.output, made);
  fmt::print("{}: {}, opset {}\n", arguments.output, test.name, test.opset);
  if (test.find("qk_matmul_output") != nullptr) fmt::print("  qk_matmul_output is not judged\n");
  for (const std::string& wrong : made.wrong) fmt::print("  {}\n", wrong);
  return made.wrong.empty() ? 0 : 1;
}

}  // namespace

void add_onnx_case(CLI::App& program, Command& chosen) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App& app =
      *program.add_subcommand("onnx-case", "make a case of an ONNX Attention node test");
  app.add_option("TEST", arguments->test, "folder with model.onnx, or its extracted tensors")
      ->required();
  app.add_option("-o,--output", arguments->output, "case file to write")
      ->required()
      ->type_name("CASE");
  app.add_option("--contract", arguments->contract, "contract to write into the case")
      ->type_name("C");
  app.add_option("--data-set", arguments->data_set, "folder of the tensors within the test")
      ->capture_default_str();
  app.callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace ringproof::oracle::cli
