#include "oracle/generate/row_plan.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ringproof::oracle {
namespace {

/// 0 and the running sums of lengths; the last one takes what is left of `rows`.
std::vector<std::int32_t> starts(std::int64_t rows, const std::vector<std::int64_t>& lengths) {
  std::vector<std::int32_t> all{0};
  for (const std::int64_t length : lengths) {
    all.push_back(static_cast<std::int32_t>(std::min<std::int64_t>(rows, all.back() + length)));
  }
  all.push_back(static_cast<std::int32_t>(rows));
  return all;
}

/// Odd lengths, one document of a single row and one without any.
std::vector<std::int32_t> odd_documents(std::int64_t rows) {
  return starts(rows, {3, 0, 1, 7, rows / 4 * 2 + 1});
}

}  // namespace

std::vector<std::int32_t> key_lengths(const Recipe& recipe) {
  const std::int64_t odd = recipe.keys / 4 * 2 + 1;
  const std::int64_t cycle[] = {recipe.keys, 0, std::min(odd, recipe.keys), 1};
  std::vector<std::int32_t> lengths;
  for (std::int64_t b = 0; b < recipe.batches; ++b) {
    lengths.push_back(static_cast<std::int32_t>(cycle[b % 4]));
  }
  return lengths;
}

std::vector<std::int64_t> zigzag_order(std::int64_t rows, std::int64_t ranks) {
  std::vector<std::int64_t> order;
  for (std::int64_t r = 0; r < ranks; ++r) {
    for (const std::int64_t chunk : {r, 2 * ranks - 1 - r}) {
      const std::int64_t last = (chunk + 1) * rows / (2 * ranks);
      for (std::int64_t p = chunk * rows / (2 * ranks); p < last; ++p) order.push_back(p);
    }
  }
  return order;
}

std::vector<std::int64_t> striped_order(std::int64_t rows, std::int64_t ranks) {
  std::vector<std::int64_t> order;
  for (std::int64_t r = 0; r < ranks; ++r) {
    for (std::int64_t p = r; p < rows; p += ranks) order.push_back(p);
  }
  return order;
}

RowLists row_lists(const Recipe& recipe, Random random) {
  RowLists lists;
  const std::int64_t rows = recipe.keys;
  switch (recipe.rows) {
    case RowPlan::plain:
      break;
    case RowPlan::lengths:
      lists.key_lengths = key_lengths(recipe);
      break;
    case RowPlan::documents:
      lists.cu_seqlens_q = lists.cu_seqlens_k = odd_documents(rows);
      break;
    case RowPlan::documents_apart:
      // Documents with keys only, with queries only, with more of one or of the other.
      lists.cu_seqlens_k = starts(rows, {rows / 4 + 1, 0, rows / 3, 1});
      lists.cu_seqlens_q =
          starts(recipe.queries, {recipe.queries / 5 + 1, 2, recipe.queries / 4, 0});
      break;
    case RowPlan::zigzag:
      lists.positions = zigzag_order(rows, 3);
      break;
    case RowPlan::striped:
      lists.positions = striped_order(rows, 5);
      break;
    case RowPlan::permuted: {
      const std::vector<std::int32_t> start = odd_documents(rows);
      lists.positions.resize(static_cast<std::size_t>(rows));
      std::iota(lists.positions.begin(), lists.positions.end(), 0);
      for (std::size_t n = lists.positions.size(); n > 1; --n) {
        const auto other = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(n)));
        std::swap(lists.positions[n - 1], lists.positions[other]);
      }
      for (const std::int64_t position : lists.positions) {
        const auto after = std::upper_bound(start.begin(), start.end(), position);
        lists.documents.push_back(static_cast<std::int32_t>(after - start.begin() - 1));
      }
      break;
    }
  }
  return lists;
}

}  // namespace ringproof::oracle
