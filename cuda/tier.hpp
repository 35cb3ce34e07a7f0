// The tier as others see it: the ladder of kernels, and ring attention on it. Plain C++, no CUDA.
//
//   Trace trace;
//   Answer<float> answer =
//       ring_attention(problem, Element::bf16, *find_kernel("05"), {.ranks = 4}, trace);
#pragma once

#include <span>
#include <string_view>

#include "reference/ring_backward.hpp"

namespace ringproof::cuda {

/// The type of q, k and v on the device. States and answers are fp32.
enum class Element { fp32, bf16, fp16 };

/// One step of the ladder.
struct Kernel {
  std::string_view number;  // "01"
  std::string_view name;
  std::string_view idea;
  // The numeric contract of the kernel on inputs of each type; empty: it does not take the type.
  std::string_view fp32, bf16, fp16;

  std::string_view contract(Element element) const {
    return element == Element::fp32 ? fp32 : element == Element::bf16 ? bf16 : fp16;
  }
};

/// All steps, from the plain one to the last.
std::span<const Kernel> ladder();

/// The step of that number; null if there is none.
const Kernel* find_kernel(std::string_view number);

/// The last step that takes the type.
const Kernel& best_kernel(Element element);

/// The widest head (D or Dv) that the kernels take.
inline constexpr reference::Index kMostHeadDim = 128;

/// Ring attention by `plan.ranks` ranks, each with a device of its own. The numbers of the problem
/// must be representable in `element`. On the host build the ranks are fibres
/// (cuda/host/ranks.hpp), run as rank_options() says.
reference::Answer<float> ring_attention(const reference::Problem<float>& problem, Element element,
                                        const Kernel& kernel, const reference::RingPlan& plan,
                                        reference::Trace& trace);

/// The same, and the gradients by the matrix units: for bf16 and fp16, and without a bias.
reference::AnswerAndGradients<float> ring_attention_backward(
    const reference::Problem<float>& problem, const reference::Upstream<float>& upstream,
    Element element, const Kernel& kernel, const reference::RingPlan& plan,
    reference::Trace& trace);

/// Does this tier have a backward pass for the case?
bool has_backward(const reference::Problem<float>& problem, Element element);

}  // namespace ringproof::cuda
