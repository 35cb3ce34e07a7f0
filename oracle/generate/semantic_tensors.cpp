#include "oracle/generate/semantic_tensors.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "oracle/generate/random.hpp"
#include "oracle/generate/row_plan.hpp"

namespace ringproof::oracle {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

using Shape = std::vector<std::int64_t>;

std::int64_t count_of(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

/// Tensor whose axes stand in the file as they do here.
OwnedTensor plain_tensor(std::string name, DType type, const Shape& shape,
                         const std::vector<double>& values) {
  OwnedTensor tensor{std::move(name), type, shape, {}};
  tensor.bytes.resize(values.size() * size_of(type));
  for (std::size_t n = 0; n < values.size(); ++n) {
    const double value = is_float(type) ? round_nearest(type, values[n]) : values[n];
    encode(type, value, tensor.bytes.data() + n * size_of(type));
  }
  return tensor;
}

template <class Integer>
OwnedTensor integer_tensor(std::string name, DType type, const std::vector<Integer>& values) {
  return plain_tensor(std::move(name), type, {static_cast<std::int64_t>(values.size())},
                      std::vector<double>(values.begin(), values.end()));
}

class Builder {
 public:
  Builder(const Recipe& recipe, std::uint64_t seed) : recipe_(recipe), seed_(seed) {}

  std::vector<OwnedTensor> build() {
    features();
    rows();
    mask();
    score_terms();
    if (recipe_.factors) factors();
    if (recipe_.gradients) upstream();
    return std::move(tensors_);
  }

 private:
  Random random(const char* tensor) const { return {seed_, recipe_.name + "/" + tensor}; }
  bool narrow() const { return recipe_.dtype == DType::f8_e4m3 || recipe_.dtype == DType::f8_e5m2; }
  /// Type of what an 8-bit kernel reads in 16 bits.
  DType wide_type() const { return narrow() ? DType::bf16 : recipe_.dtype; }

  void features() {
    const Recipe& r = recipe_;
    const double scale = r.spec.scale_of(r.head_dim);
    const FamilyShape shape{r.batches,   r.heads, r.kv_heads, r.queries, r.keys, r.head_dim,
                            r.value_dim, scale,   r.dtype,    seed_,     r.name};
    add("q", draw_queries(*r.family, shape), {r.batches, r.heads, r.queries, r.head_dim});
    std::vector<double> k = draw_keys(*r.family, shape), v = draw_values(*r.family, shape);
    hide(k, v);
    add("k", k, {r.batches, r.kv_heads, r.keys, r.head_dim});
    add("v", v, {r.batches, r.kv_heads, r.keys, r.value_dim});
  }
  void add(const char* name, const std::vector<double>& values, const Shape& shape) {
    tensors_.push_back(feature_tensor(name, recipe_.dtype, recipe_.spec, shape, values));
  }

  static bool is_hidden_peak(std::int64_t j) { return j % 5 == 2; }

  /// What no query sees must not matter: NaN and infinity behind the lengths, and huge scores and
  /// values behind a mask.
  void hide(std::vector<double>& k, std::vector<double>& v) const {
    const Recipe& r = recipe_;
    const double key_factor = narrow() ? 32 : 256, value_factor = narrow() ? 64 : 1024;
    for (std::int64_t row = 0; row < r.batches * r.kv_heads * r.keys; ++row) {
      const std::int64_t j = row % r.keys, b = row / r.keys / r.kv_heads;
      double* key = k.data() + row * r.head_dim;
      double* value = v.data() + row * r.value_dim;
      if (r.rows == RowPlan::lengths && j >= key_lengths(r)[static_cast<std::size_t>(b)]) {
        std::fill(key, key + r.head_dim, j % 2 == 0 || narrow() ? kNaN : kInfinity);
        std::fill(value, value + r.value_dim, kNaN);
      }
      if (r.mask == MaskPlan::hides_peak && is_hidden_peak(j)) {
        for (std::int64_t t = 0; t < r.head_dim; ++t) key[t] = clamped(key[t] * key_factor);
        for (std::int64_t c = 0; c < r.value_dim; ++c) value[c] = clamped(value[c] * value_factor);
      }
    }
  }
  double clamped(double x) const {
    const double largest = format_of(recipe_.dtype).largest / 2;
    return std::clamp(x, -largest, largest);
  }

  void rows() {
    const RowLists lists = row_lists(recipe_, random("rows"));
    if (!lists.key_lengths.empty())
      tensors_.push_back(integer_tensor("key_lengths", DType::i32, lists.key_lengths));
    if (!lists.cu_seqlens_q.empty()) {
      tensors_.push_back(integer_tensor("cu_seqlens_q", DType::i32, lists.cu_seqlens_q));
      tensors_.push_back(integer_tensor("cu_seqlens_k", DType::i32, lists.cu_seqlens_k));
    }
    if (!lists.positions.empty()) {
      tensors_.push_back(integer_tensor("positions_q", DType::i64, lists.positions));
      tensors_.push_back(integer_tensor("positions_k", DType::i64, lists.positions));
    }
    if (!lists.documents.empty()) {
      tensors_.push_back(integer_tensor("documents_q", DType::i32, lists.documents));
      tensors_.push_back(integer_tensor("documents_k", DType::i32, lists.documents));
    }
  }

  void mask() {
    const Recipe& r = recipe_;
    if (r.mask == MaskPlan::none) return;
    const bool per_pair = r.mask == MaskPlan::random;
    const Shape shape{1, per_pair ? r.heads : 1, per_pair ? r.queries : 1, r.keys};
    Random random = this->random("mask");
    std::vector<double> seen(static_cast<std::size_t>(count_of(shape)));
    for (std::size_t n = 0; n < seen.size(); ++n) {
      const auto place = static_cast<std::int64_t>(n);
      const std::int64_t j = place % r.keys, i = place / r.keys;
      switch (r.mask) {
        case MaskPlan::random:
          seen[n] = (random.bits() >> 63) != 0 && (i == 0 || i + 1 < r.queries * r.heads);
          break;
        case MaskPlan::late_start:
          seen[n] = 3 * j >= 2 * r.keys || j + 1 == r.keys;
          break;
        default:
          seen[n] = !is_hidden_peak(j);
      }
    }
    tensors_.push_back(plain_tensor("mask", DType::boolean, shape, seen));
  }

  void score_terms() {
    const Recipe& r = recipe_;
    if (r.bias == BiasPlan::dense) dense_bias();
    if (r.bias == BiasPlan::keys) key_bias();
    if (r.alibi) {
      Shape shape{r.heads};
      if (r.alibi_per_batch) shape.insert(shape.begin(), r.batches);
      std::vector<double> slopes(static_cast<std::size_t>(count_of(shape)));
      for (std::size_t n = 0; n < slopes.size(); ++n) {
        const auto head = static_cast<int>(n) % static_cast<int>(r.heads);
        const auto batch = static_cast<double>(n) / static_cast<double>(r.heads);
        slopes[n] = std::ldexp(1 + std::floor(batch), -1 - head);
      }
      tensors_.push_back(plain_tensor("alibi_slopes", DType::f32, shape, slopes));
    }
    if (r.sinks != SinkPlan::none) {
      // The LSE of N equal scores is log N: between 3 and 4 for the sizes of the small suites.
      const double from_level = r.sinks == SinkPlan::near    ? 3.5
                                : r.sinks == SinkPlan::above ? 24
                                                             : -3;
      Random random = this->random("sinks");
      std::vector<double> sinks(static_cast<std::size_t>(r.heads));
      for (double& sink : sinks) {
        sink = score_level(*r.family, r.dtype) + from_level + random.normal();
      }
      tensors_.push_back(plain_tensor("sinks", DType::f32, {r.heads}, sinks));
    }
  }

  /// A function of the global query, key and head: a local index gives another value.
  void dense_bias() {
    const Recipe& r = recipe_;
    const Shape shape{1, r.heads, r.queries, r.keys};
    std::vector<double> bias;
    for (std::int64_t h = 0; h < r.heads; ++h) {
      for (std::int64_t i = 0; i < r.queries; ++i) {
        for (std::int64_t j = 0; j < r.keys; ++j) {
          const std::int64_t step = (5 * i + 3 * j + 7 * h + i * j) % 32 - 16;
          bias.push_back(static_cast<double>(step) / 8);
        }
      }
    }
    tensors_.push_back(plain_tensor("bias", wide_type(), shape, bias));
  }

  /// One row for all queries; minus infinity hides a key, -10000 is a number like any other.
  void key_bias() {
    const Recipe& r = recipe_;
    Random random = this->random("bias");
    std::vector<double> bias;
    for (std::int64_t n = 0; n < r.batches * r.keys; ++n) {
      const double drawn = 2 * random.normal();
      bias.push_back(n % 7 == 3 ? -kInfinity : n % 7 == 5 ? -10000 : drawn);
    }
    tensors_.push_back(plain_tensor("bias", wide_type(), {r.batches, 1, 1, r.keys}, bias));
  }

  /// Per query head, per key, and per half of the columns of V.
  void factors() {
    const Recipe& r = recipe_;
    const auto add_factors = [&](const char* name, const Shape& shape) {
      Random random = this->random(name);
      std::vector<double> values(static_cast<std::size_t>(count_of(shape)));
      for (double& value : values) value = static_cast<double>(8 + random.below(16)) / 16;
      tensors_.push_back(feature_tensor(name, DType::f32, r.spec, shape, values));
    };
    add_factors("q_scale", {r.batches, r.heads, 1, 1});
    add_factors("k_scale", {r.batches, r.kv_heads, r.keys, 1});
    add_factors("v_scale", {1, 1, 1, r.value_dim % 2 == 0 ? 2 : 1});
  }

  void upstream() {
    const Recipe& r = recipe_;
    const auto draw = [&](const char* name, std::int64_t count) {
      Random random = this->random(name);
      std::vector<double> values(static_cast<std::size_t>(count));
      for (double& value : values) value = random.normal();
      return values;
    };
    const std::int64_t rows = r.batches * r.heads * r.queries;
    tensors_.push_back(feature_tensor("dout", wide_type(), r.spec,
                                      {r.batches, r.heads, r.queries, r.value_dim},
                                      draw("dout", rows * r.value_dim)));
    tensors_.push_back(row_tensor("dlse", DType::f32, r.spec, {r.batches, r.heads, r.queries},
                                  draw("dlse", rows)));
  }

  const Recipe& recipe_;
  std::uint64_t seed_;
  std::vector<OwnedTensor> tensors_;
};

}  // namespace

std::vector<OwnedTensor> problem_tensors(const Recipe& recipe, std::uint64_t seed) {
  return Builder(recipe, seed).build();
}

}  // namespace ringproof::oracle
