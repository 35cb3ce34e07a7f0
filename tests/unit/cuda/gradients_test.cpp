// The backward pass between devices: before the judge, and the same bits under every order.
#include <cstring>

#include "tests/support/catch.hpp"
#include "tests/unit/cuda/device_runs.hpp"

using namespace ringproof;
using cuda::Element;
using cuda_host::Order;
using oracle::AnswerKind;
using reference::Index;
using reference::Layout;
using reference::RingPlan;
using test::CaseDescription;

namespace {

CaseDescription backward_case() {
  CaseDescription description;
  description.queries = description.keys = 70;
  description.head_dim = description.value_dim = 32;
  description.upstream = 1, description.seed = 11;
  return description;
}

/// What a mask or a score rule adds, by name.
struct Feature {
  const char* name;
  void (*add)(CaseDescription&);
};

const Feature kFeatures[] = {
    {"full", [](CaseDescription&) {}},
    {"causal, grouped heads",
     [](CaseDescription& d) { d.causal = 1, d.kv_heads = 2, d.group = 2; }},
    {"window", [](CaseDescription& d) { d.window_left = 20, d.window_right = 3; }},
    {"softcap", [](CaseDescription& d) { d.softcap = 1, d.causal = 1; }},
    {"ALiBi and dlse", [](CaseDescription& d) { d.alibi = 1, d.upstream = 3; }},
    {"sinks", [](CaseDescription& d) { d.sinks = true, d.causal = 1; }},
    {"documents", [](CaseDescription& d) { d.rows = 1, d.queries = 65, d.keys = 66; }},
    {"key lengths", [](CaseDescription& d) { d.key_lengths = true, d.batches = 2; }},
    {"wide heads", [](CaseDescription& d) { d.head_dim = 96, d.value_dim = 40; }},
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("gradients of the tensor core steps pass the judge on every mask and type") {
  for (const Element element : {Element::bf16, Element::fp16}) {
    for (const Feature& feature : kFeatures) {
      CaseDescription description = backward_case();
      feature.add(description);
      const test::DeviceCase device(description, element);
      for (const Index ranks : {1, 3}) {
        const RingPlan plan{ranks, Layout::zigzag, reference::Direction::down};
        const oracle::Report report = device.judge_backward(*cuda::find_kernel("05"), plan);
        INFO(feature.name << ", " << ranks << " ranks");
        CHECK(report.verdict != oracle::Verdict::fail);
        for (const AnswerKind kind : {AnswerKind::dq, AnswerKind::dk, AnswerKind::dv}) {
          CHECK(report.find(kind)->tally.failed == 0);
        }
      }
    }
  }
}

TEST_CASE("gradients are the same bits under every order of streams, threads and blocks") {
  CaseDescription description = backward_case();
  description.causal = 1, description.queries = description.keys = 40;
  const test::DeviceCase device(description, Element::bf16);
  for (const Index ranks : {1, 2, 3, 4}) {
    const RingPlan plan{ranks, Layout::striped, reference::Direction::up};
    reference::Gradients<float> first;
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      const Order order = seed == 1 ? Order::lazy : seed == 2 ? Order::eager : Order::random;
      const test::WithRanks options({order, seed, seed % 2 == 0, true});
      reference::Trace trace;
      const auto gradients = device.run_backward(*cuda::find_kernel("06"), plan, trace).gradients;
      if (seed == 1) first = gradients;
      INFO(ranks << " ranks, seed " << seed);
      CHECK(same_bits(first.dq, gradients.dq));
      CHECK(same_bits(first.dk, gradients.dk));
      CHECK(same_bits(first.dv, gradients.dv));
      Index hops = 0;
      for (const auto& event : trace) hops += event.action == reference::Action::post_gradient;
      CHECK(hops == ranks * ranks);  // every block's gradient comes home
    }
  }
}

TEST_CASE("a key that some queries do not see spoils their gradients with nothing") {
  CaseDescription description = backward_case();
  description.causal = 1, description.queries = description.keys = 61;
  const test::DeviceCase device(description, Element::bf16);
  reference::Trace trace;
  reference::Problem<float> problem = device.problem();
  std::vector<float> k(problem.k.data.begin(), problem.k.data.end());
  std::vector<float> v(problem.v.data.begin(), problem.v.data.end());
  const std::vector<float> dout(61 * 32, 1.0F);
  reference::Upstream<float> upstream;
  upstream.dout = reference::row_major<float>(dout, {1, 1, 61, 32});
  const cuda::Kernel& kernel = *cuda::find_kernel("05");
  const auto run = [&] {
    return cuda::ring_attention_backward(problem, upstream, Element::bf16, kernel, {}, trace);
  };
  auto clean = run().gradients.dq;
  for (std::size_t d = 60 * 32; d < 61 * 32; ++d) k[d] = v[d] = NAN;  // seen by the last query only
  problem.k.data = k, problem.v.data = v;
  auto spoilt = run().gradients.dq;
  CHECK(std::isnan(spoilt[60 * 32]));
  clean.resize(60 * 32), spoilt.resize(60 * 32);
  CHECK(same_bits(clean, spoilt));
}

TEST_CASE("gradients of a bias, and of fp32 inputs, are refused by this tier") {
  CaseDescription description = backward_case();
  description.bias = 4;
  const test::DeviceCase biased(description, Element::bf16);
  reference::Trace trace;
  CHECK_THROWS(biased.run_backward(*cuda::find_kernel("05"), {}, trace));
  const test::DeviceCase single(backward_case(), Element::fp32);
  CHECK_THROWS(single.run_backward(*cuda::find_kernel("01"), {}, trace));
}
