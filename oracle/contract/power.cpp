// What one row could have refused (power.hpp).
#include "oracle/contract/power.hpp"

#include <algorithm>
#include <cmath>

#include "oracle/contract/exact_columns.hpp"
#include "oracle/contract/output_format.hpp"

namespace ringproof::oracle {

namespace {

/// Numbers closer than this share of the mean magnitude count as equal: rounding of the comparison.
constexpr double kEqual = 0x1p-45;

bool by_lse(Merge form) {
  return form == Merge::lse_sequential || form == Merge::lse_once || form == Merge::lse_sigmoid;
}

/// 1 - e^{-2 Lam_max}; under merges by LSE, |L| grows when keys are left out, which the factor covers
/// as long as R (k_L + 2^-22) <= 2^-11. (42)
double missing_mass(const BoundedRow& b, double largest_lse) {
  double margin = 1;
  for (std::size_t f = 0; f < b.form_count; ++f) {
    if (!by_lse(b.forms[f].budget.form)) continue;
    const double running = std::expm1(b.row.softmax_hat + hat(b.row.contract->partials.lse_u));
    if (b.row.R * (running + 0x1p-22) > 0x1p-11) return 1;
    margin = 1 + 0x1p-10;
  }
  return -std::expm1(-2 * margin * largest_lse);
}

/// What a kernel may return for a number within e of o lies within `low` and `high` in magnitude.
struct Accepted {
  double low, high;
  Accepted(double o, double e, const OutputRounding& rounding)
      : low((o - e) * (1 - rounding.u) - rounding.eta),
        high((o + e) * (1 + rounding.u) + rounding.eta) {}
};

}  // namespace

void element_power(const BoundedRow& b, const RowBound& bound, double largest_lse,
                   RowPower& power) {
  const OutputRounding rounding = output_rounding(b.row.contract->out);
  const auto keys = static_cast<double>(b.row.keys.visible);
  double sum_of_magnitudes = 0, mean_shift = 0, mean_magnitudes = 0;
  for (std::int64_t column = 0; column < b.rows.columns; ++column) {
    const auto c = static_cast<std::size_t>(column);
    const double out = b.out[c], o = std::fabs(out), e = bound.out[c];
    const double mean = keys > 0 ? b.range.sum[c] / keys : 0;
    const double equal = kEqual * (keys > 0 ? b.range.abs_sum[c] / keys : 0);
    const Accepted accepted(o, e, rounding);
    if (accepted.low > 0) power.gain = std::min(power.gain, accepted.high / accepted.low - 1);
    if (o > equal) {
      ++power.zeros_differ;
      power.zeros_pass += o - e <= rounding.eta;
      ++power.twice_differ;
      power.twice_pass += !(2 * accepted.low > accepted.high);
    }
    if (std::fabs(mean - out) > equal) {
      ++power.mean_differ;
      power.mean_pass += std::fabs(mean - out) <= e + rounding.u * (o + e) + rounding.eta;
    }
    sum_of_magnitudes += o;
    mean_shift += out < 0 ? out - mean : mean - out;
    mean_magnitudes += std::fabs(mean) * rounding.u + rounding.eta;
  }
  const double E = bound.functional;
  if (sum_of_magnitudes > E) {  // (42)
    power.gain = std::min(power.gain, 2 * E / (sum_of_magnitudes - E));
  }
  power.functional_refuses_zeros = sum_of_magnitudes > E;
  power.functional_refuses_mean = std::fabs(mean_shift) - mean_magnitudes > E;
  power.functional_refuses_twice = sum_of_magnitudes > 3 * E;
  power.missing_mass_lse = missing_mass(b, largest_lse);
}

namespace {

/// The parts of (43) that one block does not change, for one merge form.
class WithoutBlock {
 public:
  WithoutBlock(const BoundedRow& b, const FormSums& form)
      : b_(b),
        form_(form),
        grow_(std::exp(form.budget.division)),
        relative_(std::expm1(form.budget.division)) {}

  /// Leaves out keys of total weight W_S.
  void leave_out(double weight) {
    const double growth =
        growth_without_keys(b_.row, form_.budget, -std::log1p(-weight));  // 0 unless by LSE
    factor_ = std::exp(2 * growth);
    extra_ = 4 * std::expm1(growth) * std::exp(growth) * (1 + form_.weights.common_sum);
    denominator_ = form_.denominator + std::expm1(-2 * growth) - weight;
  }

