// A case through the tier of devices, as its program does it, and the verdict on the answer.
#pragma once

#include "cuda/host/rank_options.hpp"
#include "cuda/tier.hpp"
#include "tests/tiers/case_description.hpp"
#include "tests/tiers/judged.hpp"

namespace ringproof::test {

/// The types in CaseDescription's list of query types.
inline int query_type(cuda::Element element) {
  return element == cuda::Element::fp32 ? 1 : element == cuda::Element::bf16 ? 2 : 3;
}

/// One written problem, read back.
class DeviceCase {
 public:
  DeviceCase(const CaseDescription& description, cuda::Element element)
      : element_(element), path_(folder_.file("problem.safetensors")) {
    CaseDescription typed = description;
    typed.q_type = query_type(element), typed.kv_type = 0;
    write_case_file(typed, path_);
    input_.emplace(reference::read_input(path_));
    owned_.emplace(*input_);
  }

  reference::Problem<float> problem() const { return owned_->problem(); }

  reference::Answer<float> run(const cuda::Kernel& kernel, const reference::RingPlan& plan,
                               reference::Trace& trace) const {
    return cuda::ring_attention(problem(), element_, kernel, plan, trace);
  }

  reference::AnswerAndGradients<float> run_backward(const cuda::Kernel& kernel,
                                                    const reference::RingPlan& plan,
                                                    reference::Trace& trace) const {
    return cuda::ring_attention_backward(problem(), owned_->upstream(), element_, kernel, plan,
                                         trace);
  }

  oracle::Report judge_backward(const cuda::Kernel& kernel, const reference::RingPlan& plan) const {
    reference::Trace trace;
    const auto [answer, gradients] = run_backward(kernel, plan, trace);
    const std::string out = folder_.file("answer.safetensors");
    reference::write_answer<float>(*input_, plan, answer, out, &gradients,
                                   std::string(kernel.contract(element_)));
    return judge_file(out);
  }

  oracle::Report judge(const cuda::Kernel& kernel, const reference::RingPlan& plan) const {
    reference::Trace trace;
    const auto answer = run(kernel, plan, trace);
    const std::string out = folder_.file("answer.safetensors");
    reference::write_answer<float>(*input_, plan, answer, out, nullptr,
                                   std::string(kernel.contract(element_)));
    return judge_file(out);
  }

 private:
  TemporaryFolder folder_;
  cuda::Element element_;
  std::string path_;
  std::optional<reference::CaseInput> input_;
  std::optional<reference::CaseProblem<float>> owned_;
};

/// Sets the order of streams and ranks for the time of a test.
class WithRanks {
 public:
  explicit WithRanks(const cuda_host::RankOptions& options) : before_(cuda_host::rank_options()) {
    cuda_host::rank_options() = options;
  }
  WithRanks(const WithRanks&) = delete;
  WithRanks& operator=(const WithRanks&) = delete;
  ~WithRanks() { cuda_host::rank_options() = before_; }

 private:
  cuda_host::RankOptions before_;
};

}  // namespace ringproof::test
