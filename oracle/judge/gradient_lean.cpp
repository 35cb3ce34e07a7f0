#include "oracle/judge/gradient_lean.hpp"

#include <cmath>
#include <memory>
#include <mutex>

#include "oracle/contract/backward_bound.hpp"
#include "oracle/contract/cast_classes.hpp"
#include "oracle/contract/output_format.hpp"
#include "oracle/contract/probabilistic.hpp"
#include "oracle/judge/gradient_walk.hpp"
#include "oracle/judge/repeats.hpp"

namespace ringproof::oracle {

namespace {

double square(double x) { return x * x; }

/// Covers the rounding of this evaluation, as in the bounds.
constexpr double kInflation = 1 + 0x1p-30;

/// What stays the same for all rows.
struct LeanRules {
  const GradientRules& judged;
  Contract exact;  // without the listed roundings
  Repeats queries, keys;
  double scale;

  explicit LeanRules(const GradientRules& rules)
      : judged(rules),
        exact(without_gradient_casts(*rules.contract)),
        queries(rules.problem->q),
        keys(rules.problem->k),
        scale(std::fabs(rules.problem->spec.scale_of(rules.problem->head_dim))) {}

  const Problem& problem() const { return *judged.problem; }
};

/// One KV head in both visits.
struct LeanHead {
  std::vector<std::uint8_t> wanted;  // [Nk]
  GradientShape shape, exact_shape;
  std::optional<BackwardHead> values;  // while a visit lasts
  std::vector<double> sign_k, sign_v;  // [Nk, D], [Nk, Dv]; 0: not compared

  LeanHead(const LeanRules& rules, const HeadView& head)
      : wanted(wanted_keys(rules.judged, head)),
        shape(*rules.judged.contract, rules.problem(), head.b, head.kv_head, wanted),
        exact_shape(rules.exact, rules.problem(), head.b, head.kv_head, wanted) {
    const auto keys = static_cast<std::size_t>(rules.problem().keys);
    sign_k.assign(keys * static_cast<std::size_t>(rules.problem().head_dim), 0.0);
    sign_v.assign(keys * static_cast<std::size_t>(rules.problem().value_dim), 0.0);
  }

 private:
  static std::vector<std::uint8_t> wanted_keys(const GradientRules& rules, const HeadView& head) {
    std::vector<std::uint8_t> wanted(static_cast<std::size_t>(rules.problem->keys));
    for (std::int64_t j = 0; rules.sums_over_keys() && j < rules.problem->keys; ++j) {
      wanted[static_cast<std::size_t>(j)] = rules.keys.contains({head.b, head.kv_head, j});
    }
    return wanted;
  }
};

/// The KV heads of a case, made when their first row comes.
class LeanHeads {
 public:
  explicit LeanHeads(const LeanRules& rules)
      : rules_(rules),
        heads_(static_cast<std::size_t>(rules.problem().batches * rules.problem().kv_heads)) {}

  LeanHead& of(const HeadView& head) {
    const std::lock_guard lock(mutex_);
    auto& one = heads_[static_cast<std::size_t>(head.b * rules_.problem().kv_heads + head.kv_head)];
    if (!one) one = std::make_unique<LeanHead>(rules_, head);
    if (!one->values) {
      one->values.emplace(rules_.problem(), head.backward.keys(), head.backward.keys_stride(),
                          head.forward.values(), head.forward.values_stride());
    }
    return *one;
  }

