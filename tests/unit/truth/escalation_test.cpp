// How often double-double does not settle a row of random numbers: rows it cannot certify, and rows
// with an element whose enclosure does not round to one number of the row's type. Counted on fixed
// seeds, for every storage type.
#include <cmath>
#include <cstdio>

#include "tests/support/catch.hpp"
#include "tests/unit/truth/families.hpp"
#include "tests/unit/truth/gradient_rows.hpp"

namespace ringproof::test {
namespace {

using namespace oracle;

/// All of [hi + lo - radius, hi + lo + radius] rounds to one number of the type.
bool rounds_to_one_number(const Certified& x, DType type) {
  if (!std::isfinite(x.radius)) return false;
  if (x.lo == 0 && x.radius == 0) return true;  // x.hi, exactly
  if (type == DType::f64) {
    // hi is the nearest number as long as the rest stays clear of half a unit on either side.
    const double above = std::nextafter(x.hi, HUGE_VAL) - x.hi;
    const double below = x.hi - std::nextafter(x.hi, -HUGE_VAL);
    return x.lo + x.radius < above / 2 && x.lo - x.radius > -below / 2;
  }
  const double low = std::nextafter(x.hi + (x.lo - x.radius), -HUGE_VAL);
  const double high = std::nextafter(x.hi + (x.lo + x.radius), HUGE_VAL);
  return round_nearest(type, low) == round_nearest(type, high);
}

bool settled(const std::vector<Certified>& elements, DType type) {
  for (const Certified& element : elements) {
    if (!rounds_to_one_number(element, type)) return false;
  }
  return true;
}

constexpr DType kTypes[] = {DType::f32,  DType::f64,     DType::f16,
                            DType::bf16, DType::f8_e4m3, DType::f8_e5m2};

Shape shape_of(DType type) {
  Shape shape;
  shape.heads = shape.kv_heads = 4;
  shape.queries = 3000;
  shape.keys = 64;
  shape.q_type = shape.kv_type = type;
  return shape;
}

TEST_CASE("fewer than one random row in ten thousand goes to intervals, whatever the type") {
  for (const DType type : kTypes) {
    const Shape shape = shape_of(type);
    const OwnedProblem owned = make_problem(Family::randn, shape, 77);
    long rows = 0, unsettled = 0;
    std::vector<RowTruth> batch(HeadTruth::kRows);
    for (std::int64_t h = 0; h < shape.heads; ++h) {
      const HeadTruth head(owned.problem, 0, h, Precision::fast);
      for (std::int64_t i = 0; i + HeadTruth::kRows <= shape.queries; i += HeadTruth::kRows) {
        std::vector<HeadTruth::RowId> ids;
        for (int r = 0; r < HeadTruth::kRows; ++r) ids.push_back({h, i + r});
        head.rows(ids, batch.data());
        for (const RowTruth& row : batch) {
          ++rows;
          const bool lse = rounds_to_one_number(row.lse, type);
          unsettled += lse && settled(row.out, type) ? 0 : 1;
        }
      }
    }
    std::printf("%-8s %ld of %ld rows to intervals\n", std::string(name(type)).c_str(), unsettled,
                rows);
    CHECK(unsettled * 10000 < rows);
  }
}

TEST_CASE("fewer than one gradient in ten thousand is left to intervals, whatever the type") {
  for (const DType type : kTypes) {
    Shape shape = shape_of(type);
    shape.queries = 256;
    OwnedProblem owned = make_problem(Family::randn, shape, 78);
    const Upstream upstream = make_upstream(Family::randn, shape, 78, owned);
    const Backward found =
        backward(owned.problem, upstream, Precision::fast, HeadTruth::kRows, 64, false);
    long gradients = 0, unsettled = found.failed;
    const auto count = [&](const Certified& x) {
      ++gradients;
      unsettled += rounds_to_one_number(x, type) ? 0 : 1;
    };
    for (const RowGradients& row : found.gradients) {
      for (const Certified& element : row.dq) count(element);
    }
    for (const GradientSums& sums : found.sums) {
      for (std::int64_t j = 0; j < shape.keys; ++j) {
        for (std::int64_t d = 0; d < shape.head_dim; ++d) count(sums.dk(j, d));
        for (std::int64_t c = 0; c < shape.value_dim; ++c) count(sums.dv(j, c));
      }
    }
    std::printf("%-8s %ld of %ld gradients to intervals\n", std::string(name(type)).c_str(),
                unsettled, gradients);
    CHECK(unsettled * 10000 < gradients);
  }
}

}  // namespace
}  // namespace ringproof::test
