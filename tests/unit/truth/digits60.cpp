#include "tests/unit/truth/digits60.hpp"

namespace ringproof::test {

using namespace oracle;

namespace {

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

/// Sum of terms [first, last) by halves.
template <class Term>
Digits60 pairwise(std::int64_t first, std::int64_t last, const Term& term) {
  if (last - first == 1) return term(first);
  const std::int64_t middle = first + (last - first) / 2;
  return pairwise(middle, last, term) + pairwise(first, middle, term);
}

std::vector<Digits60> decoded(const Tensor& tensor, const Factors& factors) {
  std::vector<Digits60> numbers;
  const auto& shape = tensor.shape;
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t n = 0; n < shape[2]; ++n) {
        for (std::int64_t d = 0; d < shape[3]; ++d) {
          numbers.push_back(Digits60(tensor.at(b, h, n, d)) * factors.at(b, h, n, d));
        }
      }
    }
  }
  return numbers;
}

/// The keys a row sees, from the last to the first, with the score and tanh(s / cap) of each.
struct Row60 {
  std::vector<std::int64_t> keys;
  std::vector<Digits60> scores, slopes;  // slope: derivative of the softcap
};

Row60 scores_of(const Numbers60& x, std::int64_t b, std::int64_t h, std::int64_t i) {
  const Problem& p = x.problem;
  const std::int64_t kv = h / (p.heads / p.kv_heads);
  Row60 row;
  for (std::int64_t j = p.keys - 1; j >= 0; --j) {
    if (!visible(p, b, h, i, j)) continue;
    const Digits60 dot = pairwise(0, p.head_dim, [&](std::int64_t t) {
      return x.q[x.query(b, h, i) * size(p.head_dim) + size(t)] *
             x.k[x.key(b, kv, j) * size(p.head_dim) + size(t)];
    });
    Digits60 s =
        p.spec.scale ? Digits60(dot * *p.spec.scale) : Digits60(dot / sqrt(Digits60(p.head_dim)));
    Digits60 slope = 1;
    if (p.spec.softcap > 0) {
      const Digits60 hyperbolic = cosh(Digits60(s / p.spec.softcap));
      slope = 1 / (hyperbolic * hyperbolic);
      s = p.spec.softcap * tanh(Digits60(s / p.spec.softcap));
    }
    if (p.bias) s += x.bias[x.query(b, h, i) * size(p.keys) + size(j)];
    if (p.alibi_slopes) {
      const auto difference =
          p.position_q[size(b * p.queries + i)] - p.position_k[size(b * p.keys + j)];
      s -= Digits60(p.alibi_slopes.at(b, h, 0, 0)) * std::abs(difference);
    }
    row.keys.push_back(j);
    row.scores.push_back(s);
    row.slopes.push_back(slope);
  }
  return row;
}

/// exp(score - shift) of keys and sink, and their sum. Any shift will do.
struct Weights60 {
  std::vector<Digits60> keys;
  Digits60 sink, sum, shift;
};
Weights60 weights_of(const Numbers60& x, std::int64_t h, const Row60& row) {
  Weights60 weights;
  weights.shift = row.scores.front();
  weights.sink =
      x.sinks.empty() ? Digits60(0) : Digits60(exp(Digits60(x.sinks[size(h)] - weights.shift)));
  weights.sum = weights.sink;
  for (const Digits60& s : row.scores) {
    weights.keys.push_back(exp(Digits60(s - weights.shift)));
    weights.sum += weights.keys.back();
  }
  return weights;
}

template <class F>
void for_each_row(const Problem& p, F&& f) {
  for (std::int64_t b = p.batches - 1; b >= 0; --b) {
    for (std::int64_t h = p.heads - 1; h >= 0; --h) {
      for (std::int64_t i = p.queries - 1; i >= 0; --i) f(b, h, i);
    }
  }
}

Digits60 upstream_at(const Tensor& tensor, std::int64_t b, std::int64_t h, std::int64_t i,
                     std::int64_t c) {
  return tensor ? Digits60(tensor.at(b, h, i, c)) : Digits60(0);
}

}  // namespace

Numbers60::Numbers60(const Problem& p)
    : problem(p),
      q(decoded(p.q, p.q_scale)),
      k(decoded(p.k, p.k_scale)),
      v(decoded(p.v, p.v_scale)) {
  for (std::int64_t h = 0; p.sinks && h < p.heads; ++h) sinks.emplace_back(p.sinks.at(0, h, 0, 0));
  if (!p.bias) return;
  for (std::int64_t b = 0; b < p.batches; ++b) {
    for (std::int64_t h = 0; h < p.heads; ++h) {
      for (std::int64_t i = 0; i < p.queries; ++i) {
        for (std::int64_t j = 0; j < p.keys; ++j) bias.emplace_back(p.bias.at(b, h, i, j));
      }
    }
  }
}

