// Rows at the limits of double-double: what lies beyond goes to intervals, what lies before is
// certified.
#include <cmath>
#include <limits>

#include "oracle/truth/truth.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/truth/families.hpp"

namespace ringproof::test {
namespace {

using namespace oracle;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// All rows of a problem of one head.
std::vector<RowTruth> all_rows(const Problem& problem) {
  const HeadTruth head(problem, 0, 0, Precision::fast);
  std::vector<RowTruth> rows(static_cast<std::size_t>(problem.queries));
  for (std::int64_t i = 0; i < problem.queries; ++i) {
    const HeadTruth::RowId id{0, i};
    head.rows({&id, 1}, &rows[static_cast<std::size_t>(i)]);
  }
  return rows;
}

Shape small_shape() {
  Shape shape;
  shape.queries = 3;
  shape.keys = 70;
  return shape;
}

TEST_CASE("scores that are too large, or known too badly, go to intervals") {
  Shape shape = small_shape();
  shape.q_type = shape.kv_type = DType::f64;
  shape.scale = 0x1p-990;
  OwnedProblem huge = make_problem(Family::equal_scores, shape, 9);
  for (const Tensor* tensor : {&huge.problem.q, &huge.problem.k}) {
    for (std::int64_t n = 0; n < tensor->shape[2]; ++n) {
      encode(DType::f64, 0x1p490, const_cast<std::byte*>(tensor->address(0, 0, n, 0)));
    }
  }
  for (const RowTruth& row : all_rows(huge.problem)) {
    CHECK(row.lse.radius == kInfinity);
  }
  shape = small_shape();
  shape.scale = 0x1p60;  // equal scores, but each off by more than 2^-45
  const OwnedProblem vague = make_problem(Family::equal_scores, shape, 9);
  for (const RowTruth& row : all_rows(vague.problem)) {
    CHECK(row.lse.radius == kInfinity);
  }
}

TEST_CASE("distances count in both directions, and as far as a number holds them") {
  Shape shape = small_shape();
  shape.alibi = true;
  OwnedProblem owned = make_problem(Family::randn, shape, 9);
  const Problem& p = owned.problem;
  for (const RowTruth& row : all_rows(p)) {
    REQUIRE(std::isfinite(row.lse.radius));
    for (std::int64_t j = 0; j < shape.keys; ++j) {
      const double steps =
          std::abs(static_cast<double>(p.position_q[static_cast<std::size_t>(row.i)] -
                                       p.position_k[static_cast<std::size_t>(j)]));
      CHECK(row.alibi[static_cast<std::size_t>(j)] == -p.alibi_slopes.at(0, 0, 0, 0) * steps);
    }
  }
  // A product of 64 bits has two words; a distance of 54 bits is left to intervals.
  const auto rows_at = [&](std::int64_t distance, double slope) {
    owned.problem.position_q.assign(3, distance);
    for (std::int64_t j = 0; j < shape.keys; ++j) {
      owned.problem.position_k[static_cast<std::size_t>(j)] = j;
    }
    index_keys(owned.problem);
    encode(DType::f32, round_nearest(DType::f32, slope),
           const_cast<std::byte*>(p.alibi_slopes.address(0, 0, 0, 0)));
    return all_rows(p);
  };
  for (const RowTruth& row : rows_at((1LL << 40) + 12345, 0x1.3c0ca5p-42)) {
    RowTruth exact;
    interval_row(p, 0, 0, row.i, 256, exact);
    REQUIRE(std::isfinite(row.lse.radius));
    CHECK(std::abs((row.lse.hi - exact.lse.hi) + (row.lse.lo - exact.lse.lo)) <= row.lse.radius);
  }
  for (const RowTruth& row : rows_at((1LL << 53) + 101, 0x1p-60)) {
    CHECK(row.lse.radius == kInfinity);
  }
}

/// One row of binary64 numbers; all of K and V are zeros and ones.
OwnedProblem one_row(std::int64_t keys, std::int64_t head_dim) {
  Shape shape;
  shape.queries = shape.value_dim = 1;
  shape.keys = keys;
  shape.head_dim = head_dim;
  shape.scale = 1;
  shape.q_type = shape.kv_type = DType::f64;
  OwnedProblem owned = make_problem(Family::value_ones, shape, 3);
  for (std::int64_t j = 0; j < keys; ++j) {
    for (std::int64_t d = 0; d < head_dim; ++d) {
      encode(DType::f64, 0, const_cast<std::byte*>(owned.problem.k.address(0, 0, j, d)));
    }
  }
  return owned;
}
void put(const Tensor& tensor, std::int64_t row, std::int64_t column, double value) {
  encode(DType::f64, value, const_cast<std::byte*>(tensor.address(0, 0, row, column)));
}

TEST_CASE("a weight that is dropped may stand at a huge value") {
  // In a tile of its own, so that no larger weight stands beside the value.
  const OwnedProblem owned = one_row(65, 1);
  const Problem& p = owned.problem;
  put(p.q, 0, 0, 1);
  put(p.k, 64, 0, -695);
  put(p.v, 64, 0, 0x1p959);
  const RowTruth row = all_rows(p).front();
  RowTruth exact;
  interval_row(p, 0, 0, 0, 512, exact);
  REQUIRE(std::isfinite(row.out[0].radius));
  CHECK(exact.out[0].hi > 1 + 0x1p-52);
  CHECK(std::abs((row.out[0].hi - exact.out[0].hi) + row.out[0].lo - exact.out[0].lo) <=
        row.out[0].radius);
  // Dropped from the sums, not from the promise about p.
  CHECK(std::abs(row.p[64] / exact.p[64] - 1) < 0x1p-40);
}

TEST_CASE("a weight that is hardly known goes to intervals, however small it seems") {
  // 2^106 - 2^106 - 600: known to 64 or so, and so a weight anywhere up to e^-470.
  const OwnedProblem owned = one_row(2, 3);
  const Problem& p = owned.problem;
  put(p.q, 0, 0, 0x1p60);
  put(p.q, 0, 1, 0x1p60);
  put(p.q, 0, 2, 1);
  put(p.k, 1, 0, 0x1p46);
  put(p.k, 1, 1, -0x1p46);
  put(p.k, 1, 2, -600);
  CHECK(all_rows(p).front().lse.radius == kInfinity);
}

}  // namespace
}  // namespace ringproof::test
