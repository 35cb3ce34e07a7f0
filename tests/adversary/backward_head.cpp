// Drawing a KV head, and its gradients from their definition (backward_head.hpp).
#include "tests/adversary/backward_head.hpp"

#include <algorithm>
#include <cmath>

namespace ringproof::adversary {
namespace {

using oracle::DType;
using Real = long double;

/// The row of the family again with another query, seeing its first `count` keys.
Row with_query(const Row& base, std::int64_t count, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  Row row = base;
  double size = 0;
  for (const double x : base.query) size = std::max(size, std::fabs(x));
  for (double& x : row.query) x = x * (1 + 0.2 * normal(random)) + 0.02 * size * normal(random);
  const auto n = static_cast<std::size_t>(count);
  row.keys.resize(n * static_cast<std::size_t>(row.head_dim));
  row.values.resize(n * static_cast<std::size_t>(row.value_dim));
  row.position.resize(n);
  if (!row.bias.empty()) row.bias.resize(n);
  if (!row.alibi.empty()) row.alibi.resize(n);
  return row;
}

double size_of(Upstream upstream) {
  return upstream == Upstream::tiny ? 1e-40 : upstream == Upstream::huge ? 1e3 : 1;
}

void spread_over_places(const Row& row, Head& head) {
  const auto D = static_cast<std::size_t>(row.head_dim);
  const auto Dv = static_cast<std::size_t>(row.value_dim);
  head.keys.assign(static_cast<std::size_t>(head.total_keys) * D, 0.0);
  head.values.assign(static_cast<std::size_t>(head.total_keys) * Dv, 0.0);
  for (std::size_t j = 0; j < row.position.size(); ++j) {
    const auto place = static_cast<std::size_t>(row.position[j]);
    std::copy_n(row.keys.begin() + static_cast<std::ptrdiff_t>(j * D), D,
                head.keys.begin() + static_cast<std::ptrdiff_t>(place * D));
    std::copy_n(row.values.begin() + static_cast<std::ptrdiff_t>(j * Dv), Dv,
                head.values.begin() + static_cast<std::ptrdiff_t>(place * Dv));
  }
}

/// Tensors that the bounds look at: the mask, and the given outputs of isolated mode.
void build_problem(const Head& head, JudgedHead& judged) {
  const Row& first = head.rows.front();
  emulate::OwnedProblem& owned = judged.owned;
  const std::int64_t rows = head.queries, keys = head.total_keys;
  owned.resize(1, head.group, 1, rows, keys, head.head_dim, head.value_dim);
  std::vector<double> seen(static_cast<std::size_t>(rows * keys), 0.0);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (const std::int64_t place : head.rows[static_cast<std::size_t>(i)].position) {
      seen[static_cast<std::size_t>(i * keys + place)] = 1;
    }
  }
  oracle::Problem& problem = owned.problem;
  problem.mask = emulate::broadcast(owned.tensors.add(DType::boolean, {1, 1, rows, keys}, seen),
                                    {1, head.group, rows, keys});
  problem.spec.scale = first.scale;
  problem.spec.softcap = first.softcap;
  problem.spec.ranks = first.ranks;
  if (head.given_lse.empty()) return;
  judged.given.out =
      owned.tensors.add(DType::f64, {1, head.group, rows, head.value_dim}, head.given_out);
  judged.given.lse = owned.tensors.add(DType::f64, {1, head.group, rows, 1}, head.given_lse);
}

/// Everything of one row but its sums.
class RowOf {
 public:
  RowOf(const Head& head, std::size_t index, JudgedHead& judged)
      : head_(head),
        index_(index),
        row_(head.rows[index]),
        judged_(judged),
        forward_(judged_row(row_)) {
    isolated_ = !head.given_lse.empty();
    truth_ = forward_.truth;
    truth_.h = static_cast<std::int64_t>(index) / head.queries;
    truth_.i = static_cast<std::int64_t>(index) % head.queries;
    L_ = isolated_ ? Real{head.given_lse[index]} : forward_.lse;
  }

  void fill() {
    const auto D = static_cast<std::size_t>(head_.head_dim);
    const auto Dv = static_cast<std::size_t>(head_.value_dim);
    const auto keys = static_cast<std::size_t>(head_.total_keys);
    gradients_.dlse = head_.dlse[index_];
    gradients_.q = row_.query;
    for (std::size_t c = 0; c < Dv; ++c) {
      gradients_.dout.push_back(upstream(c));
      delta_ +=
          upstream(c) * (isolated_ ? Real{head_.given_out[index_ * Dv + c]} : forward_.out[c]);
    }
    gradients_.D = static_cast<double>(delta_);
    gradients_.D_radius = std::fabs(gradients_.D) * 0x1p-52;
    gradients_.lse_given = isolated_ ? static_cast<double>(L_) : 0;
    for (auto* array : {&gradients_.dp, &gradients_.abs_dp, &gradients_.ds}) array->assign(keys, 0);
    if (isolated_) gradients_.p.assign(keys, 0);
    if (row_.softcap > 0) gradients_.factor.assign(keys, 1);
    std::vector<Real> dq(D, 0);
    for (std::int64_t j = 0; j < row_.visible(); ++j) key(j, dq);
    for (std::size_t d = 0; d < D; ++d) {
      judged_.dq.push_back(dq[d]);
      const auto hi = static_cast<double>(dq[d]);
      gradients_.dq.push_back({hi, 0, std::fabs(hi) * 0x1p-50});
    }
    if (row_.sink) {
      const Real p = std::exp(static_cast<Real>(*row_.sink) - L_);
      gradients_.p_sink = static_cast<double>(p);
      judged_.dsinks -= p * (delta_ - gradients_.dlse);
    }
    judged_.truth.push_back(std::move(truth_));
    judged_.gradients.push_back(std::move(gradients_));
  }

