// Sums over rows, added to by hand: where an addend goes, that bounds add up, and that merging
// groups of rows gives what adding them one by one gives. Bounds and values are small integers, so
// that every sum is exact.
#include "oracle/judge/summed_rows.hpp"

#include <limits>

#include "tests/support/catch.hpp"

using namespace ringproof::oracle;

namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

/// A row of keys 1, 2, 3, the middle one hidden, with addends 10, 20 and 30 times its query's.
struct AddedRow {
  RowTruth truth;
  RowGradients gradients;
  std::vector<double> bound;  // [keys of the row]

  AddedRow(std::int64_t b, std::int64_t h, std::int64_t i) {
    truth.b = b;
    truth.h = h;
    truth.i = i;
    truth.keys.first = 1;
    truth.score = {0, kHidden, 0};
    const double unit = static_cast<double>(i + 1);
    gradients.dbias = {{10 * unit, 0, 0}, {20 * unit, 0, 0}, {30 * unit, 0, 0}};
    gradients.dsink = {unit, 0, 0};
    bound = {unit, 100, 2 * unit};
  }
  void add_to(RowSums& sums) const { sums.add(truth, gradients, bound.data(), 4); }
};

double value(const SummedElement& element) { return element.value.value().hi; }

RowSums wanted(const BiasShape& shape) {
  RowSums sums;
  sums.bias_shape = shape;
  sums.sinks_wanted = true;
  return sums;
}

}  // namespace

TEST_CASE("addends and bounds of rows that share an element add up") {
  RowSums sums = wanted({1, 2, 1, 4});
  AddedRow(0, 1, 0).add_to(sums);
  AddedRow(1, 1, 2).add_to(sums);
  const SummedRow* row = sums.bias.find(1);
  REQUIRE(row != nullptr);
  REQUIRE(row->elements.size() == 4);
  CHECK(value(row->elements[1]) == 10 + 30);
  CHECK(row->elements[1].bound == 1 + 3);
  CHECK(value(row->elements[3]) == 30 + 90);
  CHECK(row->elements[3].bound == 2 + 6);
  // Key 0 is before the row's first, key 2 is hidden from it.
  for (const std::size_t column : {0, 2}) {
    CHECK(value(row->elements[column]) == 0);
    CHECK(row->elements[column].bound == 0);
  }
  CHECK(sums.bias.find(0) == nullptr);
  const SummedRow* sink = sums.sinks.find(1);
  REQUIRE(sink != nullptr);
  CHECK(value(sink->elements[0]) == 1 + 3);
  CHECK(sink->elements[0].bound == 4 + 4);
}

TEST_CASE("a bias of one column takes all visible keys of its row") {
  RowSums sums = wanted({2, 2, 3, 1});
  AddedRow(1, 0, 2).add_to(sums);
  const SummedRow* row = sums.bias.find((1 * 2 + 0) * 3 + 2);
  REQUIRE(row != nullptr);
  REQUIRE(row->elements.size() == 1);
  CHECK(value(row->elements[0]) == 30 + 90);
  CHECK(row->elements[0].bound == 3 + 6);
}

TEST_CASE("merged groups of rows are the rows one by one") {
  RowSums first = wanted({1, 1, 1, 4}), second = first, together = first;
  for (std::int64_t i = 0; i < 5; ++i) {
    const AddedRow row(0, 0, i);
    row.add_to(i < 2 ? first : second);
    row.add_to(together);
  }
  first.merge(second);
  for (std::size_t column = 0; column < 4; ++column) {
    const SummedElement& merged = first.bias.find(0)->elements[column];
    const SummedElement& expected = together.bias.find(0)->elements[column];
    CHECK(value(merged) == value(expected));
    CHECK(merged.bound == expected.bound);
  }
  CHECK(first.sinks.find(0)->elements[0].bound == 20);
}

TEST_CASE("a row that is not judged is said of every sum it belongs to, the first reason stays") {
  RowSums sums = wanted({1, 1, 1, 4}), later = sums;
  AddedRow(0, 0, 0).add_to(sums);
  const AddedRow row(0, 0, 1);
  later.refuse(row.truth, "first");
  later.refuse(row.truth, "second");
  CHECK(later.bias.find(0)->not_applicable == "first");
  CHECK(later.sinks.find(0)->not_applicable == "first");
  sums.merge(later);
  CHECK(sums.bias.find(0)->not_applicable == "first");
  AddedRow failed(0, 0, 2);
  failed.gradients.failed = true;
  failed.add_to(sums);
  CHECK(sums.bias.find(0)->failed);
  CHECK(sums.sinks.find(0)->failed);
  CHECK(value(sums.sinks.find(0)->elements[0]) == 1);
}
