// The bound of one row: budgets, then the theorems, then the power (bound.hpp).
#include "oracle/contract/bound.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "oracle/contract/assumptions.hpp"
#include "oracle/contract/exact_columns.hpp"
#include "oracle/contract/output_format.hpp"
#include "oracle/contract/power.hpp"
#include "oracle/contract/ring_bound.hpp"
#include "oracle/contract/ring_partition.hpp"

namespace ringproof::oracle {

struct BoundScratch {
  RowBudget row;
  std::vector<FormSums> forms;
  ColumnRange range;
  RingSums ring;
  VirtualColumn virtual_column;
  std::vector<WeightedErrors> errors;
  std::vector<double> out, signs;
  std::vector<char> exact;
  BlockScratch blocks;
};

namespace {

/// Covers the rounding of this evaluation itself: all sums have terms of one sign, at most 2^20 of
/// them, and the exponentials are good to 2^-40.
constexpr double kInflation = 1 + 0x1p-30;

void prepare_truth(const RowTruth& truth, BoundScratch& s) {
  const auto columns = static_cast<std::int64_t>(truth.out.size());
  fit(s.out, columns + kPadding);
  fit(s.signs, columns + kPadding);
  for (std::size_t c = 0; c < truth.out.size(); ++c) {
    s.out[c] = truth.out[c].hi;
    s.signs[c] = truth.out[c].hi < 0 ? -1.0 : 1.0;
  }
}

/// The bounds of one merge form, joined to those of the earlier ones: the kernel is one of them.
void bound_form(const ValueRows& rows, bool ring, FormSums& form, BoundScratch& s,
                RowBound& bound) {
  finish_form(s.row, s.out.data(), rows.columns, form);
  if (ring) ring_sums(s.row, form, rows, s.ring);
  for (std::int64_t c = 0; c < rows.columns; ++c) {
    const auto column = static_cast<std::size_t>(c);
    double e = column_bound(s.row, form, s.range, s.out[column], c);
    if (ring) {
      e = std::min(e,
                   ring_column_bound(s.row, form, s.range, s.ring, s.out[column], rows.columns, c));
    }
    take_larger(bound.out[column], e);
  }
  const FunctionalSums functional = functional_sums(s.row, form, s.range, s.virtual_column,
                                                    s.signs.data(), s.out.data(), rows.columns);
  take_larger(bound.functional, functional_bound(s.row, form, functional));
  take_larger(bound.lse, lse_bound(s.row, form.budget));
}

void refuse_nan(const RowTruth& truth, const RowBound& bound) {
  const bool wrong =
      std::isnan(bound.lse) || std::isnan(bound.functional) ||
      std::any_of(bound.out.begin(), bound.out.end(), [](double e) { return std::isnan(e); });
  if (!wrong) return;
  throw std::runtime_error("oracle error: a bound is not a number (batch " +
                           std::to_string(truth.b) + ", head " + std::to_string(truth.h) +
                           ", query " + std::to_string(truth.i) + ")");
}

/// The sum of the element bounds bounds every functional too; on exact rows it is the smaller one.
double functional_of_elements(const BoundScratch& s, const std::vector<double>& bounds) {
  const OutputRounding rounding = output_rounding(s.row.contract->out);
  double sum = 0;
  for (std::size_t c = 0; c < bounds.size(); ++c) {
    sum += bounds[c] + rounding.u * (std::fabs(s.out[c]) + bounds[c]) + rounding.eta;
  }
  return sum;
}

/// T0 where it holds. (26a)
void exact_columns(const ValueRows& rows, BoundScratch& s, RowBound& bound) {
  s.exact.assign(static_cast<std::size_t>(rows.columns), 0);
  if (!sums_are_exact(s.row)) return;
  columns_on_grid(*s.row.contract, rows, s.range, s.exact);
  for (std::size_t c = 0; c < s.exact.size(); ++c) {
    if (s.exact[c]) {
      bound.out[c] = std::min(bound.out[c], exact_column_bound(s.row, s.range.sum[c], s.out[c]));
    }
  }
}

}  // namespace

void bound_row(const Contract& contract, const Problem& problem, const RowTruth& truth,
               const double* values, std::int64_t stride, bool with_missing_blocks,
               RowBound& bound) {
  thread_local BoundScratch scratch;
  BoundScratch& s = scratch;
  const auto columns = static_cast<std::int64_t>(truth.out.size());
  bound.not_applicable = truth.not_applicable;
  bound.out.assign(static_cast<std::size_t>(columns), 0.0);
  bound.lse = bound.functional = 0;
  bound.power = RowPower{};
  if (!truth.not_applicable.empty() || truth.empty()) return;  // decided without a theorem

  prepare_truth(truth, s);
  const std::size_t forms = row_forms(contract, problem, truth, s.row, s.forms);
  const RowKeys& keys = s.row.keys;
  const ValueRows rows{values, stride, keys.index.data(), keys.visible, columns};
  // Which rank the sink belongs to is not declared, so such rows have no known partition.
  const bool ring =
      !keys.has_sink && merge_steps(problem, truth.b, truth.i, truth.keys.first, keys.index.data(),
                                    keys.visible, contract.partials.count, s.ring.step_of_key);
  if (ring) number_steps(keys.visible, s.ring);
  s.errors.clear();
  for (std::size_t f = 0; f < forms; ++f) {
    s.errors.push_back({&s.forms[f].weights, &s.forms[f].errors});
  }
  column_sums(rows, s.out.data(), s.signs.data(), s.errors, s.range, s.virtual_column);
  bound.not_applicable =
      failed_assumption(s.row, {s.forms.data(), forms}, problem, truth, s.range, columns);
  if (!bound.not_applicable.empty()) return;

  double largest_lse = 0;
  for (std::size_t f = 0; f < forms; ++f) {
    bound_form(rows, ring, s.forms[f], s, bound);
    largest_lse = std::max(largest_lse, largest_lse_bound(s.row, s.forms[f].budget));
  }
  exact_columns(rows, s, bound);
  bound.functional = std::min(bound.functional, functional_of_elements(s, bound.out));
  refuse_nan(truth, bound);
  for (double& e : bound.out) e *= kInflation;
  bound.lse *= kInflation;
  bound.functional *= kInflation;

  const BoundedRow bounded{s.row, s.forms,      forms,  rows, s.range, s.virtual_column,
                           truth, s.out.data(), s.exact};
  element_power(bounded, bound, largest_lse * kInflation, bound.power);
  if (with_missing_blocks) missing_blocks(bounded, bound, truth.keys.first, s.blocks, bound.power);
}

}  // namespace ringproof::oracle
