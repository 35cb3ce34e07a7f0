#include "oracle/audit/low_precision.hpp"

#include <cmath>

namespace ringproof::oracle {

std::vector<double> low_precision_row(const Problem& p, std::int64_t b, std::int64_t h,
                                      std::int64_t i) {
  const DType type = p.q.dtype;
  const std::int64_t kv = p.kv_head(h);
  const double scale = p.spec.scale_of(p.head_dim);
  std::vector<double> out(static_cast<std::size_t>(p.value_dim));
  std::vector<std::int64_t> seen;
  std::vector<double> weights;
  double largest = -HUGE_VAL, sum = 0;
  for (std::int64_t j = 0; j < p.keys; ++j) {
    if (!visible(p, b, h, i, j)) continue;
    double dot = 0;
    for (std::int64_t t = 0; t < p.head_dim; ++t) dot += p.q.at(b, h, i, t) * p.k.at(b, kv, j, t);
    const double score = round_nearest(type, round_nearest(type, dot) * scale);
    seen.push_back(j);
    weights.push_back(score);
    largest = std::max(largest, score);
  }
  for (double& weight : weights) sum += weight = std::exp(weight - largest);
  for (std::size_t n = 0; n < seen.size(); ++n) {
    const double weight = round_nearest(type, weights[n] / sum);
    for (std::int64_t c = 0; c < p.value_dim; ++c) {
      out[static_cast<std::size_t>(c)] += weight * p.v.at(b, kv, seen[n], c);
    }
  }
  for (double& x : out) x = round_nearest(type, x);
  return out;
}

}  // namespace ringproof::oracle
