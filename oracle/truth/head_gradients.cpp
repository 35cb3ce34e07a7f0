// HeadGradients: lays out one KV head for the backward pass, decides which rows double-double can
// certify, and hands them to the kernels (gradient_kernel.cpp) while the weights of their forward
// pass are still in memory.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "oracle/truth/gradient_batch.hpp"
#include "oracle/truth/gradient_setup.hpp"
#include "oracle/truth/head_truth.hpp"
#include "oracle/truth/scalar_pair.hpp"

namespace ringproof::oracle {
namespace {

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

/// No sum of the backward pass overflows if all its factors together stay below this.
constexpr double kLargestFactors = 0x1p880;

double largest_magnitude(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

double smallest_magnitude(const std::vector<double>& values) {
  double smallest = std::numeric_limits<double>::infinity();
  for (const double value : values) {
    if (value != 0) smallest = std::min(smallest, std::abs(value));
  }
  return smallest;
}

/// K by rows and V by columns from the forward layout, where what no query sees is zero already.
void pack(const PackedHead& from, PackedGradients& to) {
  const std::int64_t dim = from.head_dim, columns = from.value_dim, keys = from.tiles * kTileKeys;
  to.stride = row_stride(dim);
  double* k = to.k.resize(keys * to.stride);
  double* k_max = to.k_max.resize(from.tiles * to.stride);
  double* k_key_max = to.k_key_max.resize(keys);
  double* v = to.v.resize(keys * columns);
  std::fill_n(k, keys * to.stride, 0.0);
  std::fill_n(k_max, from.tiles * to.stride, 0.0);
  std::fill_n(k_key_max, keys, 0.0);
  to.v_largest.assign(size(columns), 0);
  to.smallest_v = std::numeric_limits<double>::infinity();
  for (std::int64_t j = 0; j < keys; ++j) {
    const std::int64_t subtile = j / kSubtileKeys, in_subtile = j % kSubtileKeys;
    for (std::int64_t d = 0; d < dim; ++d) {
      const double value = from.k.data()[(subtile * dim + d) * kSubtileKeys + in_subtile];
      double& largest = k_max[j / kTileKeys * to.stride + d];
      k[j * to.stride + d] = value;
      largest = std::max(largest, std::abs(value));
      k_key_max[j] = std::max(k_key_max[j], std::abs(value));
    }
    to.k_largest = std::max(to.k_largest, k_key_max[j]);
    for (std::int64_t c = 0; c < columns; ++c) {
      const double value = from.v.data()[j * from.stride + c];
      const double magnitude = std::abs(value);
      v[(subtile * columns + c) * kSubtileKeys + in_subtile] = value;
      to.v_largest[size(c)] = std::max(to.v_largest[size(c)], magnitude);
      if (magnitude != 0) to.smallest_v = std::min(to.smallest_v, magnitude);
    }
  }
}

/// True if every product of dout and v has at most 53 significant bits.
bool exact_products(const Problem& problem, const Tensor& dout) {
  const auto digits = [](const Tensor& tensor) {
    return tensor ? format_of(tensor.dtype).digits : 0;
  };
  return digits(problem.v) + digits(problem.v_scale.tensor) + digits(dout) <= 53;
}

/// dO . o for a certified o: hi + lo and the bound of its error (Lemma 24).
Certified certified_d(const std::vector<double>& dout, const std::vector<Certified>& out) {
  ScalarPair sum;
  double magnitude = 0, propagated = 0;
  for (std::size_t c = 0; c < dout.size(); ++c) {
    ScalarPair term = two_product(dout[c], out[c].hi);
    term = two_sum(term.hi, std::fma(dout[c], out[c].lo, term.lo));
    sum = add(sum, term);
    magnitude += std::abs(term.hi);
    propagated += std::abs(dout[c]) * out[c].radius;
  }
  if (magnitude == 0 && propagated == 0) return {};
  const auto terms = static_cast<double>(dout.size());
  const double rounding = (4 * terms + 6) * bounds::kUnitSquared * magnitude;
  return {sum.hi, sum.lo, (propagated + rounding) * bounds::kUp + terms * 0x1p-1060};
}

/// dL - D.
Certified shift_of(double dlse, const Certified& d) {
  const ScalarPair shift = add({dlse, 0}, {-d.hi, -d.lo});
  const double rounding = d.hi == 0 ? 0 : bounds::kAddition * (std::abs(dlse) + std::abs(d.hi));
  return {shift.hi, shift.lo, (d.radius + rounding) * bounds::kUpFew};
}

/// The given LSE in natural units: exact, or a base-2 one times ln 2 (Lemma 8).
Certified natural_lse(double given, bool base_two) {
  if (!base_two) return {given, 0, 0};
  const ScalarPair lse = multiply({given, 0}, {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56});
  return {lse.hi, lse.lo, bounds::kScale * std::abs(lse.hi) * bounds::kUpFew + 0x1p-1070};
}

}  // namespace

struct HeadGradients::Impl {
  const Problem& problem;
  const Upstream& upstream;
  const HeadTruth::Impl& forward;
  PackedGradients head;