 private:
  const LeanRules& rules_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<LeanHead>> heads_;
};

/// Adds one element's error, and what is not listed of it. Returns the sign it counts with, 0 where
/// it cannot be compared.
double add_element(double answer, const Certified& exact, double exact_bound, double bound,
                   const OutputRule& rule, Suspicion& found) {
  const OutputRounding rounding =
      output_rounding({rule.dtype, rule.round, rule.overflow, rule.flush_to_zero});
  const double reach = std::fabs(exact.hi) + bound;
  const bool compared = std::isfinite(answer) && reach < format_of(rule.dtype).largest;
  const double sign = (exact.hi > 0) - (exact.hi < 0);
  if (!compared || sign == 0) return 0;
  ++found.elements;
  found.lean += sign * ((answer - exact.hi) - exact.lo);
  found.remainder +=
      exact_bound + exact.radius + rounding.eta + 0x1p-50 * std::fabs(answer - exact.hi);
  found.variance += square(rounding.u * reach);
  found.drift += sign * (round_nearest(rule.dtype, exact.hi) - exact.hi);
  found.drift_scale += square(rounding.u * exact.hi);
  return sign;
}

/// What the casts of one row, and its D, do to a sum of elements: the listed roundings of (41).
class RowShare {
 public:
  RowShare(const LeanRules& rules, const RowTruth& row, const RowGradients& gradients,
           const RowMagnitudes& cast, const RowMagnitudes& exact)
      : rules_(rules),
        row_(row),
        gradients_(gradients),
        cast_(cast),
        exact_(exact),
        query_repeats_(rules.queries.of(row.b, row.h, row.i)) {}

  /// Key n of the range has weights that add up to y; `extent` is the sum of their sizes, and
  /// `growth` what a factor of the sum may be off. For dq and dk.
  void add_score(std::size_t n, double y, double extent, double growth) {
    const double largest = std::fabs(y) + growth * extent;
    const double u = rules_.judged.contract->backward.ds_u;
    casts_ += repeats(n) * square(u * cast_.score_gradient[n] * largest);
    const double ds = gradients_.ds[n];
    drift_ += ds * cast_error(std::fabs(ds), u) * y;
    const double factor = gradients_.factor.empty() ? 1.0 : gradients_.factor[n];
    const double weight = probability(n) * factor;
    of_delta_ += weight * y;
    beyond_ += std::max(exact_.weight[n] - std::fabs(weight), 0.0) * std::fabs(y) +
               exact_.weight[n] * growth * extent;
  }
  /// The same for dv, whose terms are cast probabilities.
  void add_probability(std::size_t n, double y, double extent, double growth) {
    const double u = rules_.judged.contract->p.u;
    const double largest = std::fabs(y) + growth * extent;
    casts_ += repeats(n) * square(u * exact_.probability[n] * largest);
    drift_ += probability(n) * cast_error(probability(n), u) * y;
  }

  void finish(double scale, Suspicion& found) const {
    const double of_delta = (std::fabs(of_delta_) + beyond_) * cast_.delta_norm;
    const double variance =
        kInflation * query_repeats_ * square(scale) * (casts_ + square(of_delta));
    ++found.rows;
    found.variance += variance;
    found.drift += scale * (drift_ - of_delta_ * cast_.delta_drift);
    found.drift_scale += variance;
  }

 private:
  double repeats(std::size_t n) const {
    const std::int64_t kv_head = rules_.problem().kv_head(row_.h);
    return rules_.keys.of(row_.b, kv_head, row_.keys.first + static_cast<std::int64_t>(n));
  }
  double probability(std::size_t n) const {
    return gradients_.p.empty() ? row_.p[n] : gradients_.p[n];
  }

  const LeanRules& rules_;
  const RowTruth& row_;
  const RowGradients& gradients_;
  const RowMagnitudes &cast_, &exact_;
  double query_repeats_, casts_ = 0, drift_ = 0, of_delta_ = 0, beyond_ = 0;
};

/// sum_c g_c x_c and the sum of its sizes.
struct Weighted {
  double y = 0, extent = 0;
  Weighted(const double* g, const double* x, std::int64_t count) {
    for (std::int64_t c = 0; c < count; ++c) {
      y += g[c] * x[c];
      extent += std::fabs(g[c] * x[c]);
    }
  }
};

/// Rows of one KV head in the first visit: dq as a whole, of dk and dv everything but casts.
class FirstVisit final : public GradientGroup {
 public:
  FirstVisit(const LeanRules& rules, LeanHead& head, const HeadView& view)
      : rules_(rules), head_(head), b_(view.b), kv_head_(view.kv_head) {
    if (!rules.judged.sums_over_keys()) return;
    sums_.emplace(rules.problem(), head.wanted);
    bounds_.emplace(head.shape);
    exact_bounds_.emplace(head.exact_shape);
    doubtful_.assign(head.wanted.size(), 0);
  }

  GradientSums* sums() override { return sums_ ? &*sums_ : nullptr; }

