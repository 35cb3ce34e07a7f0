#include "tutorials/08_gpu_ladder/real_ladder.hpp"

#include <fmt/format.h>

#include "cuda/host/grid.hpp"
#include "cuda/tier.hpp"
#include "oracle/case/dtype.hpp"
#include "oracle/generate/random.hpp"
#include "oracle/ringproof.h"

namespace ringproof::tutorials {
namespace {

// [size]
constexpr std::int64_t N = 128, D = 32;
// [/size]

struct Inputs {
  std::vector<float> q = drawn(N * D, "q"), k = drawn(N * D, "k"), v = drawn(N * D, "v");
};

// [step]
/// One step of the ladder on the head: the tier as a program sees it (cuda/tier.hpp).
reference::Answer<float> answer_of(const cuda::Kernel& kernel, cuda::Element element,
                                   const Inputs& in) {
  reference::Problem<float> problem;
  problem.queries = problem.keys = N;
  problem.head_dim = problem.value_dim = D;
  problem.scale = reference::Number<float>::inverse_square_root(D);
  problem.q = reference::row_major<float>(in.q, {1, 1, N, D});
  problem.k = reference::row_major<float>(in.k, {1, 1, N, D});
  problem.v = reference::row_major<float>(in.v, {1, 1, N, D});
  reference::Trace trace;
  return cuda::ring_attention(problem, element, kernel, {.ranks = 1}, trace);
}
// [/step]

ringproof_result judge(const std::string& contract, const Inputs& in,
                       reference::Answer<float> answer) {
  const std::int64_t shape[] = {1, 1, N, D}, rows[] = {1, 1, N};
  const auto view = [](const std::vector<float>& numbers, const std::int64_t* axes, int count) {
    return ringproof_view(const_cast<float*>(numbers.data()), RINGPROOF_F32, count, axes);
  };
  ringproof_problem problem;
  ringproof_answer given;
  ringproof_result result;
  ringproof_problem_init(&problem);
  ringproof_answer_init(&given);
  ringproof_result_init(&result);
  problem.q = view(in.q, shape, 4);
  problem.k = view(in.k, shape, 4);
  problem.v = view(in.v, shape, 4);
  given.out = view(answer.out, shape, 4);
  given.lse = view(answer.lse, rows, 3);
  char message[4096];
  if (ringproof_check(&problem, &given, contract.c_str(), nullptr, &result, message,
                      sizeof message) != 0) {
    throw std::runtime_error(message);
  }
  return result;
}

}  // namespace

std::vector<float> drawn(long count, const char* name) {
  oracle::Random random(8, name);
  std::vector<float> numbers;
  for (long n = 0; n < count; ++n) {
    numbers.push_back(float(oracle::round_nearest(oracle::DType::bf16, random.normal())));
  }
  return numbers;
}

void print_ladder() {
  const Inputs in;
  fmt::print(
      "step                     type  contract    verdict  of the bound"
      "   barriers  matrix: products  loads  copies\n");
  for (const cuda::Kernel& kernel : cuda::ladder()) {
    const bool fp32 = !kernel.fp32.empty();
    const auto element = fp32 ? cuda::Element::fp32 : cuda::Element::bf16;
    const std::string contract(kernel.contract(element));
    cuda_host::device_counts() = {};
    const reference::Answer<float> answer = answer_of(kernel, element, in);
    const cuda_host::DeviceCounts counts = cuda_host::device_counts();
    const ringproof_result result = judge(contract, in, answer);
    fmt::print("{} {:<21} {:<5} {:<11} {:<8} {:>12.2g} {:>10} {:>17} {:>6} {:>7}\n", kernel.number,
               kernel.name, fp32 ? "fp32" : "bf16", contract,
               result.verdict == RINGPROOF_PASS ? "PASS" : "FAIL",
               result.out.worst.error_over_bound, counts.barriers, counts.matrix_products,
               counts.matrix_loads, counts.copies);
  }
}

}  // namespace ringproof::tutorials
