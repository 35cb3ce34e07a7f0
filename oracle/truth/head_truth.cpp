// HeadTruth: decodes and lays out one KV head, gathers up to four rows into a batch, and hands it
// to the kernels (row_kernel.cpp). No error analysis here: only whether every number is exact.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "oracle/case/error.hpp"
#include "oracle/truth/gradient_sums.hpp"
#include "oracle/truth/head_truth.hpp"
#include "oracle/truth/row_batch.hpp"
#include "oracle/truth/row_setup.hpp"
#include "oracle/truth/unit_of.hpp"

namespace ringproof::oracle {
namespace {

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

/// Significant binary digits of a dequantised number, if it is exact.
int significant_digits(const Tensor& tensor, const Factors& factors) {
  return format_of(tensor.dtype).digits +
         (factors.tensor ? format_of(factors.tensor.dtype).digits : 0);
}

/// Products of at most so many digits nearly always have exact sums.
constexpr int kMostPlainDigits = 26;

/// The sizes up to which docs/double_double.md proves the radius.
void check_sizes(const Problem& problem) {
  constexpr std::int64_t kMostDimensions = 1LL << 19, kMostKeys = 1LL << 26;
  const auto check = [](const char* what, std::int64_t size, std::int64_t most) {
    if (size <= most) return;
    throw BadInput(std::string(what) + " is " + std::to_string(size) +
                   ", answers can be certified up to " + std::to_string(most));
  };
  check("the head dimension of q and k", problem.head_dim, kMostDimensions);
  check("the head dimension of v", problem.value_dim, kMostDimensions);
  check("the number of keys", problem.keys, kMostKeys);
}

double smallest_nonzero(const double* values, std::int64_t count, double so_far) {
  for (std::int64_t n = 0; n < count; ++n) {
    const double magnitude = std::abs(values[n]);
    if (magnitude != 0 && magnitude < so_far) so_far = magnitude;
  }
  return so_far;
}

int smallest_unit(std::span<const double> values, int so_far) {
  for (const double value : values) so_far = std::min(so_far, unit_of(value));
  return so_far;
}

double power_of_two(int exponent) { return std::ldexp(1.0, std::min(exponent, 1023)); }

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

/// Keys that some query of batch b may see; the others count as zeros, whatever they hold.
KeyRange seen_range(const Problem& problem, std::int64_t b) {
  const KeyRange all{0, problem.key_length[size(b)]};
  if (problem.key_runs.empty()) return all;  // asking every query would scan every key
  KeyRange seen{problem.keys, 0};
  for (std::int64_t i = 0; i < problem.queries; ++i) {
    const KeyRange range = visible_range(problem, b, i);
    if (range.size() == 0) continue;
    seen.first = std::min(seen.first, range.first);
    seen.last = std::max(seen.last, range.last);
  }
  return seen;
}

/// Lemma 15b: where to cut the weights of a tile, so that the sums of the first two slices are
/// exact; 0 if V has too many bits between its largest number and its lowest bit.
int slice_bits(const double* largest, std::int64_t columns, int unit) {
  const double most = *std::max_element(largest, largest + columns);
  if (most == 0 || unit < -400 || most > 0x1p400) return 0;
  const int bits = std::min(kMostSliceBits, 45 - (std::ilogb(most) + 1 - unit));
  return bits < kFewestSliceBits ? 0 : bits;
}

void pack(const Problem& problem, std::int64_t b, std::int64_t kv_head, PackedHead& head) {
  const std::int64_t dim = head.head_dim, stride = head.stride;
  double* k = head.k.resize(head.tiles * kTileKeys * dim);
  double* v = head.v.resize(head.tiles * kTileKeys * stride);
  double* k_limit = head.k_limit.resize(head.tiles * kTileKeys);
  double* v_max = head.v_max.resize(head.tiles * stride);
  double* v_key_max = head.v_key_max.resize(head.tiles * kTileKeys);
  std::fill_n(k, head.tiles * kTileKeys * dim, 0.0);
  std::fill_n(v, head.tiles * kTileKeys * stride, 0.0);
  std::fill_n(k_limit, head.tiles * kTileKeys, 1.0);
  std::fill_n(v_max, head.tiles * stride, 0.0);
  std::fill_n(v_key_max, head.tiles * kTileKeys, 0.0);
  head.key_finite.assign(size(problem.keys), 1);
  head.key_exact.assign(size(problem.keys), 1);
  std::vector<int> v_unit(size(head.tiles), kUnitOfZero);
  std::vector<double> row(size(dim));
  head.smallest_k = std::numeric_limits<double>::infinity();
  const KeyRange seen = seen_range(problem, b);
  for (std::int64_t j = seen.first; j < seen.last; ++j) {
    bool exact = decode_scaled(problem.k, problem.k_scale, b, kv_head, j, row.data());
    bool finite = clear_not_finite(row.data(), dim);
    head.smallest_k = smallest_nonzero(row.data(), dim, head.smallest_k);
    k_limit[j] = power_of_two(smallest_unit(row, kUnitOfZero) + 53);
    double* column = k + j / kSubtileKeys * dim * kSubtileKeys + j % kSubtileKeys;
    for (std::int64_t t = 0; t < dim; ++t) column[t * kSubtileKeys] = row[size(t)];
    double* values = v + j * stride;
    exact &= decode_scaled(problem.v, problem.v_scale, b, kv_head, j, values);
    finite &= clear_not_finite(values, head.value_dim);
    for (std::int64_t c = 0; c < head.value_dim; ++c) {
      v_key_max[j] = std::max(v_key_max[j], std::abs(values[c]));
    }
    values[head.value_dim] = 1;
    int& lowest = v_unit[size(j / kTileKeys)];
    lowest = smallest_unit({values, size(head.value_dim + 1)}, lowest);
    double* largest = v_max + j / kTileKeys * stride;
    for (std::int64_t c = 0; c <= head.value_dim; ++c) {
      largest[c] = std::max(largest[c], std::abs(values[c]));
    }
    head.key_finite[size(j)] = finite ? 1 : 0;
    head.key_exact[size(j)] = exact ? 1 : 0;
    head.all_finite &= finite;
    head.exact &= exact;
  }
  head.slice_bits.resize(size(head.tiles));
  for (std::int64_t tile = 0; tile < head.tiles; ++tile) {
    head.slice_bits[size(tile)] =
        slice_bits(v_max + tile * stride, head.value_dim + 1, v_unit[size(tile)]);
  }
}

/// What a thread needs for a batch; grows to the largest batch it has seen.
struct Scratch {
  RowBatch batch;
  std::array<RowInputs, HeadTruth::kRows> inputs;
  std::array<std::vector<double>, HeadTruth::kRows> alibi_low;
};

/// ALiBi of all keys of a row: -slope |distance| = high + low, exactly, while distances are below
/// 2^53.
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

/// Sizes the batch for `rows` rows on the keys of `range`, all of them empty.
void begin_batch(const Problem& problem, const PackedHead& head, KeyRange range, int rows,
                 bool keep_weights, RowBatch& batch) {
  batch.head = &head;
  batch.table = &exp_table();
  batch.rows = rows;
  batch.keep_weights = keep_weights;
  // Whole blocks: where a block begins must not depend on the company a row computes in.
  batch.first_tile = range.first / (kBlockTiles * kTileKeys) * kBlockTiles;
  batch.tiles = (range.last + kTileKeys - 1) / kTileKeys - batch.first_tile;
  batch.softcap = problem.spec.softcap;
  for (BatchRow& row : batch.row) row = BatchRow{};
  std::fill_n(batch.q.resize(head.head_dim * rows), head.head_dim * rows, 0.0);
  std::fill_n(batch.q_magnitude.resize(head.head_dim * rows), head.head_dim * rows, 0.0);
  if (head.cut) begin_queries(head.head_dim, rows, batch.q_parts);
  batch.words.resize((keep_weights ? batch.tiles : kBlockTiles) * 3 * rows * kTileKeys);
  if (keep_weights) {
    batch.relative_error.resize(batch.tiles * rows);
    if (batch.softcap > 0) batch.factors.resize(batch.tiles * 3 * rows * kTileKeys);
  }
  batch.visible.assign(size(batch.tiles * rows * kTileKeys), 0);
  batch.mass.resize(kBlockTiles * rows);
  batch.mass_error.resize(kBlockTiles * rows);
  batch.sums.resize(4 * rows * head.stride);
  batch.slices.resize(rows * kSlices * kTileKeys);
  batch.seen_max.resize(rows * head.stride);
  batch.reference.resize(batch.blocks() * rows);
}

/// The query of row r, its lowest bit, and whether products with it can underflow.
void place_query(const std::vector<double>& q, RowBatch& batch, int r) {
  double smallest = std::numeric_limits<double>::infinity();
  for (std::size_t t = 0; t < q.size(); ++t) {
    const std::size_t at = t * size(batch.rows) + size(r);
    const double magnitude = std::abs(q[t]);
    batch.q.data()[at] = q[t];
    batch.q_magnitude.data()[at] = magnitude;
    if (magnitude != 0) smallest = std::min(smallest, magnitude);
  }
  if (smallest * batch.head->smallest_k < 0x1p-1022) {
    batch.row[r].dot_underflow = static_cast<double>(q.size()) * 0x1p-1074;
  }
  batch.row[r].q_unit = power_of_two(smallest_unit(q, kUnitOfZero));
  if (batch.head->cut) cut_query(q, batch.rows, r, batch.q_parts);
}

/// False if the row sees a key whose decoded numbers are not the exact ones.
bool sees_exact_keys(const PackedHead& head, KeyRange keys,
                     const std::vector<std::uint8_t>& visible) {
  if (head.exact) return true;
  for (std::size_t n = 0; n < visible.size(); ++n) {
    if (visible[n] != 0 && head.key_exact[size(keys.first) + n] == 0) return false;
  }
  return true;
}

/// Row r of the batch: its query, its visible keys, its additions.
void place_row(const Problem& problem, const RowInputs& inputs, RowTruth& truth,
               std::vector<double>& alibi_low, RowBatch& batch, int r) {
  const std::size_t keys = size(truth.keys.size());
  for (auto* array : {&truth.dot, &truth.abs_dot, &truth.score, &truth.log_p, &truth.p}) {
    array->resize(keys);
  }
  truth.capped.resize(batch.softcap > 0 ? keys : 0);
  truth.alibi.resize(problem.alibi_slopes ? keys : 0);
  truth.out.resize(size(problem.value_dim));
  BatchRow& row = batch.row[r];
  row.truth = &truth;
  row.offset = batch.first_tile * kTileKeys - truth.keys.first;
  row.sink = truth.sink;
  row.has_sink = truth.has_sink;
  row.failed = !inputs.exact_q || !std::isfinite(batch.head->scale.hi) ||
               !sees_exact_keys(*batch.head, truth.keys, inputs.visible);
  place_query(inputs.q, batch, r);
  std::int64_t done = 0;
  while (done < truth.keys.size()) {
    const std::int64_t place = done - row.offset, in_tile = place % kTileKeys;
    const std::int64_t count = std::min(kTileKeys - in_tile, truth.keys.size() - done);
    std::uint8_t* to =
        batch.visible.data() + (place / kTileKeys * batch.rows + r) * kTileKeys + in_tile;
    std::copy_n(inputs.visible.data() + done, count, to);
    done += count;
  }
  if (problem.alibi_slopes) {
    row.failed |= !fill_alibi(problem, truth, alibi_low);
    row.alibi_low = alibi_low.data();
  }
}

}  // namespace

HeadTruth::HeadTruth(const Problem& problem, std::int64_t b, std::int64_t kv_head,
                     Precision precision)
    : impl_(std::make_unique<Impl>(Impl{problem, b, kv_head, {}})) {
  check_sizes(problem);
  PackedHead& head = impl_->head;
  head.keys = problem.keys;
  head.tiles = (problem.keys + kTileKeys - 1) / kTileKeys;
  head.head_dim = problem.head_dim;
  head.value_dim = problem.value_dim;
  head.stride = row_stride(problem.value_dim + 1);  // room for the column of ones
  head.precision = precision;
  head.scale = exact_scale(problem);
  const int digits = significant_digits(problem.q, problem.q_scale) +
                     significant_digits(problem.k, problem.k_scale);
  head.exact_products = digits <= 53;
  pack(problem, b, kv_head, head);
  // Sums of fewer digits are exact as they are (Lemma 6b); of more, too much would be left over.
  head.cut = precision == Precision::fast && digits > kMostPlainDigits && digits <= 53;
  if (head.cut) {
    cut_keys(head.k.data(), head.tiles * (kTileKeys / kSubtileKeys), head.head_dim, head.k_parts);
  }
}

HeadTruth::~HeadTruth() = default;
HeadTruth::HeadTruth(HeadTruth&&) noexcept = default;

const double* HeadTruth::values() const { return impl_->head.v.data(); }
std::int64_t HeadTruth::values_stride() const { return impl_->head.stride; }
std::int64_t HeadTruth::batch() const { return impl_->b; }
std::int64_t HeadTruth::kv_head() const { return impl_->kv_head; }

void HeadTruth::rows(std::span<const RowId> ids, RowTruth* out) const {
  impl_->rows(ids, out, nullptr);
}

void HeadTruth::Impl::rows(std::span<const RowId> ids, RowTruth* out,
                           const AfterBatch* after) const {
  static thread_local Scratch scratch;
  std::array<int, kRows> open{};
  int count = 0;
  KeyRange together{problem.keys, 0};
  std::int64_t longest = 0;
  for (int n = 0; n < static_cast<int>(ids.size()); ++n) {
    const RowId id = ids[size(n)];
    if (!begin_row(problem, b, id.h, id.i, head.all_finite ? nullptr : head.key_finite.data(),
                   out[n], scratch.inputs[size(n)])) {
      continue;
    }
    open[size(count++)] = n;
    together.first = std::min(together.first, out[n].keys.first);
    together.last = std::max(together.last, out[n].keys.last);
    longest = std::max(longest, out[n].keys.size());
  }
  const auto compute = [&](std::span<const int> places, KeyRange range, int rows) {
    begin_batch(problem, head, range, rows, after != nullptr, scratch.batch);
    for (int r = 0; r < static_cast<int>(places.size()); ++r) {
      const int n = places[size(r)];
      place_row(problem, scratch.inputs[size(n)], out[n], scratch.alibi_low[size(n)], scratch.batch,
                r);
    }
    compute_batch(scratch.batch);
    if (after != nullptr) (*after)(scratch.batch, places);
  };
  const std::span<const int> places(open.data(), size(count));
  // Rows that share most of their keys go together, and share each visit to K and V.
  if (count > 1 && together.size() <= longest + longest / 2 + kTileKeys) {
    return compute(places, together, count + count % 2);
  }
  for (int r = 0; r < count; ++r) compute(places.subspan(size(r), 1), out[open[size(r)]].keys, 1);
}

}  // namespace ringproof::oracle
