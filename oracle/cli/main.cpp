// The program `ringproof`: subcommands in, exit codes out (docs/verdicts.md).
// 2 is bad input or usage; 70 is a failure of the judge itself (a bug, or an environment in which
// it cannot certify), which is never a verdict on anybody's kernel.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "oracle/case/error.hpp"
#include "oracle/case/mapped_file.hpp"
#include "oracle/cli/commands.hpp"

namespace ringproof::oracle::cli {

namespace {

constexpr int kBadInput = 2, kFailureOfTheJudge = 70;

int run(int argc, char** argv) {
  CLI::App program("Judges attention outputs against a certified truth and a declared contract.",
                   "ringproof");
  program.set_version_flag("--version", "ringproof " RINGPROOF_VERSION);
  program.require_subcommand(1);
  Command chosen;
  add_check(program, chosen);
  add_truth(program, chosen);
  add_explain(program, chosen);
  add_fit(program, chosen);
  add_audit(program, chosen);
  add_contracts(program, chosen);
  add_gen(program, chosen);
  add_onnx_case(program, chosen);
  add_suite(program, chosen);
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return program.exit(help);
  } catch (const CLI::ParseError& error) {
    print_error(fmt::format("{} (usage; see ringproof --help)", error.what()));
    return kBadInput;
  }
  const int code = chosen();
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    throw std::runtime_error("the report could not be written to standard output");
  }
  return code;
}

}  // namespace

}  // namespace ringproof::oracle::cli

int main(int argc, char** argv) {
  using namespace ringproof::oracle;
  guard_against_file_signals();
  try {
    return cli::run(argc, argv);
  } catch (const BadInput& error) {
    cli::print_error(error.what());
    return cli::kBadInput;
  } catch (const std::bad_alloc&) {
    cli::print_error("out of memory");
  } catch (const std::exception& error) {
    cli::print_error(fmt::format("failure of the judge: {}", error.what()));
  }
  return cli::kFailureOfTheJudge;
}