std::size_t Numbers60::query(std::int64_t b, std::int64_t h, std::int64_t i) const {
  return size((b * problem.heads + h) * problem.queries + i);
}
std::size_t Numbers60::key(std::int64_t b, std::int64_t kv, std::int64_t j) const {
  return size((b * problem.kv_heads + kv) * problem.keys + j);
}

std::optional<Answer60> answer60(const Numbers60& x, std::int64_t b, std::int64_t h,
                                 std::int64_t i) {
  const Problem& p = x.problem;
  const Row60 row = scores_of(x, b, h, i);
  if (row.keys.empty()) return std::nullopt;
  const Weights60 weights = weights_of(x, h, row);
  Answer60 result{std::vector<Digits60>(size(p.value_dim), Digits60(0)),
                  weights.shift + log(weights.sum)};
  for (std::size_t n = 0; n < row.keys.size(); ++n) {
    const std::size_t value = x.key(b, h / (p.heads / p.kv_heads), row.keys[n]) * size(p.value_dim);
    for (std::size_t c = 0; c < result.out.size(); ++c) {
      result.out[c] += weights.keys[n] * x.v[value + c];
    }
  }
  for (Digits60& element : result.out) element /= weights.sum;
  return result;
}

Digits60 objective60(const Numbers60& x, const Upstream& upstream) {
  Digits60 sum = 0;
  for_each_row(x.problem, [&](std::int64_t b, std::int64_t h, std::int64_t i) {
    const auto row = answer60(x, b, h, i);
    if (!row) return;
    sum += row->lse * upstream_at(upstream.dlse, b, h, i, 0);
    for (std::int64_t c = 0; c < x.problem.value_dim; ++c) {
      sum += row->out[size(c)] * upstream_at(upstream.dout, b, h, i, c);
    }
  });
  return sum;
}

Gradients60 gradients60(const Numbers60& x, const Upstream& upstream) {
  const Problem& p = x.problem;
  const Digits60 scale =
      p.spec.scale ? Digits60(*p.spec.scale) : Digits60(1 / sqrt(Digits60(p.head_dim)));
  const auto zeros = [](std::size_t n) { return std::vector<Digits60>(n, Digits60(0)); };
  Gradients60 g{zeros(x.q.size()), zeros(x.k.size()), zeros(x.v.size()), zeros(x.bias.size()),
                zeros(x.sinks.size())};
  for_each_row(p, [&](std::int64_t b, std::int64_t h, std::int64_t i) {
    const Row60 row = scores_of(x, b, h, i);
    const Digits60 dlse = upstream_at(upstream.dlse, b, h, i, 0);
    if (row.keys.empty()) {
      if (!x.sinks.empty()) g.dsinks[size(h)] += dlse;
      return;
    }
    const Weights60 weights = weights_of(x, h, row);
    std::vector<Digits60> dp;
    Digits60 mean = 0;
    for (std::size_t n = 0; n < row.keys.size(); ++n) {
      const std::size_t key = x.key(b, h / (p.heads / p.kv_heads), row.keys[n]);
      const Digits60 probability = weights.keys[n] / weights.sum;
      dp.push_back(pairwise(0, p.value_dim, [&](std::int64_t c) {
        return x.v[key * size(p.value_dim) + size(c)] * upstream_at(upstream.dout, b, h, i, c);
      }));
      mean += probability * dp.back();
      for (std::int64_t c = 0; c < p.value_dim; ++c) {
        g.dv[key * size(p.value_dim) + size(c)] +=
            probability * upstream_at(upstream.dout, b, h, i, c);
      }
    }
    for (std::size_t n = 0; n < row.keys.size(); ++n) {
      const std::size_t key = x.key(b, h / (p.heads / p.kv_heads), row.keys[n]) * size(p.head_dim);
      const std::size_t query = x.query(b, h, i) * size(p.head_dim);
      const Digits60 ds = weights.keys[n] / weights.sum * (dp[n] - mean + dlse);
      if (p.bias) g.dbias[x.query(b, h, i) * size(p.keys) + size(row.keys[n])] += ds;
      for (std::size_t d = 0; d < size(p.head_dim); ++d) {
        g.dq[query + d] += ds * row.slopes[n] * scale * x.k[key + d];
        g.dk[key + d] += ds * row.slopes[n] * scale * x.q[query + d];
      }
    }
    if (!x.sinks.empty()) g.dsinks[size(h)] += weights.sink / weights.sum * (dlse - mean);
  });
  return g;
}

}  // namespace ringproof::test
