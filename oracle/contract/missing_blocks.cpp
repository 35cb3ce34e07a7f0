// Blocks of keys whose absence a row refuses, (43) (power.hpp).
#include <algorithm>
#include <cmath>

#include "oracle/contract/exact_columns.hpp"
#include "oracle/contract/functional.hpp"
#include "oracle/contract/output_format.hpp"
#include "oracle/contract/power.hpp"

namespace ringproof::oracle {

namespace {

// A functional costs another pass over the values, so a row tries it on few blocks: those that no
// single column refuses, and only if no more of them are left at one length than may be tried.
constexpr int kMostFunctionals = 16;

/// The weight of a block that holds no visible key: it cannot be missing.
constexpr double kNoKey = -1;

/// e_S of one column, whose truth without the keys is `without`.
double bound_without(const BoundedRow& b, const FormSums& form, const LeftOut& left,
                     std::int64_t column, double without) {
  if (!(left.denominator > 0)) return HUGE_VAL;
  const auto c = static_cast<std::size_t>(column);
  const MergeBudget& budget = form.budget;
  const double o = std::fabs(without);
  const double G = column_underflow(budget, b.range, column);
  const double sums = form.errors.common[c] + form.errors.numerator[c] +
                      form.weights.common_sum * std::fabs(without - b.out[c]) +
                      form.weights.denominator_sum * o +
                      (G + budget.denominator_underflow * o) / b.row.W + budget.partial_underflow;
  const double largest = largest_magnitude(b.row, b.range, column);
  const double e0 = (left.factor * sums + left.extra * (largest + o)) / left.denominator;
  return budget.grow_division * e0 + budget.relative_division * o +
         final_underflow(b.row, budget, b.range, column);
}

/// Numbers within `both` bounds of two truths, rounded to the output, may be equal up to this
/// distance.
double accepted_distance(const OutputRounding& rounding, double out, double without, double both) {
  return both + rounding.u * (std::fabs(out) + std::fabs(without) + both) + 2 * rounding.eta;
}

class BlockTest {
 public:
  BlockTest(const BoundedRow& b, const RowBound& bound, BlockScratch& scratch)
      : b_(b), bound_(bound), scratch_(scratch), rounding_(output_rounding(b.row.contract->out)) {
    scratch_.left.resize(b.form_count);
    fit(scratch_.without, b.rows.columns + kPadding);
    fit(scratch_.signs, b.rows.columns + kPadding);
    scratch_.column.abs_y = b.column.abs_y;  // signs do not change it
  }

  /// True if every one of these blocks is refused when it is missing. Sets `largest` to their
  /// largest weight.
  bool refuses_all(const BlockSums& sums, std::int64_t blocks, double& largest) {
    auto& unsure = scratch_.unsure;
    unsure.clear();
    largest = 0;
    for (std::int64_t k = 0; k < blocks; ++k) {
      const double weight = sums.weight[static_cast<std::size_t>(k)];
      if (weight == kNoKey) continue;
      if (!(weight < 1)) return false;
      largest = std::max(largest, weight);
      leave_out(sums, k);
      if (a_column_refuses()) continue;
      if (static_cast<int>(unsure.size()) == kMostFunctionals - tried_) return false;
      unsure.push_back(k);
    }
    return std::all_of(unsure.begin(), unsure.end(), [&](std::int64_t k) {
      leave_out(sums, k);
      return the_functional_refuses();
    });
  }

 private:
  /// Takes the keys of block k out of the truth and out of the budgets.
  void leave_out(const BlockSums& sums, std::int64_t k) {
    const double weight = sums.weight[static_cast<std::size_t>(k)];
    const double* values = sums.values.data() + k * b_.rows.columns;
    for (std::size_t f = 0; f < b_.form_count; ++f) {
      scratch_.left[f] = left_out(b_.row, b_.forms[f], weight);
    }
    for (std::int64_t c = 0; c < b_.rows.columns; ++c) {
      const auto column = static_cast<std::size_t>(c);
      scratch_.without[column] = (b_.out[column] - values[c]) / (1 - weight);
    }
  }

  bool a_column_refuses() const {
    for (std::int64_t column = 0; column < b_.rows.columns; ++column) {
      const auto c = static_cast<std::size_t>(column);
      const double out = b_.out[c], without = scratch_.without[c];
      double e = b_.exact[c] ? exact_column_bound(b_.row, 1, without) : 0;
      for (std::size_t f = 0; f < b_.form_count && !b_.exact[c]; ++f) {
        e = std::max(e, bound_without(b_, b_.forms[f], scratch_.left[f], column, without));
      }
      if (std::fabs(without - out) >
          accepted_distance(rounding_, out, without, bound_.out[c] + e)) {
        return true;
      }
    }
    return false;
  }

  /// With g = sgn(o_S - o): the distance exceeds both bounds of (26).
  bool the_functional_refuses() {
    double distance = 0, y = 0, magnitude = 0, bounds = 0, bounds_without = 0;
    for (std::int64_t c = 0; c < b_.rows.columns; ++c) {
      const auto column = static_cast<std::size_t>(c);
      const double without = scratch_.without[column];
      scratch_.signs[column] = without < b_.out[column] ? -1.0 : 1.0;
      distance += std::fabs(without - b_.out[column]);
      y += scratch_.signs[column] * without;
      magnitude += std::fabs(without);
    }
    // The smallest conceivable bounds already exceed the distance: no pass over the values needed.
    if (distance <= rounding_.u * 2 * magnitude) return false;
    ++tried_;
    signed_column(b_.rows, scratch_.signs.data(), scratch_.column.y);
    for (std::size_t f = 0; f < b_.form_count; ++f) {
      const FunctionalSums sums = functional_sums(b_.row, b_.forms[f], b_.range, scratch_.column,
                                                  scratch_.signs.data(), b_.out, b_.rows.columns);
      bounds = std::max(bounds, functional_bound(b_.row, b_.forms[f], sums));
      bounds_without = std::max(
          bounds_without,
          functional_bound_without(b_.row, b_.forms[f], sums, scratch_.left[f], y, magnitude));
    }
    return distance > (bounds + bounds_without) * (1 + 0x1p-30);
  }

