// The ladder: the first step against the scalar tier bit for bit, every step before the judge.
#include <cmath>
#include <cstdio>
#include <cstring>

#include "cuda/device/rules.cuh"
#include "cuda/host/grid.hpp"
#include "tests/support/property.hpp"
#include "tests/unit/cuda/device_runs.hpp"
#include "tests/unit/cuda/launches.hpp"

using namespace ringproof;
using cuda::Element;
using reference::Index;
using reference::Layout;
using reference::RingPlan;
using test::CaseDescription;

namespace {

const Element kElements[] = {Element::fp32, Element::bf16, Element::fp16};

CaseDescription plain(Index queries, Index keys, Index width) {
  CaseDescription description;
  description.queries = queries, description.keys = keys;
  description.head_dim = description.value_dim = width;
  description.seed = static_cast<unsigned>(queries * 1000 + keys + width);
  return description;
}

/// What a mask or a score rule adds to a plain description, by name.
struct Feature {
  const char* name;
  void (*add)(CaseDescription&);
};

const Feature kFeatures[] = {
    {"full", [](CaseDescription&) {}},
    {"causal", [](CaseDescription& d) { d.causal = 2; }},
    {"window", [](CaseDescription& d) { d.window_left = 20, d.window_right = 9; }},
    {"causal window, grouped heads",
     [](CaseDescription& d) { d.causal = 1, d.window_left = 13, d.kv_heads = 2, d.group = 2; }},
    {"softcap", [](CaseDescription& d) { d.softcap = 2; }},
    {"ALiBi", [](CaseDescription& d) { d.alibi = 1, d.causal = 2, d.kv_heads = 2; }},
    {"sinks", [](CaseDescription& d) { d.sinks = true, d.causal = 1; }},
    {"packed documents", [](CaseDescription& d) { d.rows = 1, d.causal = 2; }},
    {"listed positions", [](CaseDescription& d) { d.rows = 4, d.causal = 1, d.batches = 2; }},
    {"key lengths", [](CaseDescription& d) { d.key_lengths = true, d.batches = 2; }},
    {"bias", [](CaseDescription& d) { d.bias = 4, d.kv_heads = 2; }},
    {"mask", [](CaseDescription& d) { d.mask = 3, d.empty_row = 1; }},
    {"another width of values", [](CaseDescription& d) { d.head_dim = 24, d.value_dim = 40; }},
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t n = 0; n < a.size(); ++n) {
    if (std::isnan(a[n]) && std::isnan(b[n])) continue;
    if (std::memcmp(&a[n], &b[n], sizeof a[n]) != 0) return false;
  }
  return true;
}

void expect_pass(const oracle::Report& report, const std::string& what) {
  INFO(what);
  CHECK(report.verdict != oracle::Verdict::fail);
  CHECK(report.find(oracle::AnswerKind::out)->tally.failed == 0);
  CHECK(report.find(oracle::AnswerKind::lse)->tally.failed == 0);
}

/// Numbers of rows around the size of a tile.
constexpr Index kTails[] = {1, 37, 64, 65, 100, 130};

struct Count {
  int run = 0, passed = 0;
};

/// One step of the ladder on all features and types, each with one tail of queries and one of keys;
/// the six shifts together give every tail to every feature.
Count judge_step(const cuda::Kernel& kernel, int shift) {
  const Index kWidths[] = {32, 64, 128};
  Count count;
  for (const Element element : kElements) {
    if (kernel.contract(element).empty()) continue;
    for (const Feature& feature : kFeatures) {
      const int run = ++count.run;
      CaseDescription description =
          plain(kTails[(run + shift) % 6], kTails[(run / 2 + 1 + shift) % 6], kWidths[run % 3]);
      feature.add(description);
      const test::DeviceCase device(description, element);
      const oracle::Report report = device.judge(kernel, {});
      expect_pass(report, std::string(kernel.number) + " " + feature.name + " " +
                              std::to_string(description.queries) + " x " +
                              std::to_string(description.keys));
      count.passed += report.verdict == oracle::Verdict::pass;
    }
  }
  INFO(count.passed << " of " << count.run);
  CHECK(count.passed * 10 >= count.run * 9);  // the others have nothing that could be refused
  return count;
}

void judge_step(const char* number) { judge_step(*cuda::find_kernel(number), 0); }

}  // namespace

