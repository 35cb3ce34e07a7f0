// Bounds of dk and dv as sums over rows (backward_bound.hpp).
#include <algorithm>
#include <cmath>

#include "oracle/contract/backward_bound.hpp"
#include "oracle/contract/gradient_loops.hpp"

namespace ringproof::oracle {

namespace {

/// Beyond this a weight may be one that saturated, and a product with it is no bound.
constexpr double kLargestWeight = 0x1p800;
/// Covers the rounding of this evaluation: terms of one sign, at most 2^20 of them.
constexpr double kInflation = 1 + 0x1p-30;

double largest_magnitude(const double* x, std::int64_t size) {
  double largest = 0;
  for (std::int64_t k = 0; k < size; ++k) largest = std::max(largest, std::fabs(x[k]));
  return largest;
}

void add_to(std::vector<double>& sums, const std::vector<double>& later) {
  for (std::size_t k = 0; k < sums.size(); ++k) sums[k] += later[k];
}

}  // namespace

GradientBoundSums::GradientBoundSums(const GradientShape& shape) : shape_(&shape) {
  const auto wanted = static_cast<std::size_t>(shape.wanted());
  const auto D = static_cast<std::size_t>(shape.head_dim);
  const auto Dv = static_cast<std::size_t>(shape.value_dim);
  dk_.resize(wanted * D);
  dv_.resize(wanted * Dv);
  k_magnitude_.resize(wanted);
  v_magnitude_.resize(wanted);
  unbounded_.resize(wanted);
  weights_k_.resize(wanted * kPending);
  weights_v_.resize(wanted * kPending);
  query_.resize(kPending * D);
  upstream_.resize(kPending * Dv);
}

void GradientBoundSums::add(const RowShare& row) {
  if (row.visible == 0) return;  // its query, which may be no number, meets no key
  if (pending_ == kPending) flush();
  for (std::int64_t k = 0; k < row.visible; ++k) {
    const std::int64_t place = shape_->place(row.first + row.index[k]);
    if (place < 0) continue;
    const auto at = static_cast<std::size_t>(place);
    const double of_query = row.of_query[k], of_upstream = row.of_upstream[k];
    if (!(of_query < kLargestWeight) || !(of_upstream < kLargestWeight)) {
      unbounded_[at] = 1;
      continue;
    }
    weights_k_[at * kPending + static_cast<std::size_t>(pending_)] = of_query;
    weights_v_[at * kPending + static_cast<std::size_t>(pending_)] = of_upstream;
    k_magnitude_[at] += row.query_magnitude[k];
    v_magnitude_[at] += row.upstream_magnitude[k];
  }
  const std::int64_t D = shape_->head_dim, Dv = shape_->value_dim;
  const auto magnitude = [](double x) { return std::fabs(x); };
  std::transform(row.query, row.query + D, query_.begin() + pending_ * D, magnitude);
  std::transform(row.upstream, row.upstream + Dv, upstream_.begin() + pending_ * Dv, magnitude);
  largest_query_ = std::max(largest_query_, largest_magnitude(row.query, D));
  largest_upstream_ = std::max(largest_upstream_, largest_magnitude(row.upstream, Dv));
  ++pending_;
}

void GradientBoundSums::flush() {
  if (pending_ == 0) return;
  add_outer_products(weights_k_.data(), query_.data(), shape_->wanted(), kPending, shape_->head_dim,
                     dk_.data());
  add_outer_products(weights_v_.data(), upstream_.data(), shape_->wanted(), kPending,
                     shape_->value_dim, dv_.data());
  std::fill(weights_k_.begin(), weights_k_.end(), 0.0);
  std::fill(weights_v_.begin(), weights_v_.end(), 0.0);
  pending_ = 0;
}

void GradientBoundSums::merge(GradientBoundSums& later) {
  flush();
  later.flush();
  add_to(dk_, later.dk_);
  add_to(dv_, later.dv_);
  add_to(k_magnitude_, later.k_magnitude_);
  add_to(v_magnitude_, later.v_magnitude_);
  largest_query_ = std::max(largest_query_, later.largest_query_);
  largest_upstream_ = std::max(largest_upstream_, later.largest_upstream_);
  for (std::size_t k = 0; k < unbounded_.size(); ++k) unbounded_[k] |= later.unbounded_[k];
}

void GradientBoundSums::finish() {
  flush();
  const GradientShape& shape = *shape_;
  const double eta = shape.underflow_unit, omega = shape.largest_sum;
  for (std::int64_t j = 0; j < shape.keys(); ++j) {
    const std::int64_t place = shape.place(j);
    if (place < 0) continue;
    const auto at = static_cast<std::size_t>(place);
    const double grow_k = 1 + shape.relative_query()[j], grow_v = 1 + shape.relative_upstream()[j];
    // A factor that is read as zero loses the other one, hence the magnitudes.
    const double lost_k =
        shape.scale_or_one * grow_k * (shape.underflow(place) + eta * k_magnitude_[at]);
    const double lost_v = grow_v * (shape.underflow(place) + eta * v_magnitude_[at]);
    const bool k_fits =  // H1
        shape.scale_or_one * grow_k * k_magnitude_[at] * largest_query_ <= omega;
    const bool v_fits = grow_v * v_magnitude_[at] * largest_upstream_ <= omega;
    const auto close = [&](double* sums, std::int64_t columns, double lost, bool fits) {
      for (std::int64_t c = 0; c < columns; ++c) {
        const double bound = (sums[c] + lost) * kInflation;
        sums[c] = unbounded_[at] == 0 && fits && std::isfinite(bound) ? bound : HUGE_VAL;
      }
    };
    close(dk_.data() + place * shape.head_dim, shape.head_dim, lost_k, k_fits);
    close(dv_.data() + place * shape.value_dim, shape.value_dim, lost_v, v_fits);
  }
}

double GradientBoundSums::dk(std::int64_t j, std::int64_t d) const {
  return dk_[static_cast<std::size_t>(shape_->place(j) * shape_->head_dim + d)];
}

double GradientBoundSums::dv(std::int64_t j, std::int64_t c) const {
  return dv_[static_cast<std::size_t>(shape_->place(j) * shape_->value_dim + c)];
}

}  // namespace ringproof::oracle
