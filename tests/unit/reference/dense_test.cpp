// Dense softmax and the rules between q.k and the weights, one hand-made case a rule.
#include "reference/dense.hpp"

#include <cmath>
#include <limits>

#include "tests/support/property.hpp"
#include "tests/unit/reference/random_problem.hpp"

using namespace ringproof;
using namespace ringproof::reference;
using test::Description;
using test::Exact;

namespace {

/// One head of `rows` queries and keys with all scores zero before bias; out is the mean of what is
/// seen.
struct Flat {
  std::vector<double> zeros, values;
  Problem<double> problem;

  Flat(Index queries, Index keys) : zeros(std::max(queries, keys), 0.0) {
    for (Index j = 0; j < keys; ++j) values.push_back(std::ldexp(1.0, static_cast<int>(j)));
    problem.queries = queries, problem.keys = keys;
    problem.head_dim = problem.value_dim = 1;
    problem.q = row_major<double>(zeros, {1, 1, queries, 1});
    problem.k = row_major<double>(zeros, {1, 1, keys, 1});
    problem.v = row_major<double>(values, {1, 1, keys, 1});
  }

  /// The keys that query i sees, as bits. With equal weights out times their number is the bitmap.
  std::vector<long> seen() const {
    const Answer<double> answer = dense_attention(problem);
    std::vector<long> bits;
    for (std::size_t i = 0; i < answer.out.size(); ++i) {
      bits.push_back(std::lround(answer.out[i] * std::exp(answer.lse[i])));
    }
    return bits;
  }
};

}  // namespace

TEST_CASE(
    "C2: softmax does not change under a shift of all scores, bit for bit in exact arithmetic") {
  test::property("out(s + c) == out(s), lse(s + c) == lse(s) + c", [](Description description) {
    description.bias = true;
    const int shift = *rc::gen::inRange(-40, 41);
    auto owned = test::build<Exact>(description);
    const Answer<Exact> plain = dense_attention(owned.problem);
    for (Exact& bias : owned.bias) bias = bias + Exact(shift);
    for (Exact& sink : owned.sinks) sink = sink + Exact(shift);
    const Answer<Exact> shifted = dense_attention(owned.problem);
    RC_ASSERT(shifted.out == plain.out);
    for (std::size_t row = 0; row < plain.lse.size(); ++row) {
      RC_ASSERT(shifted.lse[row] == plain.lse[row] + Exact(shift));
    }
  });
}

TEST_CASE("C19: causal masks align top left or bottom right") {
  Flat flat(2, 4);
  flat.problem.causal = true;
  flat.problem.offset = query_offset(Alignment::top_left, 2, 4);
  CHECK(flat.seen() == std::vector<long>{0b0001, 0b0011});
  flat.problem.offset = query_offset(Alignment::bottom_right, 2, 4);
  CHECK(flat.seen() == std::vector<long>{0b0111, 0b1111});

  Flat tall(4, 2);  // more queries than keys: bottom right hides everything from the first
  tall.problem.causal = true;
  tall.problem.offset = query_offset(Alignment::bottom_right, 4, 2);
  CHECK(tall.seen() == std::vector<long>{0, 0, 0b01, 0b11});
}

TEST_CASE("C19: windows are inclusive on both sides and hold without causal, too") {
  Flat flat(4, 4);
  flat.problem.window_left = 1;
  CHECK(flat.seen() == std::vector<long>{0b1111, 0b1111, 0b1110, 0b1100});
  flat.problem.window_right = 0;
  CHECK(flat.seen() == std::vector<long>{0b0001, 0b0011, 0b0110, 0b1100});
  flat.problem.window_left = -1, flat.problem.window_right = 1;
  CHECK(flat.seen() == std::vector<long>{0b0011, 0b0111, 0b1111, 0b1111});
  flat.problem.causal = true;
  CHECK(flat.seen() == std::vector<long>{0b0001, 0b0011, 0b0111, 0b1111});
}

TEST_CASE("C19: windows of any size on positions of any size do not overflow") {
  constexpr Index most = std::numeric_limits<Index>::max(),
                  least = std::numeric_limits<Index>::min();
  STATIC_REQUIRE(window_allows(most, least, most, -1) == false);
  STATIC_REQUIRE(window_allows(most, least, -1, 0));
  STATIC_REQUIRE(window_allows(least, most, 0, -1));
  STATIC_REQUIRE(window_allows(least, most, -1, most) == false);
  STATIC_REQUIRE(window_allows(most, 1, most - 1, 0));
  STATIC_REQUIRE(distance(least, most) == std::numeric_limits<std::uint64_t>::max());
}