  /// e_S of one column, whose truth without the keys is `without`.
  double bound(std::int64_t column, double without) const {
    if (!(denominator_ > 0)) return HUGE_VAL;
    const auto c = static_cast<std::size_t>(column);
    const MergeBudget& budget = form_.budget;
    const double o = std::fabs(without);
    const double G = budget.value_underflow * b_.range.abs_sum[c] + budget.value_underflow_constant;
    const double sums = form_.errors.common[c] + form_.errors.numerator[c] +
                        form_.weights.common_sum * std::fabs(without - b_.out[c]) +
                        form_.weights.denominator_sum * o +
                        (G + budget.denominator_underflow * o) / b_.row.W +
                        budget.partial_underflow;
    const double largest = std::max(b_.range.largest[c], -b_.range.smallest[c]);
    const double e0 = (factor_ * sums + extra_ * (largest + o)) / denominator_;
    return grow_ * e0 + relative_ * o + final_underflow(b_.row, budget, b_.range, column);
  }

 private:
  const BoundedRow& b_;
  const FormSums& form_;
  double grow_, relative_, factor_ = 1, extra_ = 0, denominator_ = 0;
};

/// True if some column refuses an answer that leaves out keys of weight W and weighted sum `values`.
bool refuses(const BoundedRow& b, const RowBound& bound, const OutputRounding& rounding,
             std::vector<WithoutBlock>& forms, double weight, const double* values) {
  if (!(weight < 1)) return false;
  for (auto& form : forms) form.leave_out(weight);
  for (std::int64_t column = 0; column < b.rows.columns; ++column) {
    const auto c = static_cast<std::size_t>(column);
    const double out = b.out[c], without = (out - values[c]) / (1 - weight);
    double e = 0;
    if (b.exact[c]) {
      e = exact_column_bound(b.row, 1, without);
    } else {
      for (const auto& form : forms) e = std::max(e, form.bound(column, without));
    }
    const double both = bound.out[c] + e;
    const double roundings = rounding.u * (std::fabs(out) + std::fabs(without) + both);
    if (std::fabs(without - out) > both + roundings + 2 * rounding.eta) return true;
  }
  return false;
}

/// Every single key of the row, without storing its products.
bool refuses_every_key(const BoundedRow& b, const RowBound& bound, const OutputRounding& rounding,
                       std::vector<WithoutBlock>& forms, std::vector<double>& product) {
  fit(product, b.rows.columns);
  for (std::int64_t k = 0; k < b.rows.visible; ++k) {
    const double p = b.row.keys.p[static_cast<std::size_t>(k)];
    const double* v = b.rows.values + b.rows.index[k] * b.rows.stride;
    for (std::int64_t c = 0; c < b.rows.columns; ++c)
      product[static_cast<std::size_t>(c)] = p * v[c];
    if (!refuses(b, bound, rounding, forms, p, product.data())) return false;
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
  std::fill_n(sums.weight.begin(), blocks, 0.0);
  for (std::int64_t k = 0; k < b.rows.visible;) {
    const std::int64_t block = (first_key + b.rows.index[k]) / length - first;
    std::int64_t end = k;
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

/// Joins neighbours into blocks of twice the length; `odd` if the first block is the second of its pair.
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
    sums.weight[static_cast<std::size_t>(joined)] =
        sums.weight[at] + (pair ? sums.weight[at + 1] : 0.0);
    k += members;
  }
  return joined;
}

}  // namespace

void missing_blocks(const BoundedRow& b, const RowBound& bound, std::int64_t first_key,
                    BlockSums& sums, RowPower& power) {
  const OutputRounding rounding = output_rounding(b.row.contract->out);
  const std::int64_t visible = b.rows.visible;
  std::vector<WithoutBlock> forms;
  for (std::size_t f = 0; f < b.form_count; ++f) {
    if (b.forms[f].budget.form == Merge::lse_sigmoid) return;  // (20b) has no such form
    forms.emplace_back(b, b.forms[f]);
  }
  if (visible < 2) return;
  const bool exact = std::find(b.exact.begin(), b.exact.end(), 1) != b.exact.end();
  if (exact && refuses_every_key(b, bound, rounding, forms, sums.values)) {
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
    bool all = true;
    for (std::int64_t k = 0; k < blocks && all; ++k) {
      const double weight = sums.weight[static_cast<std::size_t>(k)];
      largest = std::max(largest, weight);
      // A block without a visible key cannot be missing.
      all = weight == 0 ||
            refuses(b, bound, rounding, forms, weight, sums.values.data() + k * b.rows.columns);
    }
    if (all) {
      power.missing_block = length;
      power.missing_mass_out = largest;
      return;
    }
    blocks = join_blocks(blocks, b.rows.columns, first % 2 == 1, sums);
    first /= 2;
  }
}

}  // namespace ringproof::oracle