TEST_CASE("step 01 agrees with the scalar tier bit for bit, whatever the case says") {
  const cuda::Kernel& naive = *cuda::find_kernel("01");
  test::property("same bits", [&](CaseDescription description) {
    description.factors = 0;
    const Element element = *rc::gen::elementOf(std::vector<Element>(kElements, kElements + 3));
    const test::DeviceCase device(description, element);
    const RingPlan plan{*rc::gen::inRange<Index>(1, 5),
                        *rc::gen::element(Layout::contiguous, Layout::zigzag, Layout::striped),
                        *rc::gen::element(reference::Direction::down, reference::Direction::up)};
    reference::Trace trace, scalar_trace;
    const auto answer = device.run(naive, plan, trace);
    const auto scalar = reference::ring_attention(device.problem(), plan, scalar_trace);
    RC_ASSERT(same_bits(answer.out, scalar.out));
    RC_ASSERT(same_bits(answer.lse, scalar.lse));
    Index pairs = 0, scalar_pairs = 0;
    for (const auto& event : trace) pairs += event.pairs;
    for (const auto& event : scalar_trace) scalar_pairs += event.pairs;
    RC_ASSERT(pairs == scalar_pairs);
  });
}

TEST_CASE("step 01 passes the judge on every mask, type, width and tail") { judge_step("01"); }
TEST_CASE("step 02 passes the judge on every mask, type, width and tail") { judge_step("02"); }
TEST_CASE("step 03 passes the judge on every mask, type, width and tail") { judge_step("03"); }
TEST_CASE("step 04 passes the judge on every mask, type, width and tail") { judge_step("04"); }
TEST_CASE("step 05 passes the judge on every mask, type, width and tail") { judge_step("05"); }
TEST_CASE("step 06 passes the judge on every mask, type, width and tail") { judge_step("06"); }
TEST_CASE("no step of the ladder is left out of these tests") { CHECK(cuda::ladder().size() == 6); }

// Two minutes, so only by name: build/tests/cuda_tier_test "[.product]".
TEST_CASE("every step passes the judge on every mask and type with every tail", "[.product]") {
  Count all;
  for (const cuda::Kernel& kernel : cuda::ladder()) {
    for (int shift = 0; shift < 6; ++shift) {
      const Count count = judge_step(kernel, shift);
      all.run += count.run, all.passed += count.passed;
    }
  }
  std::printf("%d cases, %d certified PASS\n", all.run, all.passed);
  CHECK(all.run == (4 * 3 + 2 * 2) * 13 * 6);
}

TEST_CASE("C19: the last step passes the judge on random cases, layouts and numbers of ranks") {
  test::property("no answer is refused", [&](CaseDescription description) {
    description.factors = 0;
    description.queries += *rc::gen::inRange<Index>(0, 80);
    description.keys += *rc::gen::inRange<Index>(0, 80);
    const Element element = *rc::gen::element(Element::bf16, Element::fp16);
    const test::DeviceCase device(description, element);
    const RingPlan plan{*rc::gen::inRange<Index>(1, 6),
                        *rc::gen::element(Layout::contiguous, Layout::zigzag, Layout::striped),
                        reference::Direction::down};
    const oracle::Report report = device.judge(cuda::best_kernel(element), plan);
    RC_ASSERT(report.verdict != oracle::Verdict::fail);
  });
}

TEST_CASE("the matrix units' other model of a sum passes under the same contract") {
  const test::WithDevice device_options({.matrix_sum = cuda_host::MatrixSum::truncated});
  for (const Element element : {Element::bf16, Element::fp16}) {
    CaseDescription description = plain(100, 130, 64);
    description.causal = 2;
    const test::DeviceCase device(description, element);
    for (const cuda::Kernel& kernel : cuda::ladder()) {
      if (kernel.contract(element).empty()) continue;
      expect_pass(device.judge(kernel, {}), std::string(kernel.number));
    }
  }
}

TEST_CASE("the order of threads and blocks changes no bit of any step") {
  for (const cuda::Kernel& kernel : cuda::ladder()) {
    const Element element = kernel.fp32.empty() ? Element::bf16 : Element::fp32;
    CaseDescription description = plain(70, 70, 32);
    description.causal = 1, description.kv_heads = 2;
    const test::DeviceCase device(description, element);
    reference::Trace trace;
    const auto in_order = device.run(kernel, {}, trace);
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      const test::WithDevice options({.seed = seed, .lazy_copies = seed == 1});
      const auto shuffled = device.run(kernel, {}, trace);
      INFO(kernel.number);
      CHECK(same_bits(in_order.out, shuffled.out));
      CHECK(same_bits(in_order.lse, shuffled.lse));
    }
  }
}

