// From file to verdict: read, ring, write, judge. The same way that `ringproof-reference` and
// `ringproof check` take.
#include "tutorials/00_demo/real_head.hpp"

#include <filesystem>
#include <random>

#include "reference/cli/answer_file.hpp"
#include "tutorials/00_demo/averaging_ring.hpp"

namespace ringproof::demo {
namespace {

const std::filesystem::path kData = RINGPROOF_DATA;

/// A folder of its own in the system's place for temporary files; gone with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::random_device random;
    path_ = std::filesystem::temp_directory_path() /
            ("ringproof-demo-" + std::to_string(random()) + std::to_string(random()));
    std::filesystem::create_directory(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace

std::string problem_path() { return kData / "smollm2_l12_n256_g0.bf16.safetensors"; }
std::string stranger_path() { return kData / "smollm2_l12_n256_g0.bf16.torch_flash.safetensors"; }

// [run-and-judge]
Judged run_and_judge(Ring ring, int ranks) {
  const reference::CaseInput input = reference::read_input(problem_path());
  const reference::CaseProblem<float> owned(input);
  const reference::RingPlan plan{ranks, reference::Layout::contiguous, reference::Direction::down};
  reference::Trace trace;
  const reference::Answer<float> answer =
      ring == Ring::averaging ? averaging_ring(owned.problem(), plan.layout, plan.ranks)
                              : reference::ring_attention(owned.problem(), plan, trace);

  const TemporaryFolder folder;
  const std::string path = folder.file("answer.safetensors");
  reference::write_answer(input, plan, answer, path);
  return judge_file(path, "", ring == Ring::averaging);
}

Judged judge_file(const std::string& path, const std::string& contract_name, bool only_out) {
  const oracle::Case input = oracle::read_case(path);
  const oracle::Spec& spec = input.problem.spec;
  const oracle::Contract contract =
      oracle::read_contract(contract_name.empty() ? spec.contract : contract_name, spec);
  oracle::CheckOptions options;
  options.only = {oracle::AnswerKind::out};
  if (!only_out) options.only.push_back(oracle::AnswerKind::lse);
  const oracle::Report report = oracle::check(input, contract, options);
  return {report, oracle::diagnose(input, contract, options, report)};
}
// [/run-and-judge]

}  // namespace ringproof::demo
