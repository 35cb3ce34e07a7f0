// Summing wrong gradients (gradient_mutant.hpp).
#include "oracle/diagnose/gradient_mutant.hpp"

#include <algorithm>
#include <cmath>

#include "oracle/diagnose/gradient_row.hpp"

namespace ringproof::oracle {

namespace {

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

/// A sum and the sum of the sizes of its terms.
struct Sums {
  std::vector<double> value, absolute;
  explicit Sums(std::int64_t count) : value(size(count)), absolute(size(count)) {}
};

double weight(const GradientRule::Pair& counts, std::int64_t h, std::int64_t i, std::int64_t j) {
  return counts ? counts(h, i, j) : 1.0;
}

void add_scaled(const double* row, std::int64_t columns, double factor, double absolute,
                std::size_t first, Sums& sums) {
  for (std::int64_t d = 0; d < columns; ++d) {
    sums.value[first + size(d)] += factor * row[d];
    sums.absolute[first + size(d)] += absolute * std::abs(row[d]);
  }
}

/// Error bounds: the budget of each row or key times the size of the sum.
std::vector<double> bounds(const Sums& sums, const std::vector<double>& budget,
                           std::int64_t columns) {
  std::vector<double> bound(sums.value.size());
  for (std::size_t n = 0; n < bound.size(); ++n) {
    bound[n] = (budget[n / size(columns)] + 0x1p-36) * sums.absolute[n];
  }
  return bound;
}

/// What is stored at each key comes from another key, or from the other gradient.
void place(const GradientPairs& pairs, const GradientRule& rule, WrongGradients& g) {
  const auto move = [&](const auto& from_key, std::vector<double>& values, std::int64_t columns) {
    if (!from_key) return;
    std::vector<double> moved(values.size());
    for (std::int64_t j = 0; j < pairs.keys; ++j) {
      const std::int64_t from = from_key(j);
      for (std::int64_t d = 0; from >= 0 && d < columns; ++d) {
        moved[size(j * columns + d)] = values[size(from * columns + d)];
      }
    }
    values = std::move(moved);
  };
  const bool alike = pairs.head_dim == pairs.value_dim;  // else no kernel can mix them up
  if (rule.exchanged && alike) {
    std::swap(g.dk, g.dv);
    std::swap(g.bound_k, g.bound_v);
  }
  const std::vector<double> dk = g.dk, bound_k = g.bound_k;
  for (std::size_t n = 0; alike && n < dk.size(); ++n) {
    g.dk[n] += rule.dv_in_dk * g.dv[n];
    g.bound_k[n] += std::abs(rule.dv_in_dk) * g.bound_v[n];
    g.dv[n] += rule.dk_in_dv * dk[n];
    g.bound_v[n] += std::abs(rule.dk_in_dv) * bound_k[n];
  }
  move(rule.dk_from, g.dk, pairs.head_dim);
  move(rule.dk_from, g.bound_k, pairs.head_dim);
  move(rule.dv_from, g.dv, pairs.value_dim);
  move(rule.dv_from, g.bound_v, pairs.value_dim);
}

}  // namespace

PairWindow window_of_key(const GradientMutant& mutant, std::int64_t j) {
  PairWindow window;
  window.keys.push_back(j);
  for (const auto& from : {mutant.rule.dk_from, mutant.rule.dv_from}) {
    const std::int64_t key = from ? from(j) : j;
    const bool known = std::find(window.keys.begin(), window.keys.end(), key) != window.keys.end();
    if (key >= 0 && !known) window.keys.push_back(key);
  }
  return window;
}

WrongGradients wrong_gradients(const GradientPairs& pairs, const GradientMutant& mutant,
                               const PairWindow& window) {
  const GradientRule& rule = mutant.rule;
  const std::int64_t N = pairs.queries, D = pairs.head_dim, Dv = pairs.value_dim;
  Sums dq(static_cast<std::int64_t>(pairs.heads.size()) * N * D), dk(pairs.keys * D),
      dv(pairs.keys * Dv);
  std::vector<double> budget_q;
  for (std::size_t n = 0; n < pairs.heads.size(); ++n) {
    const HeadPairs& head = pairs.heads[n];
    budget_q.insert(budget_q.end(), head.budget_q.begin(), head.budget_q.end());
    for (std::int64_t i = 0; i < N; ++i) {
      const bool this_row = window.row && *window.row == std::pair(head.h, i);
      if (!window.whole() && !this_row && window.keys.empty()) continue;
      const bool some_keys = !window.whole() && !this_row;
      const std::int64_t count =
          some_keys ? static_cast<std::int64_t>(window.keys.size()) : pairs.keys;
      RowOfPairs row(pairs, head, rule, i);
      const std::size_t of_query = (n * size(N) + size(i)) * size(D);
      for (std::int64_t at = 0; at < count; ++at) {
        const std::int64_t j = some_keys ? window.keys[size(at)] : at;
        if (head.p[size(i * pairs.keys + j)] == 0) continue;
        row.pair(j);
        const std::int64_t k_row = rule.k_row ? rule.k_row(i, j) : j;
        const double q = pairs.scale * rule.factor_q * weight(rule.counts_q, head.h, i, j);
        const double k = pairs.scale * rule.factor_k * weight(rule.counts_k, head.h, i, j);
        const double v = rule.factor_v * weight(rule.counts_v, head.h, i, j);
        if (q != 0 && k_row >= 0) {
          add_scaled(pairs.k.data() + k_row * D, D, q * row.ds.value, std::abs(q) * row.ds.absolute,
                     of_query, dq);
        }
        if (k != 0) {
          add_scaled(head.q.data() + i * D, D, k * row.ds.value, std::abs(k) * row.ds.absolute,
                     size(j * D), dk);
        }
        if (v != 0) {
          add_scaled(row.dout.data(), Dv, v * row.p, std::abs(v) * row.p, size(j * Dv), dv);
        }
      }
    }
  }
  WrongGradients result{dq.value,
                        dk.value,
                        dv.value,
                        bounds(dq, budget_q, D),
                        bounds(dk, pairs.budget_k, D),
                        bounds(dv, pairs.budget_v, Dv)};
  place(pairs, rule, result);
  return result;
}

}  // namespace ringproof::oracle