TEST_CASE("C19: documents: packed boundaries, rows of none, positions counted inside each") {
  const std::vector<std::int32_t> bounds_q{0, 2, 2, 4}, bounds_k{0, 1, 3, 4};
  CHECK(documents_of(bounds_q, 5) == std::vector<std::int32_t>{0, 0, 2, 2, -1});
  CHECK(positions_in_documents(bounds_q, bounds_k, Alignment::top_left, 4) ==
        std::vector<Index>{0, 1, 0, 1});
  CHECK(positions_in_documents(bounds_q, bounds_k, Alignment::bottom_right, 4) ==
        std::vector<Index>{-1, 0, -1, 0});

  Flat flat(5, 4);
  const auto document_q = documents_of(bounds_q, 5), document_k = documents_of(bounds_k, 4);
  flat.problem.document_q = row_major<std::int32_t>(document_q, {1, 1, 5, 1});
  flat.problem.document_k = row_major<std::int32_t>(document_k, {1, 1, 4, 1});
  CHECK(flat.seen() == std::vector<long>{0b0001, 0b0001, 0b1000, 0b1000, 0});
}

TEST_CASE("C19: key lengths, masks and a bias of minus infinity hide keys") {
  Flat flat(2, 4);
  const std::vector<Index> length{3};
  flat.problem.key_lengths = row_major<Index>(length, {1, 1, 1, 1});
  CHECK(flat.seen() == std::vector<long>{0b0111, 0b0111});
  const std::vector<std::uint8_t> mask{1, 0, 1, 1, 0, 0, 0, 1};
  flat.problem.mask = row_major<std::uint8_t>(mask, {1, 1, 2, 4});
  CHECK(flat.seen() == std::vector<long>{0b0101, 0});
  const std::vector<double> bias{-INFINITY, 0, 0, 0};
  flat.problem.bias = row_major<double>(bias, {1, 1, 1, 4});
  CHECK(flat.seen() == std::vector<long>{0b0100, 0});
}

TEST_CASE("C19: scale, softcap, bias and ALiBi act in this order") {
  const std::vector<double> q{3.0}, k{2.0}, v{1.0}, bias{0.25}, slope{0.5};
  Problem<double> problem{.queries = 1, .keys = 1, .head_dim = 1, .value_dim = 1};
  problem.q = row_major<double>(q, {1, 1, 1, 1});
  problem.k = row_major<double>(k, {1, 1, 1, 1});
  problem.v = row_major<double>(v, {1, 1, 1, 1});
  problem.scale = 0.5;
  problem.softcap = 2;
  problem.bias = row_major<double>(bias, {1, 1, 1, 1});
  problem.alibi_slopes = row_major<double>(slope, {1, 1, 1, 1});
  problem.offset = 7;
  const double tanh_of_1_5 = Number<double>::hyperbolic_tangent(1.5);
  CHECK(dense_attention(problem).lse[0] == 2 * tanh_of_1_5 + 0.25 - 0.5 * 7);  // one key: lse = s
}

TEST_CASE(
    "C19: query head h reads key head h / (H / Hkv), and factors multiply inside the product") {
  Description description;
  description.kv_heads = 2, description.group = 3, description.queries = 3, description.keys = 4;
  description.head_dim = 2, description.value_dim = 2, description.scales = true;
  const auto grouped = test::build<Exact>(description);
  const Problem<Exact>& problem = grouped.problem;
  // The same problem with keys and values repeated for every query head and every factor applied.
  std::vector<Exact> q, k, v;
  for (Index h = 0; h < 6; ++h) {
    for (Index i = 0; i < 3; ++i) {
      for (Index d = 0; d < 2; ++d) q.push_back(problem.q(0, h, i, d) * grouped.q_scale[h]);
    }
    for (Index j = 0; j < 4; ++j) {
      for (Index d = 0; d < 2; ++d) {
        k.push_back(problem.k(0, h / 3, j, d) * grouped.k_scale[j]);
        v.push_back(problem.v(0, h / 3, j, d) * grouped.v_scale[d]);
      }
    }
  }
  Problem<Exact> plain = problem;
  plain.kv_heads = 6;
  plain.q = row_major<Exact>(q, {1, 6, 3, 2}), plain.q_scale = {};
  plain.k = row_major<Exact>(k, {1, 6, 4, 2}), plain.k_scale = {};
  plain.v = row_major<Exact>(v, {1, 6, 4, 2}), plain.v_scale = {};
  CHECK(dense_attention(problem).out == dense_attention(plain).out);
  CHECK(dense_attention(problem).lse == dense_attention(plain).lse);
}
