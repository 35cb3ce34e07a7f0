// The part of a row that needs no arithmetic on scores (row_setup.hpp).
#include "oracle/truth/row_setup.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ringproof::oracle {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

bool all_finite(const double* values, std::int64_t count) {
  return std::all_of(values, values + count, [](double value) { return std::isfinite(value); });
}

std::string key_reason(const char* what, std::int64_t j) {
  return std::string(what) + " of key " + std::to_string(j) + " is not finite";
}

/// The first visible number that is not finite, in words; empty if there is none.
std::string not_finite(const Problem& problem, const RowTruth& row, const std::uint8_t* keys_finite,
                       const RowInputs& inputs) {
  if (row.has_sink && !std::isfinite(row.sink)) return "the sink is not finite";
  if (row.visible == 0) return "";
  if (!all_finite(inputs.q.data(), problem.head_dim)) return "the query is not finite";
  if (problem.alibi_slopes && !std::isfinite(problem.alibi_slopes.at(row.b, row.h, 0, 0))) {
    return "the ALiBi slope is not finite";
  }
  for (std::int64_t j = row.keys.first; j < row.keys.last; ++j) {
    if (keys_finite == nullptr && row.bias.empty()) break;
    const std::size_t n = size(j - row.keys.first);
    if (inputs.visible[n] == 0) continue;
    if (keys_finite != nullptr && keys_finite[j] == 0) return key_reason("k or v", j);
    if (!row.bias.empty() && !std::isfinite(row.bias[n])) return key_reason("the bias", j);
  }
  return "";
}

/// A row that sees no key: its answer is its sink, or nothing at all.
void finish_without_keys(const Problem& problem, RowTruth& row) {
  const std::size_t keys = size(row.keys.size());
  row.dot.assign(keys, 0);
  row.abs_dot.assign(keys, 0);
  row.capped.assign(problem.spec.softcap > 0 ? keys : 0, 0);
  row.alibi.assign(problem.alibi_slopes ? keys : 0, 0);
  row.score.assign(keys, -kInfinity);
  row.log_p.assign(keys, -kInfinity);
  row.p.assign(keys, 0);
  row.score_radius = 0;
  row.log_p_sink = 0;
  row.max_score = row.has_sink ? row.sink : -kInfinity;
  row.lse = {row.max_score, 0, 0};
  row.out.assign(size(problem.value_dim), Certified{});
}

}  // namespace

bool decode_scaled(const Tensor& tensor, const Factors& factors, std::int64_t b, std::int64_t h,
                   std::int64_t n, double* out) {
  decode_row(tensor.dtype, tensor.address(b, h, n, 0), tensor.stride[3], tensor.shape[3], out);
  if (!factors.tensor) return true;
  bool exact = true;
  for (std::int64_t d = 0; d < tensor.shape[3]; ++d) {
    const double factor = factors.at(b, h, n, d);
    const double product = out[d] * factor;
    // The residual of a product is exact unless it underflows; 2^-900 keeps clear of that.
    const bool plain = product == 0 ? out[d] == 0 || factor == 0 : std::abs(product) > 0x1p-900;
    if (!plain || std::fma(out[d], factor, -product) != 0) {
      exact = exact && !(std::isfinite(out[d]) && std::isfinite(factor));
    }
    out[d] = product;
  }
  return exact;
}

std::uint8_t key_is_finite(const Problem& problem, std::int64_t b, std::int64_t kv_head,
                           std::int64_t j, std::vector<double>& scratch) {
  scratch.resize(size(std::max(problem.head_dim, problem.value_dim)));
  decode_scaled(problem.k, problem.k_scale, b, kv_head, j, scratch.data());
  if (!all_finite(scratch.data(), problem.head_dim)) return 0;
  decode_scaled(problem.v, problem.v_scale, b, kv_head, j, scratch.data());
  return all_finite(scratch.data(), problem.value_dim) ? 1 : 0;
}

std::uint64_t distance(const Problem& problem, std::int64_t b, std::int64_t i, std::int64_t j) {
  const auto q = static_cast<std::uint64_t>(problem.position_q[size(b * problem.queries + i)]);
  const auto k = static_cast<std::uint64_t>(problem.position_k[size(b * problem.keys + j)]);
  return static_cast<std::int64_t>(q) >= static_cast<std::int64_t>(k) ? q - k : k - q;
}

bool begin_row(const Problem& problem, std::int64_t b, std::int64_t h, std::int64_t i,
               const std::uint8_t* keys_finite, RowTruth& row, RowInputs& inputs) {
  row.b = b;
  row.h = h;
  row.i = i;
  row.keys = visible_range(problem, b, i);
  const std::int64_t keys = row.keys.size();
  std::vector<std::uint8_t>& visible = inputs.visible;
  visible.resize(size(keys));
  visible_row(problem, b, h, i, row.keys, visible.data());
  row.visible = std::count(visible.begin(), visible.end(), std::uint8_t{1});
  inputs.q.resize(size(problem.head_dim));
  inputs.exact_q = decode_scaled(problem.q, problem.q_scale, b, h, i, inputs.q.data());
  row.sink = problem.sinks ? problem.sinks.at(0, h, 0, 0) : 0;
  row.has_sink = problem.sinks && row.sink != -kInfinity;  // a sink of -infinity weighs nothing
  row.bias.resize(problem.bias ? size(keys) : 0);
  if (problem.bias && keys > 0) {
    decode_row(problem.bias.dtype, problem.bias.address(b, h, i, row.keys.first),
               problem.bias.stride[3], keys, row.bias.data());
    for (std::size_t n = 0; n < row.bias.size(); ++n) {
      if (visible[n] == 0) row.bias[n] = 0;
    }
  }
  row.not_applicable = not_finite(problem, row, keys_finite, inputs);
  if (!row.not_applicable.empty()) return false;
  if (row.visible > 0) return true;
  finish_without_keys(problem, row);
  return false;
}

}  // namespace ringproof::oracle
