// The ladder as data (tier.hpp, launch.cuh): which step takes what, and its launch.
#include <iterator>

#include "cuda/kernels/launch.cuh"

namespace ringproof::cuda {
namespace {

constexpr Kernel kLadder[] = {
    {"01", "naive", "one thread a query row, in the order of the scalar tier; bit for bit the same",
     "fp32", "bf16-io", "fp16-io"},
    {"02", "shared tiles", "keys and values by way of shared memory; the softmax goes online",
     "fp32-gpu", "bf16-io", "fp16-io"},
    {"03", "register tiles", "a thread computes 4 x 4 scores; a shared load serves four products",
     "fp32-gpu", "bf16-io", "fp16-io"},
    {"04", "warp rows", "a row belongs to one warp; maxima, sums and weights are shuffles",
     "fp32-gpu", "bf16-io", "fp16-io"},
    {"05", "tensor cores", "both products on the matrix units; probabilities stay in registers", "",
     "bf16-flash", "fp16-flash"},
    {"06", "asynchronous copies", "cp.async brings the next tile meanwhile; swizzled, without gaps",
     "", "bf16-flash", "fp16-flash"},
};

constexpr Launches kLaunches[] = {
    {launch_naive<float>, launch_naive<Bf16>, launch_naive<Fp16>},
    {launch_shared_tiles<float>, launch_shared_tiles<Bf16>, launch_shared_tiles<Fp16>},
    {launch_register_tiles<float>, launch_register_tiles<Bf16>, launch_register_tiles<Fp16>},
    {launch_warp_rows<float>, launch_warp_rows<Bf16>, launch_warp_rows<Fp16>},
    {nullptr, launch_tensor_cores<Bf16>, launch_tensor_cores<Fp16>},
    {nullptr, launch_async_copy<Bf16>, launch_async_copy<Fp16>},
};
static_assert(std::size(kLadder) == std::size(kLaunches));

}  // namespace

std::span<const Kernel> ladder() { return kLadder; }

const Kernel* find_kernel(std::string_view number) {
  for (const Kernel& kernel : kLadder) {
    if (kernel.number == number) return &kernel;
  }
  return nullptr;
}

const Kernel& best_kernel(Element element) {
  const Kernel* best = &kLadder[0];
  for (const Kernel& kernel : kLadder) {
    if (!kernel.contract(element).empty()) best = &kernel;
  }
  return *best;
}

const Launches& launches(const Kernel& kernel) { return kLaunches[&kernel - kLadder]; }

}  // namespace ringproof::cuda
