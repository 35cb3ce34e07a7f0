// The backward pass on intervals: dense_softmax.hpp and dense_gradients.hpp, row by row; for single
// rows, and for single keys over all rows. Everything is outward rounded from the stored bits on.
#include "oracle/truth/dense_gradients.hpp"
#include "oracle/truth/gradient_setup.hpp"
#include "oracle/truth/gradient_sums.hpp"
#include "oracle/truth/interval_scores.hpp"

namespace ringproof::oracle {
namespace {

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

template <class Number>
Certified certified(const Number& x) {
  return certify(x.backend().data());
}
template <class Number>
double nearest(const Number& x) {
  return middle(x.backend().data());
}

/// What a row hands on to the sums over keys, beside its forward row.
template <class Number>
struct IntervalGradients {
  std::vector<Number> dout;  // [Dv]
  std::vector<Number> p;     // [visible keys]
  ScoreGradients<Number> scores;
};

/// The largest part of |rounded - exact| that "2^-53 |rounded|" does not cover.
template <class Number>
double excess(const std::vector<Number>& exact, const std::vector<double>& rounded,
              const std::vector<std::int64_t>& keys, std::int64_t first) {
  double largest = 0;
  for (std::size_t n = 0; n < keys.size(); ++n) {
    const double centre = rounded[size(keys[n] - first)];
    if (!std::isfinite(centre)) return HUGE_VAL;
    const double covered = std::abs(centre) > 0x1p-900 ? 0x1p-53 * std::abs(centre) : 0;
    const double radius = farthest(exact[n].backend().data(), centre);
    if (radius > covered) {
      largest = std::max(largest, std::nextafter(radius - covered, HUGE_VAL));
    }
  }
  return largest;
}

/// True if some number is surely larger than any of binary64.
template <class Number>
bool beyond_binary64(const std::vector<Number>& numbers) {
  return std::any_of(numbers.begin(), numbers.end(), [](const Number& x) {
    const Number magnitude = abs(x);
    return lower_end(magnitude.backend().data()) >= std::numeric_limits<double>::max();
  });
}

/// L and D of the row: its own, or those given in isolated mode.
template <class Number>
struct LseAndD {
  Number lse, D;
};
template <class Number>
LseAndD<Number> lse_and_d(const Upstream& upstream, const GradientInputs& inputs,
                          std::span<const Number> dout, const SoftmaxRow<Number>& answer) {
  if (!upstream.given.isolated()) return {answer.lse, inner_product<Number>(dout, answer.out)};
  Number lse = inputs.lse_given;
  if (upstream.given.base == LseBase::two) lse *= log(Number(2));
  const std::vector<Number> out(inputs.out_given.begin(), inputs.out_given.end());
  return {lse, inner_product<Number>(dout, out)};
}

/// Fills the arrays of `gradients` from the exact ones.
template <class Number>
void fill_arrays(const Problem& problem, const RowTruth& row, const IntervalRow<Number>& forward,
                 const IntervalGradients<Number>& exact, RowGradients& gradients) {
  const std::int64_t first = row.keys.first;
  StoredRows<Number> values(problem.v, problem.v_scale, row.b, problem.kv_head(row.h));
  for (std::size_t n = 0; n < forward.keys.size(); ++n) {
    const std::size_t at = size(forward.keys[n] - first);
    gradients.dp[at] = nearest(exact.scores.dp[n]);
    Number magnitude = 0;
    const std::vector<Number>& value = values(forward.keys[n]);
    for (std::size_t c = 0; c < value.size(); ++c)
      magnitude += abs(Number(exact.dout[c] * value[c]));
    gradients.abs_dp[at] = upper_end(magnitude.backend().data());
    gradients.ds[at] = nearest(exact.scores.ds[n]);
    if (!forward.tanh.empty()) {
      gradients.factor[at] = nearest(Number(1 - forward.tanh[n] * forward.tanh[n]));
    }
    if (!gradients.dbias.empty()) gradients.dbias[at] = certified(exact.scores.dbias[n]);
    if (!gradients.p.empty()) gradients.p[at] = nearest(exact.p[n]);
  }
  gradients.dp_radius = excess(exact.scores.dp, gradients.dp, forward.keys, first);
  gradients.ds_radius = excess(exact.scores.ds, gradients.ds, forward.keys, first);
}

template <class Number>
void fill_dq(const Problem& problem, const RowTruth& row, const IntervalRow<Number>& forward,
             const std::vector<Number>& ds, RowGradients& gradients) {
  StoredRows<Number> keys(problem.k, problem.k_scale, row.b, problem.kv_head(row.h));
  std::vector<Number> dq(gradients.dq.size(), Number(0));
  Number term;
  for (std::size_t n = 0; n < forward.keys.size(); ++n) {
    const std::vector<Number>& key = keys(forward.keys[n]);
    for (std::size_t d = 0; d < dq.size(); ++d) {
      term = ds[n] * key[d];
      dq[d] += term;
    }
  }
  for (std::size_t d = 0; d < dq.size(); ++d) {
    gradients.dq[d] = certified(Number(forward.scale * dq[d]));
  }
}

/// The whole row, forward and backward. False if it is complete without arithmetic or not
/// applicable. `gradients` fails if the intervals are too wide for binary64 numbers to stand for
/// them; `exact` holds even then.
template <class Number>
bool compute_row(const Problem& problem, const Upstream& upstream, const std::uint8_t* keys_finite,
                 std::int64_t b, std::int64_t h, std::int64_t i, RowTruth& row,
                 RowGradients& gradients, IntervalRow<Number>& forward,
                 IntervalGradients<Number>& exact) {
  RowInputs row_inputs;
  if (begin_row(problem, b, h, i, keys_finite, row, row_inputs)) {
    compute_interval_row(problem, row_inputs.visible, row, forward);
  }
  GradientInputs inputs;
  if (!begin_gradients(problem, upstream, row, gradients, inputs)) return false;
  if (row.visible == 0) forward.answer.lse = row.sink;
  forward.answer.out.resize(size(problem.value_dim), Number(0));
  exact.dout.assign(gradients.dout.begin(), gradients.dout.end());
  const LseAndD<Number> shared = lse_and_d<Number>(upstream, inputs, exact.dout, forward.answer);
  gradients.lse_given = upstream.given.isolated() ? nearest(shared.lse) : 0;
  for (const Number& score : forward.scores) exact.p.push_back(exp(Number(score - shared.lse)));
  StoredRows<Number> values(problem.v, problem.v_scale, b, problem.kv_head(h));
  exact.scores = dense_score_gradients<Number>(
      exact.p, forward.tanh, exact.dout, shared.D,
      Number(gradients.dlse), [&](std::size_t n) -> const auto& {
        return values(forward.keys[n]);
      });
  const Certified D = certified(shared.D);
  gradients.D = D.hi;
  gradients.D_radius = farthest(shared.D.backend().data(), D.hi);
  if (row.has_sink) {
    const Number p_sink = exp(Number(row.sink - shared.lse));
    gradients.p_sink = nearest(p_sink);
    gradients.dsink = certified(Number(p_sink * (gradients.dlse - shared.D)));
  }
  fill_arrays(problem, row, forward, exact, gradients);
  fill_dq(problem, row, forward, exact.scores.ds, gradients);
  if (beyond_binary64(exact.scores.dp) || beyond_binary64(exact.scores.ds)) {
    gradients.not_applicable = "a gradient is beyond binary64";
    return false;
  }
  gradients.failed = !std::isfinite(gradients.dp_radius) || !std::isfinite(gradients.ds_radius);
  return true;
}

/// Adds the share of one row to the sums of the keys it sees.
template <class Number>
void add_row(const IntervalRow<Number>& forward, const IntervalGradients<Number>& exact,
             GradientSums::Impl& sums) {
  for (std::size_t n = 0; n < forward.keys.size(); ++n) {
    const std::int64_t slot = sums.slot[size(forward.keys[n])];
    if (slot < 0) continue;
    for (std::size_t d = 0; d < forward.query.size(); ++d) {
      sums.dk.add(slot, static_cast<std::int64_t>(d),
                  certified(Number(exact.scores.ds[n] * forward.query[d])));
    }
    for (std::size_t c = 0; c < exact.dout.size(); ++c) {
      sums.dv.add(slot, static_cast<std::int64_t>(c),
                  certified(Number(exact.p[n] * exact.dout[c])));
    }
  }
}

/// Sums of one key over all rows.
template <class Number>
struct KeySum {
  std::string not_applicable;
  std::vector<Number> dk, dv;
};

template <class Number>
void add_row_to_keys(const Problem& problem, const RowTruth& row, const RowGradients& gradients,
                     const IntervalRow<Number>& forward, const IntervalGradients<Number>& exact,
                     std::span<const std::int64_t> keys, std::vector<KeySum<Number>>& sums) {
  Number term;
  for (std::size_t k = 0; k < keys.size(); ++k) {
    if (!visible(problem, row.b, row.h, row.i, keys[k])) continue;
    if (!gradients.not_applicable.empty()) {
      sums[k].not_applicable = "row " + std::to_string(row.i) + " of head " +
                               std::to_string(row.h) + ": " + gradients.not_applicable;
      continue;
    }
    const auto place = std::lower_bound(forward.keys.begin(), forward.keys.end(), keys[k]);
    const auto n = static_cast<std::size_t>(place - forward.keys.begin());
    for (std::size_t d = 0; d < forward.query.size(); ++d) {
      term = exact.scores.ds[n] * forward.query[d];
      sums[k].dk[d] += term;
    }
    for (std::size_t c = 0; c < exact.dout.size(); ++c) {
      term = exact.p[n] * exact.dout[c];
      sums[k].dv[c] += term;
    }
  }
}

template <class Number>
std::vector<KeyGradients> key_gradients(const Problem& problem, const Upstream& upstream,
                                        std::int64_t b, std::int64_t kv_head,
                                        std::span<const std::int64_t> keys) {
  const std::vector<std::uint8_t> finite = finite_keys(problem, b, kv_head, {0, problem.keys});
  const std::vector<Number> no_dk(size(problem.head_dim), Number(0));
  const std::vector<Number> no_dv(size(problem.value_dim), Number(0));
  std::vector<KeySum<Number>> sums(keys.size(), {"", no_dk, no_dv});
  Number scale = 1;
  for (std::int64_t h = kv_head * problem.group(); h < (kv_head + 1) * problem.group(); ++h) {
    for (std::int64_t i = 0; i < problem.queries; ++i) {
      const bool sees = std::any_of(keys.begin(), keys.end(),
                                    [&](std::int64_t j) { return visible(problem, b, h, i, j); });
      if (!sees) continue;
      RowTruth row;
      RowGradients gradients;
      IntervalRow<Number> forward;
      IntervalGradients<Number> exact;
      if (compute_row(problem, upstream, finite.data(), b, h, i, row, gradients, forward, exact)) {
        scale = forward.scale;
      }
      add_row_to_keys(problem, row, gradients, forward, exact, keys, sums);
    }
  }
  std::vector<KeyGradients> result;
  for (const KeySum<Number>& sum : sums) {
    KeyGradients& key = result.emplace_back();
    key.not_applicable = sum.not_applicable;
    for (const Number& element : sum.dk) key.dk.push_back(certified(Number(scale * element)));
    for (const Number& element : sum.dv) key.dv.push_back(certified(element));
  }
  return result;
}

}  // namespace

void interval_row_gradients(const Problem& problem, const Upstream& upstream, std::int64_t b,
                            std::int64_t h, std::int64_t i, unsigned bits, RowTruth& row,
                            RowGradients& gradients, GradientSums* sums) {
  const std::vector<std::uint8_t> finite =
      finite_keys(problem, b, problem.kv_head(h), visible_range(problem, b, i));
  with_interval(bits, [&]<class Number>() {
    IntervalRow<Number> forward;
    IntervalGradients<Number> exact;
    const bool computed =
        compute_row(problem, upstream, finite.data(), b, h, i, row, gradients, forward, exact);
    if (sums == nullptr || gradients.failed) return;
    mark_seen(problem, row, !gradients.not_applicable.empty(), sums->impl());
    if (computed) add_row(forward, exact, sums->impl());
  });
}

std::vector<KeyGradients> interval_key_gradients(const Problem& problem, const Upstream& upstream,
                                                 std::int64_t b, std::int64_t kv_head,
                                                 std::span<const std::int64_t> keys,
                                                 unsigned bits) {
  std::vector<KeyGradients> result;
  with_interval(bits, [&]<class Number>() {
    result = key_gradients<Number>(problem, upstream, b, kv_head, keys);
  });
  return result;
}

}  // namespace ringproof::oracle