  void add_row(const HeadView&, RowTruth& row, RowGradients& gradients) override {
    const bool known = gradients.not_applicable.empty() && !gradients.failed;
    if (known) {
      bound_row_backward(*rules_.judged.contract, rules_.problem(), rules_.judged.upstream.given,
                         *head_.values, row, gradients, bound_, bounds_ ? &*bounds_ : nullptr,
                         &cast_);
    }
    if (!known || !bound_.not_applicable.empty()) return doubt(row);
    bound_row_backward(rules_.exact, rules_.problem(), rules_.judged.upstream.given, *head_.values,
                       row, gradients, exact_bound_, exact_bounds_ ? &*exact_bounds_ : nullptr,
                       &exact_);
    const bool judged =
        rules_.judged.dq.answer != nullptr && rules_.judged.queries.contains({row.b, row.h, row.i});
    if (judged && !row.empty()) add_query(row, gradients);
  }

  void merge(GradientGroup& other) override {
    auto& later = static_cast<FirstVisit&>(other);
    leans.merge(later.leans);
    for (std::size_t j = 0; j < doubtful_.size(); ++j) doubtful_[j] |= later.doubtful_[j];
    if (!sums_) return;
    sums_->merge(*later.sums_);
    bounds_->merge(*later.bounds_);
    exact_bounds_->merge(*later.exact_bounds_);
  }

  void finish(const HeadView&) override {
    head_.values.reset();
    if (!sums_) return;
    bounds_->finish();
    exact_bounds_->finish();
    const Problem& p = rules_.problem();
    for (std::int64_t j = 0; j < p.keys; ++j) {
      const bool known = sums_->wanted(j) && doubtful_[static_cast<std::size_t>(j)] == 0 &&
                         !sums_->not_applicable(j);
      if (!known) continue;
      add_key(AnswerKind::dk, rules_.judged.dk, j, p.head_dim, head_.sign_k);
      add_key(AnswerKind::dv, rules_.judged.dv, j, p.value_dim, head_.sign_v);
    }
    sums_.reset();
    bounds_.reset();
    exact_bounds_.reset();
  }

  GradientLeans leans;

 private:
  /// Keys that the row sees are not compared. A row that is not applicable has no scores.
  void doubt(const RowTruth& row) {
    if (doubtful_.empty()) return;
    for (std::int64_t j = row.keys.first; j < row.keys.last; ++j) {
      if (visible(rules_.problem(), row.b, row.h, row.i, j)) {
        doubtful_[static_cast<std::size_t>(j)] = 1;
      }
    }
  }

  void add_query(const RowTruth& row, const RowGradients& gradients) {
    const std::int64_t D = rules_.problem().head_dim;
    Suspicion& found = leans[AnswerKind::dq];
    std::vector<double> sign(static_cast<std::size_t>(D));
    for (std::size_t d = 0; d < sign.size(); ++d) {
      const double answer =
          rules_.judged.dq.answer->at(row.b, row.h, row.i, static_cast<std::int64_t>(d));
      sign[d] = add_element(answer, gradients.dq[d], exact_bound_.dq[d], bound_.dq[d],
                            rules_.judged.dq.rule, found);
    }
    RowShare share(rules_, row, gradients, cast_, exact_);
    for (std::size_t n = 0; n < row.score.size(); ++n) {
      if (exact_.probability[n] == 0) continue;
      const double* key = head_.values->keys + (row.keys.first + static_cast<std::int64_t>(n)) *
                                                   head_.values->keys_stride;
      const Weighted of_key(sign.data(), key, D);
      share.add_score(n, of_key.y, of_key.extent, cast_.after_query);
    }
    share.finish(rules_.scale * (1 + cast_.after_query), found);
  }

  void add_key(AnswerKind kind, const JudgedGradient& judged, std::int64_t j, std::int64_t columns,
               std::vector<double>& signs) {
    if (judged.answer == nullptr) return;
    const bool of_key = kind == AnswerKind::dk;
    for (std::int64_t c = 0; c < columns; ++c) {
      const Certified exact = of_key ? sums_->dk(j, c) : sums_->dv(j, c);
      const double bound = of_key ? bounds_->dk(j, c) : bounds_->dv(j, c);
      const double exact_bound = of_key ? exact_bounds_->dk(j, c) : exact_bounds_->dv(j, c);
      signs[static_cast<std::size_t>(j * columns + c)] =
          add_element(judged.answer->at(b_, kv_head_, j, c), exact, exact_bound, bound, judged.rule,
                      leans[kind]);
    }
  }

