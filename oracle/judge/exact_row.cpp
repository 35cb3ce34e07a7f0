#include "oracle/judge/exact_row.hpp"

#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "oracle/truth/row_setup.hpp"

namespace ringproof::oracle {

namespace {

/// A score as two numbers of which equal pairs are equal scores: the dot product, and what is added
/// to its function. Where the scale is a rational number and no softcap is in between, both are
/// joined into one, and equal scores are equal pairs, too.
using ScoreKey = std::pair<Dyadic, Dyadic>;

/// The root of n if it is an integer, else 0.
std::int64_t integer_root(std::int64_t n) {
  const auto root = static_cast<std::int64_t>(std::lround(std::sqrt(static_cast<double>(n))));
  return root * root == n ? root : 0;
}

class ExactScores {
 public:
  ExactScores(const Problem& problem, const RowTruth& row)
      : problem_(problem),
        b_(row.b),
        h_(row.h),
        i_(row.i),
        kv_head_(problem.kv_head(row.h)),
        root_(integer_root(problem.head_dim)) {
    for (std::int64_t t = 0; t < problem.head_dim; ++t) {
      query_.push_back(Dyadic(problem.q.at(b_, h_, i_, t)) *
                       Dyadic(problem.q_scale.at(b_, h_, i_, t)));
    }
  }

  ScoreKey of_key(std::int64_t j) const {
    Dyadic dot;
    for (std::int64_t t = 0; t < problem_.head_dim; ++t) {
      const Dyadic& q = query_[static_cast<std::size_t>(t)];
      const double k = problem_.k.at(b_, kv_head_, j, t);
      if (q.is_zero() || k == 0) continue;
      dot = dot + q * Dyadic(k) * Dyadic(problem_.k_scale.at(b_, kv_head_, j, t));
    }
    Dyadic added;
    if (problem_.bias) added = added + Dyadic(problem_.bias.at(b_, h_, i_, j));
    if (problem_.alibi_slopes) {
      added = added + Dyadic(-problem_.alibi_slopes.at(b_, h_, 0, 0)) * distance_to(j);
    }
    return key(dot, added);
  }

  ScoreKey of_sink(double sink) const { return key(Dyadic(), Dyadic(sink)); }

 private:
  /// A 64-bit integer does not convert to binary64; its halves do.
  Dyadic distance_to(std::int64_t j) const {
    const std::uint64_t whole = distance(problem_, b_, i_, j);
    return Dyadic(static_cast<double>(whole >> 32)) * Dyadic(0x1p32) +
           Dyadic(static_cast<double>(whole & 0xffffffffU));
  }

  ScoreKey key(const Dyadic& dot, const Dyadic& added) const {
    if (problem_.spec.softcap > 0) return {dot, added};
    if (problem_.spec.scale) return {Dyadic(*problem_.spec.scale) * dot + added, Dyadic()};
    // The scale is 1 / sqrt(D): with an integer root scores are compared times that root.
    if (root_ > 0) return {dot + Dyadic(static_cast<double>(root_)) * added, Dyadic()};
    return {dot, added};  // an irrational multiple of one rational number plus another
  }

  const Problem& problem_;
  std::int64_t b_, h_, i_, kv_head_, root_;
  std::vector<Dyadic> query_;
};

}  // namespace

ExactRow::ExactRow(const Problem& problem, const RowTruth& row)
    : problem_(problem), b_(row.b), kv_head_(problem.kv_head(row.h)) {
  const ExactScores scores(problem, row);
  std::map<ScoreKey, Group> groups;
  for (std::size_t n = 0; n < row.score.size(); ++n) {
    if (row.score[n] == -std::numeric_limits<double>::infinity()) continue;
    const std::int64_t j = row.keys.first + static_cast<std::int64_t>(n);
    groups[scores.of_key(j)].keys.push_back(j);
  }
  if (row.has_sink) groups[scores.of_sink(row.sink)].sink = true;
  for (auto& [score, group] : groups) groups_.push_back(std::move(group));
}

bool ExactRow::column_is(std::int64_t column, const Dyadic& value) const {
  for (const Group& group : groups_) {
    Dyadic sum;
    for (const std::int64_t j : group.keys) {
      sum = sum + Dyadic(problem_.v.at(b_, kv_head_, j, column)) *
                      Dyadic(problem_.v_scale.at(b_, kv_head_, j, column));
    }
    const auto members = static_cast<double>(group.keys.size() + (group.sink ? 1 : 0));
    if (!(sum == Dyadic(members) * value)) return false;
  }
  return true;
}

}  // namespace ringproof::oracle