  Impl(const Problem& the_problem, const Upstream& the_upstream, const HeadTruth::Impl& its_forward)
      : problem(the_problem), upstream(the_upstream), forward(its_forward) {
    pack(forward.head, head);
    head.exact_products = exact_products(problem, upstream.dout);
  }
  void begin_batch(RowBatch& forward_batch, GradientSums::Impl* sums, GradientBatch& batch) const;
  void place_row(const RowTruth& row, const GradientInputs& inputs, RowGradients& gradients,
                 GradientBatch& batch, int r) const;
  bool in_range(const RowTruth& row, const RowGradients& gradients, const Certified& d) const;
};

HeadGradients::HeadGradients(const Problem& problem, const Upstream& upstream,
                             const HeadTruth& forward)
    : impl_(std::make_unique<Impl>(problem, upstream, forward.impl())) {}

HeadGradients::~HeadGradients() = default;
HeadGradients::HeadGradients(HeadGradients&&) noexcept = default;

const double* HeadGradients::keys() const { return impl_->head.k.data(); }
std::int64_t HeadGradients::keys_stride() const { return impl_->head.stride; }

/// Sizes the batch; no row takes part yet.
void HeadGradients::Impl::begin_batch(RowBatch& forward_batch, GradientSums::Impl* sums,
                                      GradientBatch& batch) const {
  const std::int64_t rows = forward_batch.rows, v_stride = row_stride(problem.value_dim);
  batch.forward = &forward_batch;
  batch.head = &head;
  batch.sums = sums;
  batch.isolated = upstream.given.isolated();
  for (GradientRow& row : batch.row) row = GradientRow{};
  const auto zeros = [](AlignedArray& array, std::int64_t count) {
    std::fill_n(array.resize(count), count, 0.0);
  };
  zeros(batch.dout, problem.value_dim * rows);
  zeros(batch.dout_magnitude, problem.value_dim * rows);
  zeros(batch.dout_rows, rows * v_stride);
  zeros(batch.dout_max, v_stride);
  zeros(batch.q_rows, rows * head.stride);
  zeros(batch.q_max, head.stride);
  batch.words.resize(kGradientWords * rows * kTileKeys);
  batch.key_sums.resize(kKeySums * kTileKeys);
  batch.mass.resize(rows);
  batch.mass_error.resize(rows);
  batch.seen_max.resize(rows * head.stride);
  batch.dq.resize(4 * rows * head.stride);
  batch.weight_factor.resize(forward_batch.blocks() * 3 * rows);
}

/// Every sum of the row stays far from overflow. Keys that the row does not see count only if that
/// settles it.
bool HeadGradients::Impl::in_range(const RowTruth& row, const RowGradients& gradients,
                                   const Certified& d) const {
  if (!std::isfinite(row.lse.radius) || !std::isfinite(d.radius)) return false;
  double dout = 0, dp = 0;
  for (std::size_t c = 0; c < gradients.dout.size(); ++c) {
    dout += std::abs(gradients.dout[c]);
    dp += std::abs(gradients.dout[c]) * head.v_largest[c];
  }
  const double rest = std::abs(d.hi) + std::abs(gradients.dlse);
  const double q = std::max(1.0, largest_magnitude(gradients.q));
  if (!(dout < kLargestFactors)) return false;
  if ((dp + rest) * std::max(q, head.k_largest) < kLargestFactors) return true;
  double v = 0, k = 0;
  for (std::int64_t j = row.keys.first; j < row.keys.last; ++j) {
    if (!(row.score[size(j - row.keys.first)] > -std::numeric_limits<double>::infinity())) continue;
    v = std::max(v, forward.head.v_key_max.data()[j]);
    k = std::max(k, head.k_key_max.data()[j]);
  }
  return (dout * v + rest) * std::max(q, k) < kLargestFactors;
}

void HeadGradients::Impl::place_row(const RowTruth& row, const GradientInputs& inputs,
                                    RowGradients& gradients, GradientBatch& batch, int r) const {
  Certified d;
  Certified lse;
  if (batch.isolated) {
    std::vector<Certified> out(inputs.out_given.size());
    for (std::size_t c = 0; c < out.size(); ++c) out[c].hi = inputs.out_given[c];
    d = certified_d(gradients.dout, out);
    lse = natural_lse(inputs.lse_given, upstream.given.base == LseBase::two);
    gradients.lse_given = lse.hi;
  } else {
    d = certified_d(gradients.dout, row.out);
  }
  gradients.D = d.hi;
  gradients.D_radius = (d.radius + std::abs(d.lo)) * bounds::kUpFew;
  // A given LSE below the scores makes probabilities that exp_dd does not reach; one beyond 2^50 is
  // a pair too coarse for exponents.
  gradients.failed =
      !in_range(row, gradients, d) ||
      (batch.isolated && !(row.max_score - lse.hi < 0.5 && std::abs(lse.hi) < 0x1p50));
  if (gradients.failed) return;
  GradientRow& place = batch.row[r];
  place.truth = &row;
  place.gradients = &gradients;
  place.shift = shift_of(gradients.dlse, d);
  place.lse = lse;
  if (smallest_magnitude(gradients.dout) * head.smallest_v < 0x1p-1022) {
    place.dp_underflow = static_cast<double>(problem.value_dim) * 0x1p-1074;
  }
  const std::int64_t rows = batch.forward->rows, v_stride = row_stride(problem.value_dim);
  for (std::int64_t c = 0; c < problem.value_dim; ++c) {
    const double value = gradients.dout[size(c)], magnitude = std::abs(value);
    batch.dout.data()[c * rows + r] = value;
    batch.dout_magnitude.data()[c * rows + r] = magnitude;
    batch.dout_rows.data()[r * v_stride + c] = value;
    batch.dout_max.data()[c] = std::max(batch.dout_max.data()[c], magnitude);
  }
  for (std::int64_t n = 0; n < problem.head_dim; ++n) {
    const double value = gradients.q[size(n)];
    batch.q_rows.data()[r * head.stride + n] = value;
    batch.q_max.data()[n] = std::max(batch.q_max.data()[n], std::abs(value));
  }
}

void HeadGradients::rows(std::span<const HeadTruth::RowId> ids, RowTruth* rows,
                         RowGradients* gradients, GradientSums* sums) const {
  static thread_local GradientBatch batch;
  const Problem& problem = impl_->problem;
  GradientSums::Impl* key_sums = sums != nullptr ? &sums->impl() : nullptr;
  std::array<bool, HeadTruth::kRows> computed{};
  GradientInputs inputs;
  const AfterBatch after = [&](RowBatch& forward, std::span<const int> places) {
    impl_->begin_batch(forward, key_sums, batch);
    for (int r = 0; r < static_cast<int>(places.size()); ++r) {
      const std::size_t n = size(places[size(r)]);
      if (!begin_gradients(problem, impl_->upstream, rows[n], gradients[n], inputs)) continue;
      impl_->place_row(rows[n], inputs, gradients[n], batch, r);
      computed[n] = true;
    }
    compute_gradients(batch);
  };
  impl_->forward.rows(ids, rows, &after);
  for (std::size_t n = 0; n < ids.size(); ++n) {
    if (!computed[n]) {
      // Complete without keys; or, isolated, a sink whose probability is exp(sink - L).
      gradients[n].failed =
          begin_gradients(problem, impl_->upstream, rows[n], gradients[n], inputs);
    }
    if (key_sums == nullptr || gradients[n].failed) continue;
    mark_seen(problem, rows[n], !gradients[n].not_applicable.empty(), *key_sums);
  }
}

}  // namespace ringproof::oracle