  const LeanRules& rules_;
  LeanHead& head_;
  std::int64_t b_, kv_head_;
  std::optional<GradientSums> sums_;
  std::optional<GradientBoundSums> bounds_, exact_bounds_;
  std::vector<std::uint8_t> doubtful_;  // [Nk]
  RowGradientBound bound_, exact_bound_;
  RowMagnitudes cast_, exact_;
};

/// Rows of one KV head in the second visit: the casts behind dk and dv, whose signs are known now.
class SecondVisit final : public GradientGroup {
 public:
  SecondVisit(const LeanRules& rules, LeanHead& head) : rules_(rules), head_(head) {}

  GradientSums* sums() override { return nullptr; }

  void add_row(const HeadView&, RowTruth& row, RowGradients& gradients) override {
    if (!gradients.not_applicable.empty() || gradients.failed || row.empty()) return;
    const GivenForward& given = rules_.judged.upstream.given;
    bound_row_backward(*rules_.judged.contract, rules_.problem(), given, *head_.values, row,
                       gradients, bound_, nullptr, &cast_);
    if (!bound_.not_applicable.empty()) return;
    bound_row_backward(rules_.exact, rules_.problem(), given, *head_.values, row, gradients, bound_,
                       nullptr, &exact_);
    RowShare of_keys(rules_, row, gradients, cast_, exact_);
    RowShare of_values(rules_, row, gradients, cast_, exact_);
    const std::int64_t D = rules_.problem().head_dim, Dv = rules_.problem().value_dim;
    for (std::size_t n = 0; n < row.score.size(); ++n) {
      if (exact_.probability[n] == 0) continue;
      const std::int64_t j = row.keys.first + static_cast<std::int64_t>(n);
      const Weighted query(head_.sign_k.data() + j * D, gradients.q.data(), D);
      const Weighted upstream(head_.sign_v.data() + j * Dv, gradients.dout.data(), Dv);
      of_keys.add_score(n, query.y, query.extent, head_.shape.relative_query()[j]);
      of_values.add_probability(n, upstream.y, upstream.extent, head_.shape.relative_upstream()[j]);
    }
    if (rules_.judged.dk.answer != nullptr) of_keys.finish(rules_.scale, leans[AnswerKind::dk]);
    if (rules_.judged.dv.answer != nullptr) of_values.finish(1, leans[AnswerKind::dv]);
  }

  void merge(GradientGroup& other) override { leans.merge(static_cast<SecondVisit&>(other).leans); }
  void finish(const HeadView&) override { head_.values.reset(); }

  GradientLeans leans;

 private:
  const LeanRules& rules_;
  LeanHead& head_;
  RowGradientBound bound_;
  RowMagnitudes cast_, exact_;
};

}  // namespace

GradientLeans lean_of_gradients(const GradientRules& judged, const WalkOptions& options) {
  const bool sums = judged.sums_over_keys();
  if (judged.dq.answer == nullptr && !sums) return {};
  const LeanRules rules(judged);
  LeanHeads heads(rules);
  const RowSet rows = sums ? RowSet(rules.problem()) : judged.queries;
  GradientLeans leans;
  const auto visit = [&](const StartGroup& start) {
    return walk_gradients(rules.problem(), judged.upstream, rows, judged.bits, options, start);
  };
  for (const auto& group : visit([&](const HeadView& head) {
         return std::make_unique<FirstVisit>(rules, heads.of(head), head);
       })) {
    leans.merge(static_cast<const FirstVisit&>(*group).leans);
  }
  if (!sums) return leans;
  for (const auto& group : visit([&](const HeadView& head) {
         return std::make_unique<SecondVisit>(rules, heads.of(head));
       })) {
    leans.merge(static_cast<const SecondVisit&>(*group).leans);
  }
  return leans;
}

}  // namespace ringproof::oracle
