// HeadTruth: decodes and lays out one KV head, gathers up to four rows into a batch, and hands it to
// the kernels (row_kernel.cpp). No error analysis here: only whether every number is exact.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "oracle/truth/interval.hpp"
#include "oracle/truth/row_batch.hpp"
#include "oracle/truth/row_setup.hpp"

namespace ringproof::oracle {
namespace {

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

/// Significant binary digits of a dequantised number, if it is exact.
int significant_digits(const Tensor& tensor, const Factors& factors) {
  return format_of(tensor.dtype).digits +
         (factors.tensor ? format_of(factors.tensor.dtype).digits : 0);
}

/// The scale as hi + lo: spec.scale exactly, or the real number 1/sqrt(D) to 2^-106.
Certified exact_scale(const Problem& problem) {
  if (problem.spec.scale) return {*problem.spec.scale, 0, 0};
  using Number = Interval<80>;
  return certify(Number(Number(1) / sqrt(Number(static_cast<double>(problem.head_dim)))));
}

double smallest_nonzero(const double* values, std::int64_t count, double so_far) {
  for (std::int64_t n = 0; n < count; ++n) {
    const double magnitude = std::abs(values[n]);
    if (magnitude != 0 && magnitude < so_far) so_far = magnitude;
  }
  return so_far;
}

/// Replaces what is not finite by 0; true if there was nothing to replace.
bool clear_not_finite(double* values, std::int64_t count) {
  bool finite = true;
  for (std::int64_t n = 0; n < count; ++n) {
    if (std::isfinite(values[n])) continue;
    values[n] = 0;
    finite = false;
  }
  return finite;
}

/// Row stride of the packed V: room for the column of ones, whole vectors, and not a multiple of 64,
/// so that the rows of a tile do not compete for the same cache lines.
std::int64_t value_stride(std::int64_t value_dim) {
  const std::int64_t stride = (value_dim + 1 + 7) / 8 * 8;
  return stride % 64 == 0 ? stride + 8 : stride;
}

void pack(const Problem& problem, std::int64_t b, std::int64_t kv_head, PackedHead& head) {
  const std::int64_t dim = head.head_dim, stride = head.stride;
  double* k = head.k.resize(head.tiles * kTileKeys * dim);
  double* v = head.v.resize(head.tiles * kTileKeys * stride);
  double* v_max = head.v_max.resize(head.tiles * stride);
  std::fill_n(k, head.tiles * kTileKeys * dim, 0.0);
  std::fill_n(v, head.tiles * kTileKeys * stride, 0.0);
  std::fill_n(v_max, head.tiles * stride, 0.0);
  head.key_finite.assign(size(problem.keys), 1);
  std::vector<double> row(size(dim));
  head.smallest_k = std::numeric_limits<double>::infinity();
  for (std::int64_t j = 0; j < problem.keys; ++j) {
    head.exact &= decode_scaled(problem.k, problem.k_scale, b, kv_head, j, row.data());
    bool finite = clear_not_finite(row.data(), dim);
    head.smallest_k = smallest_nonzero(row.data(), dim, head.smallest_k);
    double* column = k + j / kSubtileKeys * dim * kSubtileKeys + j % kSubtileKeys;
    for (std::int64_t t = 0; t < dim; ++t) column[t * kSubtileKeys] = row[size(t)];
    double* values = v + j * stride;
    head.exact &= decode_scaled(problem.v, problem.v_scale, b, kv_head, j, values);
    finite &= clear_not_finite(values, head.value_dim);
    values[head.value_dim] = 1;
    double* largest = v_max + j / kTileKeys * stride;
    for (std::int64_t c = 0; c <= head.value_dim; ++c) {
      largest[c] = std::max(largest[c], std::abs(values[c]));
    }
    head.key_finite[size(j)] = finite ? 1 : 0;
    head.all_finite &= finite;
  }
}

/// What a thread needs for a batch; grows to the largest batch it has seen.
struct Scratch {
  RowBatch batch;
  std::array<RowInputs, HeadTruth::kRows> inputs;
};

/// ALiBi of all keys of a row: -slope |distance| = high + low, exactly, while distances are below 2^53.
bool fill_alibi(const Problem& problem, RowTruth& row, std::vector<double>& low) {
  const double slope = problem.alibi_slopes.at(row.b, row.h, 0, 0);
  bool exact = true;
  low.resize(row.alibi.size());
  for (std::int64_t j = row.keys.first; j < row.keys.last; ++j) {
    const std::uint64_t steps = distance(problem, row.b, row.i, j);
    exact = exact && steps < (1ULL << 53);
    const auto length = static_cast<double>(steps);
    const std::size_t n = size(j - row.keys.first);
    row.alibi[n] = -slope * length;
    low[n] = std::fma(-slope, length, -row.alibi[n]);
  }
  return exact;
}

/// Copies per-key values of row r into the tiles of the batch.
void scatter(const RowBatch& batch, int r, const std::vector<double>& values, AlignedArray& array) {
  double* out = array.data();
  const std::int64_t offset = batch.row[r].offset;
  for (std::int64_t tile = 0; tile < batch.tiles; ++tile) {
    const std::int64_t from = tile * kTileKeys + offset;
    for (std::int64_t n = 0; n < kTileKeys; ++n) {
      const std::int64_t key = from + n;
      const bool inside = key >= 0 && key < static_cast<std::int64_t>(values.size());
      out[batch.tile_index(tile, r) + n] = inside ? values[size(key)] : 0;
    }
  }
}

/// A row of the batch: its query, its visible keys, its additions.
void place_row(const Problem& problem, const RowInputs& inputs, RowTruth& truth, RowBatch& batch,
               int r) {
  const std::size_t keys = size(truth.keys.size());
  truth.dot.resize(keys);
  truth.abs_dot.resize(keys);
  truth.capped.resize(batch.softcap > 0 ? keys : 0);
  truth.alibi.resize(batch.has_alibi ? keys : 0);
  truth.score.resize(keys);
  truth.log_p.resize(keys);
  truth.p.resize(keys);
  truth.out.resize(size(problem.value_dim));
  BatchRow& row = batch.row[r];
  row = {.truth = &truth,
         .offset = batch.first_tile * kTileKeys - truth.keys.first,
         .sink = truth.sink,
         .has_sink = truth.has_sink,
         .score_excess = 0,
         .failed = !inputs.exact_q || !std::isfinite(batch.head->scale.hi)};
  for (std::int64_t t = 0; t < problem.head_dim; ++t) {
    batch.q.data()[t * batch.rows + r] = inputs.q[size(t)];
    batch.q_magnitude.data()[t * batch.rows + r] = std::abs(inputs.q[size(t)]);
  }
  const double smallest =
      batch.head->smallest_k *
      smallest_nonzero(inputs.q.data(), problem.head_dim, std::numeric_limits<double>::infinity());
  if (smallest < 0x1p-1022) {
    batch.dot_underflow = static_cast<double>(problem.head_dim) * 0x1p-1074;
  }
  for (std::int64_t key = truth.keys.first; key < truth.keys.last; ++key) {
    const std::int64_t place = key - batch.first_tile * kTileKeys;
    const std::int64_t tile = place / kTileKeys;
    batch.visible[size(batch.tile_index(tile, r) + place % kTileKeys)] =
        inputs.visible[size(key - truth.keys.first)];
  }
  if (batch.has_bias) scatter(batch, r, truth.bias, batch.bias);
  if (batch.has_alibi) {
    static thread_local std::vector<double> low;
    row.failed |= !fill_alibi(problem, truth, low);
    scatter(batch, r, truth.alibi, batch.alibi);
    scatter(batch, r, low, batch.alibi_low);
    for (std::size_t n = 0; n < keys; ++n) {
      if (inputs.visible[n] == 0) truth.alibi[n] = 0;
    }
  }
}

/// Sizes the batch for `rows` rows on the keys of `range`, all of them empty.
void begin_batch(const Problem& problem, const PackedHead& head, KeyRange range, int rows,
                 RowBatch& batch) {
  batch.head = &head;
  batch.table = &exp_table();
  batch.rows = rows;
  batch.first_tile = range.first / kTileKeys;
  batch.tiles = (range.last + kTileKeys - 1) / kTileKeys - batch.first_tile;
  batch.softcap = problem.spec.softcap;
  batch.dot_underflow = 0;
  batch.has_bias = static_cast<bool>(problem.bias);
  batch.has_alibi = static_cast<bool>(problem.alibi_slopes);
  for (BatchRow& row : batch.row) row = BatchRow{};
  const std::int64_t places = batch.tiles * rows * kTileKeys;
  std::fill_n(batch.q.resize(head.head_dim * rows), head.head_dim * rows, 0.0);
  std::fill_n(batch.q_magnitude.resize(head.head_dim * rows), head.head_dim * rows, 0.0);
  batch.words.resize(3 * places);
  if (batch.has_bias) std::fill_n(batch.bias.resize(places), places, 0.0);
  if (batch.has_alibi) {
    std::fill_n(batch.alibi.resize(places), places, 0.0);
    std::fill_n(batch.alibi_low.resize(places), places, 0.0);
  }
  batch.visible.assign(size(places), 0);
  batch.mass.resize(batch.tiles * rows);
  batch.mass_error.resize(batch.tiles * rows);
  batch.sums.resize(4 * rows * head.stride);
}

}  // namespace

struct HeadTruth::Impl {
  const Problem& problem;
  std::int64_t b, kv_head;
  PackedHead head;
};

HeadTruth::HeadTruth(const Problem& problem, std::int64_t b, std::int64_t kv_head,
                     Precision precision)
    : impl_(std::make_unique<Impl>(Impl{problem, b, kv_head, {}})) {
  PackedHead& head = impl_->head;
  head.keys = problem.keys;
  head.tiles = (problem.keys + kTileKeys - 1) / kTileKeys;
  head.head_dim = problem.head_dim;
  head.value_dim = problem.value_dim;
  head.stride = value_stride(problem.value_dim);
  head.precision = precision;
  head.scale = exact_scale(problem);
  head.exact_products = significant_digits(problem.q, problem.q_scale) +
                            significant_digits(problem.k, problem.k_scale) <=
                        53;
  pack(problem, b, kv_head, head);
}

HeadTruth::~HeadTruth() = default;
HeadTruth::HeadTruth(HeadTruth&&) noexcept = default;

const double* HeadTruth::values() const { return impl_->head.v.data(); }
std::int64_t HeadTruth::values_stride() const { return impl_->head.stride; }

void HeadTruth::rows(std::span<const RowId> ids, RowTruth* out) const {
  static thread_local Scratch scratch;
  const Problem& problem = impl_->problem;
  const PackedHead& head = impl_->head;
  std::array<int, kRows> open{};
  int count = 0;
  KeyRange together{problem.keys, 0};
  std::int64_t longest = 0;
  for (int n = 0; n < static_cast<int>(ids.size()); ++n) {
    const RowId id = ids[size(n)];
    if (!begin_row(problem, impl_->b, id.h, id.i,
                   head.all_finite ? nullptr : head.key_finite.data(), out[n],
                   scratch.inputs[size(n)])) {
      continue;
    }
    open[size(count++)] = n;
    together.first = std::min(together.first, out[n].keys.first);
    together.last = std::max(together.last, out[n].keys.last);
    longest = std::max(longest, out[n].keys.size());
  }
  // Rows that share most of their keys go together; a batch of four costs little more than one row.
  if (count > 1 && together.size() <= longest + longest / 2 + kTileKeys) {
    begin_batch(problem, head, together, kRows, scratch.batch);
    for (int r = 0; r < count; ++r) {
      const int n = open[size(r)];
      place_row(problem, scratch.inputs[size(n)], out[n], scratch.batch, r);
    }
    return compute_batch(scratch.batch);
  }
  for (int r = 0; r < count; ++r) {
    const int n = open[size(r)];
    begin_batch(problem, head, out[n].keys, 1, scratch.batch);
    place_row(problem, scratch.inputs[size(n)], out[n], scratch.batch, 0);
    compute_batch(scratch.batch);
  }
}

}  // namespace ringproof::oracle
