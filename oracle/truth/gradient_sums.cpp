// GradientSums and CertifiedSum: sums that carry their error bound (docs/backward_truth.md,
// Lemma 26).
#include "oracle/truth/gradient_sums.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/truth/interval.hpp"
#include "oracle/truth/scalar_pair.hpp"

namespace ringproof::oracle {
namespace {

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

constexpr Certified kUnknown{0, 0, std::numeric_limits<double>::infinity()};

Certified sum_of(const Certified& a, const Certified& b) {
  if (b.hi == 0 && b.lo == 0 && b.radius == 0) return a;
  if (a.hi == 0 && a.lo == 0 && a.radius == 0) return b;
  const ScalarPair sum = add({a.hi, a.lo}, {b.hi, b.lo});
  const double rounding = bounds::kAddition * (std::abs(a.hi) + std::abs(b.hi)) + 0x1p-1074;
  const double radius = ((a.radius + b.radius) + rounding) * bounds::kUpFew;
  return std::isfinite(sum.hi) && std::isfinite(radius) ? Certified{sum.hi, sum.lo, radius}
                                                        : kUnknown;
}

}  // namespace

void CertifiedSum::add(const Certified& x) { sum_ = sum_of(sum_, x); }

std::int64_t row_stride(std::int64_t columns) {
  const std::int64_t stride = (columns + 7) / 8 * 8;
  return stride % 64 == 0 ? stride + 8 : stride;
}

Certified exact_scale(const Problem& problem) {
  if (problem.spec.scale) return {*problem.spec.scale, 0, 0};
  using Number = Interval<80>;
  return certify(Number(Number(1) / sqrt(Number(static_cast<double>(problem.head_dim)))));
}

Certified scaled(const Certified& x, const Certified& scale) {
  if (x.hi == 0 && x.radius == 0) return {};
  const ScalarPair product = multiply({x.hi, x.lo}, {scale.hi, scale.lo});
  // Lemma 8, and 2^-1070 for what underflows.
  const double radius =
      (x.radius * std::abs(scale.hi) + bounds::kScale * std::abs(product.hi)) * bounds::kUpFew +
      0x1p-1070;
  return std::isfinite(product.hi) && std::isfinite(radius)
             ? Certified{product.hi, product.lo, radius}
             : kUnknown;
}

void KeySums::reset(std::int64_t slots, std::int64_t wanted_columns) {
  columns = wanted_columns;
  stride = row_stride(columns);
  for (AlignedArray* array : {&high, &low, &error}) {
    std::fill_n(array->resize(slots * stride), slots * stride, 0.0);
  }
}

Certified KeySums::at(std::int64_t slot, std::int64_t column) const {
  const std::int64_t n = slot * stride + column;
  const Certified element{high.data()[n], low.data()[n], error.data()[n] * bounds::kUp};
  return std::isfinite(element.hi) && std::isfinite(element.radius) ? element : kUnknown;
}

void KeySums::add(std::int64_t slot, std::int64_t column, const Certified& x) {
  const std::int64_t n = slot * stride + column;
  const Certified sum = sum_of(at(slot, column), x);
  high.data()[n] = sum.hi;
  low.data()[n] = sum.lo;
  error.data()[n] = sum.radius;
}

void mark_seen(const Problem& problem, const RowTruth& row, bool excluded,
               GradientSums::Impl& sums) {
  std::vector<std::uint8_t> visible(size(row.keys.size()));
  visible_row(problem, row.b, row.h, row.i, row.keys, visible.data());
  for (std::size_t n = 0; n < visible.size(); ++n) {
    const std::size_t j = size(row.keys.first) + n;
    sums.seen[j] |= visible[n];
    if (excluded) sums.excluded[j] |= visible[n];
  }
}

GradientSums::GradientSums(const Problem& problem, std::span<const std::uint8_t> wanted)
    : impl_(std::make_unique<Impl>()) {
  impl_->seen.assign(size(problem.keys), 0);
  impl_->excluded.assign(size(problem.keys), 0);
  impl_->slot.assign(size(problem.keys), -1);
  for (std::int64_t j = 0; j < problem.keys; ++j) {
    if (!wanted.empty() && wanted[size(j)] == 0) continue;
    impl_->slot[size(j)] = static_cast<std::int32_t>(impl_->slots++);
  }
  impl_->scale = exact_scale(problem);
  impl_->dk.reset(impl_->slots, problem.head_dim);
  impl_->dv.reset(impl_->slots, problem.value_dim);
}

GradientSums::~GradientSums() = default;
GradientSums::GradientSums(GradientSums&&) noexcept = default;
GradientSums& GradientSums::operator=(GradientSums&&) noexcept = default;

void GradientSums::merge(const GradientSums& later) {
  const Impl& other = *later.impl_;
  for (std::size_t j = 0; j < impl_->slot.size(); ++j) {
    impl_->excluded[j] |= other.excluded[j];
    if (other.seen[j] == 0) continue;
    impl_->seen[j] = 1;
    const std::int64_t slot = impl_->slot[j];
    if (slot < 0) continue;
    for (std::int64_t d = 0; d < impl_->dk.columns; ++d) {
      impl_->dk.add(slot, d, other.dk.at(other.slot[j], d));
    }
    for (std::int64_t c = 0; c < impl_->dv.columns; ++c) {
      impl_->dv.add(slot, c, other.dv.at(other.slot[j], c));
    }
  }
}

bool GradientSums::wanted(std::int64_t j) const { return impl_->slot[size(j)] >= 0; }
bool GradientSums::not_applicable(std::int64_t j) const { return impl_->excluded[size(j)] != 0; }
bool GradientSums::seen(std::int64_t j) const { return impl_->seen[size(j)] != 0; }

Certified GradientSums::dv(std::int64_t j, std::int64_t c) const {
  return impl_->dv.at(impl_->slot[size(j)], c);
}

Certified GradientSums::dk(std::int64_t j, std::int64_t d) const {
  return scaled(impl_->dk.at(impl_->slot[size(j)], d), impl_->scale);
}

}  // namespace ringproof::oracle
