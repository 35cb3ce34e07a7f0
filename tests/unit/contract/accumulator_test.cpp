// Log budgets of sums: every formula against a value worked out by hand, and the count of steps
// against kernels that are played through.
#include "oracle/contract/accumulator.hpp"

#include <algorithm>
#include <random>
#include <set>

#include "oracle/contract/ring_partition.hpp"
#include "oracle/contract/visible_terms.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/property.hpp"
#include "tests/unit/contract/row_fixture.hpp"

using namespace ringproof;
using namespace ringproof::oracle;

namespace {

using Model = Accumulator::Model;

Accumulator any_order(double u, bool rounded) {
  return {.model = Model::any_order, .u = u, .products_rounded = rounded, .of = {}};
}
Accumulator tree(double u, bool rounded, std::int64_t leaf) {
  return {.model = Model::tree, .u = u, .products_rounded = rounded, .leaf = leaf, .of = {}};
}
Accumulator mma(std::int64_t b, std::int64_t neab) {
  return {.model = Model::mma, .b = b, .neab = neab, .of = {}};
}
Accumulator blocked(std::int64_t block, double u, Accumulator inner) {
  return {.model = Model::blocked, .u = u, .block = block, .of = {std::move(inner)}};
}
Accumulator largest_of(std::vector<Accumulator> of) {
  return {.model = Model::max, .of = std::move(of)};
}

constexpr double kSingle = 0x1p-24;
const double kHat = hat(kSingle);

Terms scattered(std::vector<std::int64_t> runs, bool first_at_zero = false, std::int64_t cuts = 0,
                std::int64_t dealt_to = 1) {
  Terms terms;
  for (const auto r : runs) terms.count += r;
  terms.runs = std::move(runs);
  terms.first_at_zero = first_at_zero;
  terms.cuts = cuts;
  terms.dealt_to = dealt_to;
  return terms;
}

}  // namespace

TEST_CASE("hat(u) is the largest logarithm of a rounding factor") {
  CHECK(hat(0) == 0);
  CHECK(std::abs(hat(0.5) - std::log(2.0)) < 0x1p-50);
  CHECK(hat(kSingle) >= kSingle);
  CHECK(std::abs(std::exp(-hat(0.25)) - 0.75) < 0x1p-50);
  CHECK(std::exp(hat(0.25)) >= 1.25);
  CHECK(std::abs(sum_of_hats({0.5, 0.5}) - 2 * std::log(2.0)) < 0x1p-50);
}

TEST_CASE("a sum in any order rounds each term once for every addition but one") {
  CHECK(gamma(any_order(kSingle, false), Terms::contiguous(1)) == 0);
  CHECK(gamma(any_order(kSingle, true), Terms::contiguous(1)) == kHat);
  CHECK(gamma(any_order(kSingle, false), Terms::contiguous(2048)) == 2047 * kHat);
  CHECK(gamma(any_order(kSingle, true), Terms::contiguous(2048)) == 2048 * kHat);
  CHECK(gamma(any_order(kSingle, true), Terms{}) == kHat);  // no term counts as one
}

TEST_CASE("a tree rounds along a leaf and then once a level") {
  CHECK(gamma(tree(kSingle, false, 8), Terms::contiguous(64)) == (7 + 3) * kHat);
  CHECK(gamma(tree(kSingle, true, 8), Terms::contiguous(65)) == (7 + 4 + 1) * kHat);
  CHECK(gamma(tree(kSingle, true, 8), Terms::contiguous(5)) == (4 + 0 + 1) * kHat);
  CHECK(gamma(tree(kSingle, false, 1), Terms::contiguous(1024)) == 10 * kHat);
}

TEST_CASE("a matrix unit loses rho at every step that holds a term") {
  // b products cut at 2^-(23 + neab) each, and the sum cut at 24 bits.
  CHECK(gamma(mma(16, 2), Terms::contiguous(16)) == hat(5 * 0x1p-23));
  CHECK(gamma(mma(8, 2), Terms::contiguous(9)) == 2 * hat(3 * 0x1p-23));
  CHECK(gamma(mma(32, 2), Terms::contiguous(64)) == 2 * hat(9 * 0x1p-23));
  CHECK(gamma(mma(4, 0), Terms::contiguous(4)) == hat(5 * 0x1p-23));
  // Without a spare bit the largest addend is cut as well.
  CHECK(gamma(mma(32, -10), Terms::contiguous(32)) == hat(0x1p-23 + 33 * 0x1p-13));
}

TEST_CASE("blocks are summed from zero and their sums added one after the other") {
  CHECK(gamma(blocked(128, kSingle, any_order(kSingle, true)), Terms::contiguous(1024)) ==
        128 * kHat + 8 * kHat);
  CHECK(gamma(blocked(128, kSingle, any_order(kSingle, false)), Terms::contiguous(10)) ==
        9 * kHat + kHat);
  CHECK(gamma(blocked(128, kSingle, mma(16, 2)), Terms::contiguous(256)) ==
        8 * hat(5 * 0x1p-23) + 2 * kHat);
  // Sixteen terms, one in every eighth place, lie in eight steps of one block and may straddle two.
  const Terms sparse = scattered(std::vector<std::int64_t>(16, 1));
  CHECK(gamma(blocked(128, kSingle, mma(16, 2)), sparse) == 8 * hat(5 * 0x1p-23) + 16 * kHat);
}