TEST_CASE("what no query sees may be NaN or infinite and changes no bit of any step") {
  const bool hidden_by_bias = GENERATE(false, true);
  std::vector<float> bias(61 * 61);
  for (std::size_t i = 0; i < 60; ++i) bias[i * 61 + 60] = -INFINITY;
  for (const cuda::Kernel& kernel : cuda::ladder()) {
    const Element element = kernel.fp32.empty() ? Element::bf16 : Element::fp32;
    CaseDescription description = plain(61, 61, 32);
    description.causal = hidden_by_bias ? 0 : 1;
    const test::DeviceCase device(description, element);
    reference::Trace trace;
    reference::Problem<float> problem = device.problem();
    if (hidden_by_bias) problem.bias = reference::row_major<float>(bias, {1, 1, 61, 61});
    // The last key is seen by the last query alone, and lies in one tile with keys that all see:
    // the other rows must stay as they are.
    std::vector<float> k(problem.k.data.begin(), problem.k.data.end());
    std::vector<float> v(problem.v.data.begin(), problem.v.data.end());
    const auto clean = cuda::ring_attention(problem, element, kernel, {}, trace);
    for (std::size_t d = 60 * 32; d < 61 * 32; ++d) {
      k[d] = d % 2 == 0 ? NAN : INFINITY;
      v[d] = d % 2 == 0 ? -INFINITY : NAN;
    }
    problem.k.data = k, problem.v.data = v;
    auto spoilt = cuda::ring_attention(problem, element, kernel, {}, trace);
    INFO(kernel.number << (hidden_by_bias ? ", bias" : ", causal"));
    CHECK(std::isnan(spoilt.out[60 * 32]));  // and the last row says so
    spoilt.out.resize(60 * 32), spoilt.lse.resize(60);
    CHECK(same_bits({clean.out.begin(), clean.out.begin() + 60 * 32}, spoilt.out));
    CHECK(same_bits({clean.lse.begin(), clean.lse.begin() + 60}, spoilt.lse));
  }
}

TEST_CASE("matrix loads of the tensor core steps meet no bank conflict") {
  for (const cuda::Kernel& kernel : cuda::ladder()) {
    if (!kernel.fp32.empty()) continue;
    for (const Index width : {32, 64, 128}) {
      const test::DeviceCase device(plain(64, 128, width), Element::bf16);
      cuda_host::device_counts() = {};
      reference::Trace trace;
      device.run(kernel, {}, trace);
      INFO(kernel.number << " width " << width);
      CHECK(cuda_host::device_counts().matrix_loads > 0);
      CHECK(cuda_host::device_counts().bank_conflicts == 0);
    }
  }
}

TEST_CASE("what a tile's corners say about its pairs is true of every pair, for all small tiles") {
  using cuda::Sight;
  Index wrong = 0, decided = 0, all = 0;
  for (int rule = 0; rule < 2 * 6 * 6; ++rule) {
    const bool causal = rule % 2 != 0;
    const Index left = rule / 2 % 6 - 1, right = rule / 12 - 1;
    for (Index query = -4; query <= 4; ++query) {
      for (Index queries = 1; queries <= 3; ++queries) {
        for (Index key = -4; key <= 4; ++key) {
          for (Index keys = 1; keys <= 3; ++keys) {
            Index seen = 0;
            for (Index i = query; i < query + queries; ++i) {
              for (Index j = key; j < key + keys; ++j) {
                seen += (!causal || reference::causal_allows(i, j)) &&
                        reference::window_allows(i, j, left, right);
              }
            }
            const Sight sight = cuda::sight_of(causal, left, right, query, query + queries - 1, key,
                                               key + keys - 1);
            const bool none = seen == 0, whole = seen == queries * keys;
            wrong += (sight == Sight::none && !none) || (sight == Sight::all && !whole);
            decided += sight != Sight::some;
            all += none || whole;
          }
        }
      }
    }
  }
  CHECK(wrong == 0);
  CHECK(decided * 100 >= all * 95);  // few tiles are looked at pair by pair without need
}
