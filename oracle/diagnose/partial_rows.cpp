// Cutting a row (partial_rows.hpp).
#include "oracle/diagnose/partial_rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ringproof::oracle {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

/// ln sum exp(x), -infinity if every x is.
double log_sum_exp(const std::vector<double>& x) {
  const double largest = x.empty() ? -kInfinity : *std::max_element(x.begin(), x.end());
  if (largest == -kInfinity) return -kInfinity;
  double sum = 0;
  for (const double value : x) sum += std::exp(value - largest);
  return largest + std::log(sum);
}

std::vector<double> slice(const std::vector<double>& from, KeyRange range) {
  if (from.empty()) return {};
  return {from.begin() + range.first, from.begin() + range.last};
}

}  // namespace

PartialRows::PartialRows(const Contract& contract, const Problem& problem)
    : problem_(problem), contract_(contract) {
  contract_.partials.count = 1;
  contract_.partials.merge = {Merge::none};
  // The weights of a part may be cast relative to a maximum of the whole row so far, so that its
  // own largest weight is no power of two: rule (12) does not hold for it.
  contract_.p.round = RoundMode::faithful;
}

/// Fills row_ with the keys of one part, all of which lie in `range`, and probabilities normalised
/// over them. False: the part is empty.
bool PartialRows::select(const RowTruth& row, const std::vector<std::int64_t>& part_of,
                         std::int64_t part, KeyRange range, bool with_sink) {
  row_ = RowTruth{};
  row_.b = row.b;
  row_.h = row.h;
  row_.i = row.i;
  row_.keys = {row.keys.first + range.first, row.keys.first + range.last};
  row_.has_sink = with_sink && row.has_sink;
  row_.sink = row.sink;
  row_.score_radius = row.score_radius;
  row_.dot = slice(row.dot, range);
  row_.abs_dot = slice(row.abs_dot, range);
  row_.capped = slice(row.capped, range);
  row_.bias = slice(row.bias, range);
  row_.alibi = slice(row.alibi, range);
  row_.score = slice(row.score, range);
  row_.log_p = slice(row.log_p, range);
  row_.max_score = row_.has_sink ? row.sink : -kInfinity;
  for (std::int64_t j = range.first; j < range.last; ++j) {
    const std::size_t n = size(j - range.first);
    if (part_of[size(j)] == part && row_.score[n] > -kInfinity) {
      ++row_.visible;
      row_.max_score = std::max(row_.max_score, row_.score[n]);
      continue;
    }
    row_.score[n] = row_.log_p[n] = -kInfinity;
    for (std::vector<double>* other :
         {&row_.dot, &row_.abs_dot, &row_.capped, &row_.bias, &row_.alibi}) {
      if (!other->empty()) (*other)[n] = 0;
    }
  }
  if (row_.empty()) return false;

  std::vector<double> log_weights = row_.log_p;
  if (row_.has_sink) log_weights.push_back(row.log_p_sink);
  const double log_mass = log_sum_exp(log_weights);
  row_.p.resize(row_.log_p.size());
  for (std::size_t n = 0; n < row_.log_p.size(); ++n) {
    row_.log_p[n] -= log_mass;
    row_.p[n] = std::exp(row_.log_p[n]);
  }
  row_.log_p_sink = row.log_p_sink - log_mass;
  const double magnitude = std::abs(row.lse.hi) + std::abs(log_mass) + 1;
  row_.lse = {row.lse.hi + log_mass, 0,
              row.lse.radius + 2 * row.score_radius + 0x1p-40 + 0x1p-48 * magnitude};
  return true;
}

/// The part's own output with a certified radius: the probabilities come from binary64 logarithms.
void PartialRows::output(const RowTruth& row, const double* values, std::int64_t stride,
                         Part& part) {
  const double magnitude =
      std::abs(row.lse.hi) + std::abs(row_.max_score) + std::abs(row_.lse.hi) + 1;
  const double relative = 0x1p-38 + 4 * row.score_radius + 0x1p-48 * magnitude +
                          static_cast<double>(row_.p.size() + 4) * 0x1p-53;
  const std::size_t columns = size(problem_.value_dim);
  std::vector<double> sum(columns), absolute(columns);
  for (std::size_t n = 0; n < row_.p.size(); ++n) {
    if (row_.p[n] == 0) continue;
    const double* value = values + static_cast<std::int64_t>(n) * stride;
    for (std::size_t c = 0; c < columns; ++c) {
      sum[c] += row_.p[n] * value[c];
      absolute[c] += row_.p[n] * std::abs(value[c]);
    }
  }
  part.out.resize(columns);
  for (std::size_t c = 0; c < columns; ++c) {
    part.out[c] = {sum[c], 0, std::expm1(relative) * absolute[c]};
  }
  row_.out = part.out;
}

std::string PartialRows::bound(const double* values, std::int64_t stride, Part& part) {
  bound_row(contract_, problem_, row_, values, stride, false, bound_);
  if (!bound_.not_applicable.empty()) return bound_.not_applicable;
  row_budget(contract_, problem_, row_, budget_);
  part.bound = bound_.out;
  part.keys = row_.visible;
  part.lse = row_.lse.hi;
  part.lse_error = bound_.lse + row_.lse.radius;
  part.max = row_.max_score;
  part.max_error = row_.score_radius;
  for (std::int64_t n = 0; n < budget_.keys.visible; ++n) {
    part.max_error = std::max(part.max_error, budget_.keys.error[size(n)] + row_.score_radius);
  }
  return "";
}

std::string PartialRows::cut(const RowTruth& row, const double* values, std::int64_t stride,
                             const std::vector<std::int64_t>& part_of, std::int64_t parts,
                             std::int64_t sink_part) {
  parts_.resize(size(parts));
  ranges_.assign(size(parts), {0, 0});
  for (std::size_t n = 0; n < part_of.size(); ++n) {
    if (part_of[n] < 0 || row.score[n] == -kInfinity) continue;
    KeyRange& range = ranges_[size(part_of[n])];
    const auto j = static_cast<std::int64_t>(n);
    range = {range.size() == 0 ? j : range.first, j + 1};
  }
  for (std::int64_t t = 0; t < parts; ++t) {
    Part& part = parts_[size(t)];
    part.present = select(row, part_of, t, ranges_[size(t)], t == sink_part);
    if (!part.present) continue;
    const double* first = values + ranges_[size(t)].first * stride;
    output(row, first, stride, part);
    if (std::string reason = bound(first, stride, part); !reason.empty()) return reason;
  }
  return "";
}

}  // namespace ringproof::oracle