 private:
  Real upstream(std::size_t c) const {
    return head_.upstream(index_, static_cast<std::int64_t>(c));
  }

  /// The score again in extended precision: the judge's arrays are rounded.
  Real score(std::int64_t j, Real& factor) const {
    Real dot = 0;
    for (std::int64_t t = 0; t < row_.head_dim; ++t) {
      dot += Real{row_.query[static_cast<std::size_t>(t)]} *
             row_.keys[static_cast<std::size_t>(j * row_.head_dim + t)];
    }
    Real s = dot * row_.scale;
    factor = 1;
    if (row_.softcap > 0) {
      const Real y = std::tanh(s / row_.softcap);
      s = row_.softcap * y;
      factor = 1 - y * y;
    }
    if (!row_.bias.empty()) s += row_.bias[static_cast<std::size_t>(j)];
    if (!row_.alibi.empty()) s += row_.alibi[static_cast<std::size_t>(j)];
    return s;
  }

  void key(std::int64_t j, std::vector<Real>& dq) {
    const auto place = static_cast<std::size_t>(row_.position[static_cast<std::size_t>(j)]);
    const std::size_t D = dq.size(), Dv = gradients_.dout.size();
    Real dp = 0, magnitude = 0, factor = 1;
    for (std::size_t c = 0; c < Dv; ++c) {
      const Real x = upstream(c) * row_.value(j, static_cast<std::int64_t>(c));
      dp += x;
      magnitude += std::fabs(x);
    }
    const Real p = std::exp(score(j, factor) - L_);
    const Real ds = p * (dp - delta_ + gradients_.dlse) * factor;
    gradients_.dp[place] = static_cast<double>(dp);
    gradients_.abs_dp[place] = static_cast<double>(magnitude * (1 + 0x1p-50L));
    gradients_.ds[place] = static_cast<double>(ds);
    if (isolated_) gradients_.p[place] = static_cast<double>(p);
    if (row_.softcap > 0) gradients_.factor[place] = static_cast<double>(factor);
    for (std::size_t d = 0; d < D; ++d) {
      dq[d] += row_.scale * ds * row_.keys[static_cast<std::size_t>(j) * D + d];
      judged_.dk[place * D + d] += row_.scale * ds * row_.query[d];
    }
    for (std::size_t c = 0; c < Dv; ++c) judged_.dv[place * Dv + c] += p * upstream(c);
  }

  const Head& head_;
  std::size_t index_;
  const Row& row_;
  JudgedHead& judged_;
  JudgedRow forward_;
  bool isolated_;
  oracle::RowTruth truth_;
  oracle::RowGradients gradients_;
  Real L_ = 0, delta_ = 0;
};

/// Outputs as another kernel might have left them.
void give_forward(Head& head, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  for (const Row& row : head.rows) {
    const JudgedRow exact = judged_row(row);
    head.given_lse.push_back(static_cast<double>(exact.lse) + 0.01 * normal(random));
    for (const Real o : exact.out) {
      head.given_out.push_back(static_cast<double>(o) * (1 + 0.01 * normal(random)));
    }
  }
}

}  // namespace

Head make_head(Family family, Upstream upstream, const HeadOptions& options,
               std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  const Row base = make_row(family, options.row, random);
  Head head;
  head.group = options.group;
  head.queries = options.queries;
  head.total_keys = base.total_keys;
  head.head_dim = base.head_dim;
  head.value_dim = base.value_dim;
  spread_over_places(base, head);
  const bool prefixes = random() % 2 == 0;  // row i sees the more keys, the later it comes
  for (std::int64_t h = 0; h < head.group; ++h) {
    for (std::int64_t i = 0; i < head.queries; ++i) {
      const std::int64_t part = std::max<std::int64_t>(1, base.visible() * (i + 1) / head.queries);
      head.rows.push_back(with_query(base, prefixes ? part : base.visible(), random));
    }
  }
  for (std::size_t k = 0; k < head.rows.size() * static_cast<std::size_t>(head.value_dim); ++k) {
    head.dout.push_back(size_of(upstream) * normal(random));
  }
  for (std::size_t k = 0; k < head.rows.size(); ++k) {
    head.dlse.push_back(upstream == Upstream::with_lse ? 5 * normal(random) : 0);
  }
  if (options.isolated) give_forward(head, random);
  return head;
}

JudgedHead judged_head(const Head& head) {
  JudgedHead judged;
  build_problem(head, judged);
  judged.dk.assign(static_cast<std::size_t>(head.total_keys * head.head_dim), 0);
  judged.dv.assign(static_cast<std::size_t>(head.total_keys * head.value_dim), 0);
  for (std::size_t row = 0; row < head.rows.size(); ++row) RowOf(head, row, judged).fill();
  return judged;
}

}  // namespace ringproof::adversary