  const BoundedRow& b_;
  const RowBound& bound_;
  BlockScratch& scratch_;
  OutputRounding rounding_;
  int tried_ = 0;
};

/// Every single key of the row, by one of the columns under (26a) alone.
bool exact_columns_refuse_every_key(const BoundedRow& b, const RowBound& bound) {
  const OutputRounding rounding = output_rounding(b.row.contract->out);
  for (std::int64_t k = 0; k < b.rows.visible; ++k) {
    const double p = b.row.keys.p[static_cast<std::size_t>(k)];
    const double* v = b.rows.values + b.rows.index[k] * b.rows.stride;
    bool refused = false;
    for (std::size_t c = 0; c < b.exact.size() && !refused; ++c) {
      const double without = (b.out[c] - p * v[c]) / (1 - p);
      const double both = bound.out[c] + exact_column_bound(b.row, 1, without);
      refused =
          b.exact[c] != 0 && p < 1 &&
          std::fabs(without - b.out[c]) > accepted_distance(rounding, b.out[c], without, both);
    }
    if (!refused) return false;
  }
  return true;
}

/// Sums of p v and p over aligned blocks of `length` keys; returns the number of blocks.
std::int64_t sum_blocks(const BoundedRow& b, std::int64_t first_key, std::int64_t length,
                        BlockSums& sums) {
  const std::int64_t first = (first_key + b.rows.index[0]) / length;
  const std::int64_t last = (first_key + b.rows.index[b.rows.visible - 1]) / length;
  const std::int64_t blocks = last - first + 1;
  fit(sums.values, blocks * b.rows.columns);
  fit(sums.weight, blocks);
  std::fill_n(sums.values.begin(), blocks * b.rows.columns, 0.0);
  std::fill_n(sums.weight.begin(), blocks, kNoKey);
  for (std::int64_t k = 0; k < b.rows.visible;) {
    const std::int64_t block = (first_key + b.rows.index[k]) / length - first;
    std::int64_t end = k;
    sums.weight[static_cast<std::size_t>(block)] = 0;
    for (; end < b.rows.visible && (first_key + b.rows.index[end]) / length - first == block;
         ++end) {
      sums.weight[static_cast<std::size_t>(block)] += b.row.keys.p[static_cast<std::size_t>(end)];
    }
    add_weighted_values(b.rows, b.row.keys.p.data(), k, end,
                        sums.values.data() + block * b.rows.columns);
    k = end;
  }
  return blocks;
}

/// Joins neighbours into blocks of twice the length; `odd` if the first block is the second of its
/// pair.
std::int64_t join_blocks(std::int64_t blocks, std::int64_t columns, bool odd, BlockSums& sums) {
  std::int64_t joined = 0;
  for (std::int64_t k = 0; k < blocks; ++joined) {
    const std::int64_t members = k == 0 && odd ? 1 : std::min<std::int64_t>(2, blocks - k);
    const bool pair = members == 2;
    for (std::int64_t c = 0; c < columns; ++c) {
      const double* from = sums.values.data() + k * columns + c;
      sums.values[static_cast<std::size_t>(joined * columns + c)] =
          from[0] + (pair ? from[columns] : 0.0);
    }
    const auto at = static_cast<std::size_t>(k);
    double weight = sums.weight[at];
    if (pair && sums.weight[at + 1] != kNoKey) weight = std::max(weight, 0.0) + sums.weight[at + 1];
    sums.weight[static_cast<std::size_t>(joined)] = weight;
    k += members;
  }
  return joined;
}

}  // namespace

void missing_blocks(const BoundedRow& b, const RowBound& bound, std::int64_t first_key,
                    BlockScratch& scratch, RowPower& power) {
  const std::int64_t visible = b.rows.visible;
  for (std::size_t f = 0; f < b.form_count; ++f) {
    if (b.forms[f].budget.form == Merge::lse_sigmoid) return;  // (20b) has no such form
  }
  if (visible < 2) return;
  BlockTest test(b, bound, scratch);
  BlockSums& sums = scratch.sums;
  const bool exact = std::find(b.exact.begin(), b.exact.end(), 1) != b.exact.end();
  if (exact && exact_columns_refuse_every_key(b, bound)) {
    power.missing_block = 1;
    power.missing_mass_out =
        *std::max_element(b.row.keys.p.begin(), b.row.keys.p.begin() + visible);
    return;
  }
  std::int64_t length = visible < 2 * kSmallestBlock ? 1 : kSmallestBlock;
  std::int64_t first = (first_key + b.rows.index[0]) / length;
  std::int64_t blocks = sum_blocks(b, first_key, length, sums);
  for (; 2 * length <= visible; length *= 2) {
    double largest = 0;
    if (test.refuses_all(sums, blocks, largest)) {
      power.missing_block = length;
      power.missing_mass_out = largest;
      return;
    }
    blocks = join_blocks(blocks, b.rows.columns, first % 2 == 1, sums);
    first /= 2;
  }
}

}  // namespace ringproof::oracle
