// ringproof-cuda: runs the tier of devices on a case file. On the host build the devices are
// emulated and every rank is a fibre; faults end the program with a report.
//   ringproof-cuda CASE -o OUT [--ranks P] [--layout L] [--order down|up] [--kernel NN]
//                 [--backward] [--trace F]
//   ringproof-cuda --list      the ladder of kernels
// Exit status 2 for bad input or usage, 1 if the device or its emulation reports a fault; in both
// cases nothing has been written.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <new>

#include "cuda/tier.hpp"
#include "oracle/case/error.hpp"
#include "reference/cli/tier_options.hpp"
#include "reference/cli/usage.hpp"

#if RINGPROOF_CUDA_HOST
#include "cuda/host/rank_options.hpp"
#endif

namespace {

using namespace ringproof;
using namespace ringproof::reference;

constexpr Index kMostRanks = 256;
constexpr Index kMostHeads = 65535;  // and batches: a grid has no more blocks in those directions

struct Options : TierOptions {
  std::string kernel;
  bool list = false;
  std::uint64_t seed = 1;
};

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw oracle::BadInput(path + ": " + what);
}

/// The type in which the device gets q, k and v: the 16-bit type where all numbers have it.
cuda::Element element_for(const CaseInput& input, Pass pass) {
  const oracle::DType type = output_type(input, pass);
  return type == oracle::DType::bf16  ? cuda::Element::bf16
         : type == oracle::DType::f16 ? cuda::Element::fp16
                                      : cuda::Element::fp32;
}

const char* name_of(cuda::Element element) {
  return element == cuda::Element::fp32 ? "fp32" : element == cuda::Element::bf16 ? "bf16" : "fp16";
}

const cuda::Kernel& kernel_for(const Options& options, cuda::Element element) {
  if (options.kernel.empty()) return cuda::best_kernel(element);
  const cuda::Kernel* kernel = cuda::find_kernel(options.kernel);
  if (kernel == nullptr) refuse("--kernel " + options.kernel, "no such kernel; see --list");
  if (kernel->contract(element).empty()) {
    refuse("--kernel " + options.kernel,
           std::string("does not take this case's type, ") + name_of(element));
  }
  if (options.backward && !kernel->fp32.empty()) {
    refuse("--kernel " + options.kernel, "has no backward pass; the tensor core steps have");
  }
  return *kernel;
}

/// What the kernels can do with a case; everything else is refused by name.
void expect_supported(const CaseInput& input, const Options& options) {
  const oracle::Problem& problem = input.views.problem;
  if (options.backward && problem.bias) {
    refuse(options.case_path, "--backward with a bias is not supported by this tier");
  }
  if (options.backward && element_for(input, options.pass()) == cuda::Element::fp32) {
    refuse(options.case_path, "--backward needs q, k, v and dout of one 16-bit type in this tier");
  }
  if (arithmetic_for(input, options.pass()) == Arithmetic::fp64) {
    refuse(options.case_path, "needs fp64, which this tier does not compute in");
  }
  if (problem.head_dim > cuda::kMostHeadDim || problem.value_dim > cuda::kMostHeadDim) {
    refuse(options.case_path,
           fmt::format("heads wider than {} are not supported by this tier", cuda::kMostHeadDim));
  }
  if (problem.heads > kMostHeads || problem.batches > kMostHeads) {
    refuse(options.case_path,
           fmt::format("more than {} heads or batches are not supported by this tier", kMostHeads));
  }
}

/// The answer gets its name when the trace is there, and the trace its own when the answer is.
void write_results(const CaseInput& input, const Options& options, const Answer<float>& answer,
                   const Gradients<float>* gradients, const Trace& trace, const std::string& base) {
  const std::string part = options.trace_path + ".part";
  if (!options.trace_path.empty()) {
    std::ofstream file(part, std::ios::binary);
    write_trace(file, trace);
    file.close();
    if (!file) refuse(options.trace_path, "cannot be written");
  }
  write_answer<float>(input, options.plan, answer, options.out_path, gradients, base);
  if (!options.trace_path.empty()) std::filesystem::rename(part, options.trace_path);
}

void run(const Options& options) {
  const CaseInput input = read_tier_input(options);
  expect_supported(input, options);
  const cuda::Element element = element_for(input, options.pass());
  const cuda::Kernel& kernel = kernel_for(options, element);
#if RINGPROOF_CUDA_HOST
  cuda_host::rank_options().seed = options.seed;
#endif
  const CaseProblem<float> owned(input);
  Trace trace;
  const std::string base(kernel.contract(element));
  if (options.backward) {
    const auto [answer, gradients] = cuda::ring_attention_backward(
        owned.problem(), owned.upstream(), element, kernel, options.plan, trace);
    write_results(input, options, answer, &gradients, trace, base);
  } else {
    const Answer<float> answer =
        cuda::ring_attention(owned.problem(), element, kernel, options.plan, trace);
    write_results(input, options, answer, nullptr, trace, base);
  }
  fmt::print("{}kernel: {} {}, {}\n",
             summary(input, options, contract_for(input, options.plan.ranks, options.pass(), base),
                     traffic_of(trace)),
             kernel.number, kernel.name, name_of(element));
}

/// cuda/README.md shows it.
void print_ladder() {
  fmt::print("step  name                 fp32      bf16        fp16        the one idea\n");
  const auto cell = [](std::string_view contract) { return contract.empty() ? "-" : contract; };
  for (const cuda::Kernel& kernel : cuda::ladder()) {
    fmt::print("{:<4}  {:<19}  {:<8}  {:<10}  {:<10}  {}\n", kernel.number, kernel.name,
               cell(kernel.fp32), cell(kernel.bf16), cell(kernel.fp16), kernel.idea);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app{"Ring attention between devices: the CUDA tier of ringproof", "ringproof-cuda"};
  Options options;
  add_tier_options(app, options);
  app.add_option("--ranks", options.plan.ranks, "ranks in the ring (P)")
      ->check(CLI::Range(Index{1}, kMostRanks));
  app.add_option("--kernel", options.kernel, "step of the ladder; default: the last that fits");
  app.add_option("--seed", options.seed, "order of streams and ranks on the host build");
  app.add_flag("--list", options.list, "the ladder as a table");
  try {
    app.parse(argc, argv);
    if (!options.list && (options.case_path.empty() || options.out_path.empty())) {
      throw CLI::ValidationError("a case and -o OUT are needed, or --list");
    }
  } catch (const CLI::ParseError& error) {
    return print(usage_of(app, error));
  }
  if (options.list) {
    print_ladder();
  } else {
    run(options);
  }
  return 0;
} catch (const oracle::BadInput& error) {
  fmt::print(stderr, "ringproof-cuda: {}\n", error.what());
  return 2;
} catch (const std::filesystem::filesystem_error& error) {
  fmt::print(stderr, "ringproof-cuda: {}\n", error.what());
  return 2;
} catch (const std::bad_alloc&) {
  fmt::print(stderr, "ringproof-cuda: not enough memory\n");
  return 2;
} catch (const std::runtime_error& error) {
  fmt::print(stderr, "ringproof-cuda: {}\n", error.what());
  return 1;
}