TEST_CASE("alternatives count as their worst") {
  const auto list = largest_of({any_order(kSingle, false), mma(16, 2), mma(32, 2)});
  CHECK(gamma(list, Terms::contiguous(2048)) == 2047 * kHat);
  CHECK(gamma(list, Terms::contiguous(2)) == hat(9 * 0x1p-23));
}

TEST_CASE("a run of terms touches one tile more where its start is unknown") {
  CHECK(Terms::contiguous(33).steps(16) == 3);
  CHECK(scattered({33}).steps(16) == 1 + 2);
  CHECK(scattered({2}).steps(16) == 2);
  CHECK(scattered({1}).steps(16) == 1);
  CHECK(scattered({16, 16}, true).steps(16) == 1 + 2);
  CHECK(scattered({100}, true, 7).steps(16) == 7 + 7);
  CHECK(scattered({100}, true, 7, 4).steps(16) == 7 + 8 + 7);
  CHECK(scattered({3, 3}, true, 7, 4).steps(16) == 6);  // never more than there are terms
}

TEST_CASE("exact sums need rounding additions or spare bits") {
  CHECK(exact_where_representable(any_order(kSingle, true)));
  CHECK(exact_where_representable(blocked(8, kSingle, mma(16, 0))));
  CHECK_FALSE(exact_where_representable(largest_of({any_order(kSingle, true), mma(32, -10)})));
  CHECK(accumulator_digits(any_order(kSingle, true)) == 24);
  CHECK(accumulator_digits(any_order(0x1p-53, true)) == 53);
  CHECK(accumulator_digits(any_order(0x1p-23, true)) == 23);
  CHECK(accumulator_digits(largest_of({any_order(0x1p-53, true), mma(16, 2)})) == 24);
}

namespace {

/// Steps of `b` keys, on the grids of the ranks, that hold a visible key: what a ring kernel
/// executes.
std::int64_t steps_of_kernel(const test::RowFixture& fixture, RingLayout layout, std::int64_t ranks,
                             std::int64_t b) {
  const std::int64_t N = fixture.problem.keys;
  std::int64_t steps = 0;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    std::set<std::int64_t> touched;
    std::int64_t local = 0;
    for (std::int64_t j = 0; j < N; ++j) {
      if (owner_of(layout, j, N, ranks) != rank) continue;
      if (fixture.row.score[static_cast<std::size_t>(j)] != -INFINITY) touched.insert(local / b);
      ++local;
    }
    steps += static_cast<std::int64_t>(touched.size());
  }
  return steps;
}

Terms terms_of(const test::RowFixture& fixture, const Contract& contract) {
  RowKeys keys;
  keys.gather(fixture.row);
  Terms terms;
  visible_terms(contract, fixture.problem, fixture.row, keys, terms);
  return terms;
}

}  // namespace

TEST_CASE("no ring kernel executes more steps than S(b)") {
  test::property("steps played through never exceed the count", [] {
    const auto ranks = *rc::gen::inRange<std::int64_t>(1, 9);
    const auto N = *rc::gen::inRange<std::int64_t>(1, 200);
    const auto b = *rc::gen::element<std::int64_t>(1, 3, 4, 16);
    const auto layout =
        *rc::gen::element(RingLayout::contiguous, RingLayout::zigzag, RingLayout::striped);
    const bool known = *rc::gen::arbitrary<bool>();
    const auto density = *rc::gen::inRange(1, 30);
    test::RowFixture fixture(N, 1, 1);
    // Long runs with rare gaps, short runs with long gaps, and everything between.
    std::mt19937 generator(*rc::gen::arbitrary<std::uint32_t>());
    bool visible = generator() % 2 == 0;
    for (std::int64_t j = 0; j < N; ++j) {
      if (generator() % 30 < static_cast<unsigned>(density)) visible = !visible;
      if (!visible) fixture.hide(j);
    }
    if (known) fixture.problem.spec.ring = Ring{layout, RingOrder::down};
    fixture.finish();
    RC_PRE(fixture.row.visible > 0);
    const Contract contract = read_contract("bf16-ring" + std::to_string(ranks), Spec{});
    RC_ASSERT(terms_of(fixture, contract).steps(b) >= steps_of_kernel(fixture, layout, ranks, b));
  });
}

TEST_CASE("short runs across every end of a zigzag chunk are within 2R - 1 cuts") {
  // The hardest case for C: visible keys on both sides of all seven chunk ends of four ranks, and
  // second chunks that do not start a tile. Every distance of the runs from the ends is tried.
  const Contract contract = read_contract("bf16-ring4", Spec{});
  std::int64_t tightest = 1000;
  for (std::int64_t before = 0; before <= 4; ++before) {
    for (std::int64_t after = 0; after <= 4; ++after) {
      test::RowFixture fixture(80, 1, 1);
      for (std::int64_t j = 0; j < 80; ++j) {
        const bool inner = j >= before && j < 80 - after;
        const bool near_end = j % 10 < after || j % 10 >= 10 - before;
        if (!inner || !near_end) fixture.hide(j);
      }
      fixture.problem.spec.ring = Ring{RingLayout::zigzag, RingOrder::down};
      fixture.finish();
      if (fixture.row.visible == 0) continue;
      for (const std::int64_t b : {2, 3, 4, 7}) {
        const std::int64_t counted = terms_of(fixture, contract).steps(b);
        const std::int64_t executed = steps_of_kernel(fixture, RingLayout::zigzag, 4, b);
        CHECK(counted >= executed);
        tightest = std::min(tightest, counted - executed);
      }
    }
  }
  CHECK(tightest <= 1);  // the count is not far above
}
