// The ring between devices: right and bit for bit the same under many orders of streams and ranks.
#include <cstring>

#include "tests/support/catch.hpp"
#include "tests/unit/cuda/device_runs.hpp"

using namespace ringproof;
using cuda::Element;
using cuda_host::Order;
using reference::Index;
using reference::Layout;
using reference::RingPlan;

namespace {

test::CaseDescription ring_case() {
  test::CaseDescription description;
  description.queries = description.keys = 45;
  description.head_dim = description.value_dim = 16;
  description.causal = 1, description.seed = 3;
  return description;
}

}  // namespace

TEST_CASE(
    "C11: rings of 1, 2, 3, 4 and 8 devices give one answer under 50 orders of streams each") {
  const test::DeviceCase device(ring_case(), Element::bf16);
  const cuda::Kernel& last = cuda::best_kernel(Element::bf16);
  const Layout layouts[] = {Layout::contiguous, Layout::zigzag, Layout::striped};
  for (const Index ranks : {1, 2, 3, 4, 8}) {
    for (const Layout layout : layouts) {
      const oracle::Report report = device.judge(last, {ranks, layout, reference::Direction::down});
      INFO(ranks << " ranks");
      CHECK(report.verdict == oracle::Verdict::pass);
    }
    // The orders are the driver's matter, whatever the kernel: most of them with the cheapest one.
    const RingPlan plan{ranks, layouts[ranks % 3], reference::Direction::down};
    reference::Answer<float> first[2];
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
      const Order order = seed <= 2 ? Order::lazy : seed <= 4 ? Order::eager : Order::random;
      const test::WithRanks options({order, seed, seed % 2 == 0, true});
      const bool with_last = seed <= 6;
      reference::Trace trace;
      auto answer = device.run(with_last ? last : *cuda::find_kernel("01"), plan, trace);
      auto& expected = first[with_last ? 0 : 1];
      if (expected.out.empty()) expected = answer;
      INFO(ranks << " ranks, seed " << seed);
      CHECK(std::memcmp(expected.out.data(), answer.out.data(), answer.out.size() * 4) == 0);
      CHECK(std::memcmp(expected.lse.data(), answer.lse.data(), answer.lse.size() * 4) == 0);
    }
  }
}

TEST_CASE("C19: rings pass the judge where ranks own nothing, and both ways round") {
  test::CaseDescription description = ring_case();
  description.queries = 3, description.keys = 5;
  const test::DeviceCase small(description, Element::fp16);
  for (const cuda::Kernel& kernel : cuda::ladder()) {
    for (const auto direction : {reference::Direction::down, reference::Direction::up}) {
      const oracle::Report report = small.judge(kernel, {8, Layout::zigzag, direction});
      INFO(kernel.number);
      CHECK(report.verdict == oracle::Verdict::pass);
    }
  }
}

TEST_CASE("C5: the trace of the devices is the schedule: blocks, neighbours and bytes") {
  const Index P = 4;
  const test::DeviceCase device(ring_case(), Element::bf16);
  reference::Trace trace;
  device.run(*cuda::find_kernel("01"), {P, Layout::striped, reference::Direction::up}, trace);
  Index computed = 0, posted = 0, waited = 0;
  for (const reference::TraceEvent& event : trace) {
    const Index step = event.step;
    const Index held = reference::block_at(step, event.rank, P, reference::Direction::up);
    computed += event.action == reference::Action::compute;
    posted += event.action == reference::Action::post;
    waited += event.action == reference::Action::wait;
    if (event.action == reference::Action::wait) {
      CHECK(event.peer == (event.rank + 1) % P);
      CHECK(event.block == reference::block_at(step + 1, event.rank, P, reference::Direction::up));
    } else {
      CHECK(event.block == held);
    }
    if (event.action != reference::Action::post) continue;
    CHECK(event.peer == (event.rank + P - 1) % P);
    const reference::Sharding keys{Layout::striped, 45, P};
    CHECK(event.bytes == 2 * reference::row_count(keys, held) * 32 * 2);  // k and v, padded, bf16
  }
  CHECK(computed == P * P);
  CHECK(posted == P * (P - 1));
  CHECK(waited == P * (P - 1));
}

TEST_CASE(
    "C23: one device streams its own memory, O(N); a ring streams the network, O(N/P) a device") {
  // The table's other cells: what a kernel keeps on chip is tested in shared_memory_test.cpp, the
  // bottlenecks in C15.
  const auto counts = [](Index N, Index P) {
    test::CaseDescription description = ring_case();
    description.queries = description.keys = N;
    const test::DeviceCase device(description, Element::bf16);
    reference::Trace trace;
    device.run(cuda::best_kernel(Element::bf16), {P, Layout::contiguous}, trace);
    return cuda_host::rank_counts();
  };
  const Index b = 32;
  const auto bytes = [&](Index N, Index P) {
    return static_cast<Index>(counts(N, P).device_bytes);
  };
  // One device: nothing is sent, and memory is a straight line in N: no N x N matrix.
  CHECK(counts(4 * b, 1).messages == 0);
  const Index first = bytes(2 * b, 1) - bytes(b, 1), second = bytes(4 * b, 1) - bytes(2 * b, 1);
  CHECK(first > 0);
  CHECK(second == 2 * first);
  // A ring: K and V come by P (P - 1) messages, and at fixed b nothing grows.
  CHECK(counts(4 * b, 4).messages > 0);
  CHECK(bytes(4 * b, 4) == bytes(2 * b, 2));
  CHECK(bytes(8 * b, 8) == bytes(2 * b, 2));
  CHECK(2 * bytes(4 * b, 4) < bytes(4 * b, 1));
}

TEST_CASE("a ring that is refused leaves no trace of itself: heads too wide, a type not taken") {
  test::CaseDescription description = ring_case();
  description.head_dim = 130;
  const test::DeviceCase wide(description, Element::bf16);
  reference::Trace trace;
  CHECK_THROWS(wide.run(*cuda::find_kernel("01"), {}, trace));
  const test::DeviceCase single(ring_case(), Element::fp32);
  CHECK_THROWS(single.run(*cuda::find_kernel("05"), {}, trace));
}
