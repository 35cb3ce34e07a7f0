// Orders, documents and lengths: integers, tested on all small sizes.
#include <algorithm>
#include <numeric>

#include "oracle/generate/row_plan.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace ringproof::oracle;

std::vector<std::int64_t> counting(std::int64_t rows) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(rows));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Recipe recipe_of(std::int64_t queries, std::int64_t keys, RowPlan plan) {
  Recipe recipe;
  recipe.queries = queries;
  recipe.keys = keys;
  recipe.rows = plan;
  recipe.batches = 4;
  return recipe;
}

bool is_packing(const std::vector<std::int32_t>& starts, std::int64_t rows) {
  return starts.front() == 0 && starts.back() == rows &&
         std::is_sorted(starts.begin(), starts.end());
}

}  // namespace

TEST_CASE("ring orders are permutations, whatever the sizes") {
  for (std::int64_t rows = 0; rows <= 40; ++rows) {
    for (std::int64_t ranks = 1; ranks <= 9; ++ranks) {
      for (auto order : {zigzag_order(rows, ranks), striped_order(rows, ranks)}) {
        std::sort(order.begin(), order.end());
        REQUIRE(order == counting(rows));
      }
    }
  }
}

TEST_CASE("zig-zag pairs an early chunk with a late one") {
  CHECK(zigzag_order(12, 2) == std::vector<std::int64_t>{0, 1, 2, 9, 10, 11, 3, 4, 5, 6, 7, 8});
  CHECK(striped_order(5, 2) == std::vector<std::int64_t>{0, 2, 4, 1, 3});
}

TEST_CASE("packed documents cover the rows, and one of them is empty") {
  for (std::int64_t rows = 5; rows <= 40; ++rows) {
    const RowLists lists = row_lists(recipe_of(rows, rows, RowPlan::documents), Random(1, ""));
    REQUIRE(is_packing(lists.cu_seqlens_q, rows));
    REQUIRE(lists.cu_seqlens_q == lists.cu_seqlens_k);
    REQUIRE(lists.cu_seqlens_q[1] == lists.cu_seqlens_q[2]);
    const RowLists apart =
        row_lists(recipe_of(rows, 2 * rows, RowPlan::documents_apart), Random(1, ""));
    REQUIRE(is_packing(apart.cu_seqlens_q, rows));
    REQUIRE(is_packing(apart.cu_seqlens_k, 2 * rows));
    REQUIRE(apart.cu_seqlens_q.size() == apart.cu_seqlens_k.size());
  }
}

TEST_CASE("permuted rows keep their documents") {
  const RowLists packed = row_lists(recipe_of(33, 33, RowPlan::documents), Random(1, ""));
  const RowLists lists = row_lists(recipe_of(33, 33, RowPlan::permuted), Random(1, "rows"));
  CHECK(lists.positions != counting(33));
  for (std::size_t n = 0; n < lists.positions.size(); ++n) {
    const auto document = static_cast<std::size_t>(lists.documents[n]);
    CHECK(packed.cu_seqlens_k[document] <= lists.positions[n]);
    CHECK(lists.positions[n] < packed.cu_seqlens_k[document + 1]);
  }
}

TEST_CASE("lengths are full, zero, odd and one") {
  CHECK(key_lengths(recipe_of(17, 17, RowPlan::lengths)) == std::vector<std::int32_t>{17, 0, 9, 1});
}
