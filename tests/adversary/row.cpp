// The judge's view of an adversary's row, from its definition, in long double (row.hpp).
#include "tests/adversary/row.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace ringproof::adversary {
namespace {

using oracle::DType;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Scores {
  std::vector<long double> final_score;  // [n]
  std::vector<double> dot, abs_dot, capped;
};

/// s_j and its parts for the visible keys (docs/formats.md, "Score").
Scores scores_of(const Row& row) {
  Scores scores;
  for (std::int64_t j = 0; j < row.visible(); ++j) {
    long double sum = 0, absolute = 0;
    for (std::int64_t t = 0; t < row.head_dim; ++t) {
      const long double product = static_cast<long double>(row.query[static_cast<std::size_t>(t)]) *
                                  row.keys[static_cast<std::size_t>(j * row.head_dim + t)];
      sum += product;
      absolute += std::fabs(product);
    }
    long double score = sum * row.scale;
    scores.dot.push_back(static_cast<double>(score));
    // Rounded up: the judge is promised an upper bound.
    const double bound = static_cast<double>(absolute * std::fabs(row.scale));
    scores.abs_dot.push_back(bound == 0 ? 0 : std::nextafter(bound, kInfinity));
    if (row.softcap > 0) {
      score = row.softcap * std::tanh(score / row.softcap);
      scores.capped.push_back(static_cast<double>(score));
    }
    if (!row.bias.empty()) score += row.bias[static_cast<std::size_t>(j)];
    if (!row.alibi.empty()) score += row.alibi[static_cast<std::size_t>(j)];
    scores.final_score.push_back(score);
  }
  return scores;
}

/// `size`: the sum of the absolute values of what was added. 2^-50 of it covers every long double sum
/// here (n <= 2^10 terms, relative error 2^-63 a step).
oracle::Certified certified(long double value, long double size) {
  const double high = static_cast<double>(value);
  return {.hi = high,
          .lo = static_cast<double>(value - high),
          .radius = static_cast<double>(size) * 0x1p-50};
}

/// The problem around the row; with a known ring the queries are as many as the keys, so that the
/// query belongs to the rank that owns its position.
void build_problem(const Row& row, const std::vector<std::int64_t>& place, std::int64_t total_keys,
                   JudgedRow& judged) {
  emulate::OwnedProblem& owned = judged.owned;
  const std::int64_t queries = row.ring ? total_keys : 1;
  owned.resize(1, 1, 1, queries, total_keys, row.head_dim, row.value_dim);
  if (!row.ring) owned.problem.position_q = {row.query_position};
  std::vector<double> q(static_cast<std::size_t>(queries * row.head_dim), 0.0);
  std::vector<double> k(static_cast<std::size_t>(total_keys * row.head_dim), 0.0);
  judged.values.assign(static_cast<std::size_t>(total_keys * row.value_dim), 0.0);
  std::vector<double> seen(static_cast<std::size_t>(total_keys), 0.0);
  std::copy(row.query.begin(), row.query.end(), q.begin() + judged.truth.i * row.head_dim);
  for (std::int64_t j = 0; j < row.visible(); ++j) {
    const std::int64_t at = place[static_cast<std::size_t>(j)];
    seen[static_cast<std::size_t>(at)] = 1;
    std::copy_n(row.keys.begin() + j * row.head_dim, row.head_dim, k.begin() + at * row.head_dim);
    std::copy_n(row.values.begin() + j * row.value_dim, row.value_dim,
                judged.values.begin() + at * row.value_dim);
  }
  oracle::Problem& problem = owned.problem;
  problem.q = owned.tensors.add(DType::f64, {1, 1, queries, row.head_dim}, q);
  problem.k = owned.tensors.add(DType::f64, {1, 1, total_keys, row.head_dim}, k);
  problem.v = owned.tensors.add(DType::f64, {1, 1, total_keys, row.value_dim}, judged.values);
  problem.mask = emulate::broadcast(owned.tensors.add(DType::boolean, {1, 1, 1, total_keys}, seen),
                                    {1, 1, queries, total_keys});
  if (row.sink) {
    const double sink[] = {*row.sink};
    problem.sinks = owned.tensors.add(DType::f64, {1, 1, 1, 1}, sink);
  }
  problem.spec.scale = row.scale;
  problem.spec.softcap = row.softcap;
  problem.spec.ranks = row.ranks;
  problem.spec.ring = row.ring;
}

}  // namespace

JudgedRow judged_row(const Row& row, bool see_holes) {
  JudgedRow judged;
  oracle::RowTruth& truth = judged.truth;
  std::vector<std::int64_t> place = row.position;
  if (!see_holes) std::iota(place.begin(), place.end(), 0);
  const std::int64_t total_keys = see_holes ? row.total_keys : row.visible();
  truth.i = row.ring ? row.query_position : 0;
  truth.keys = {0, total_keys};
  truth.visible = row.visible();
  truth.has_sink = row.sink.has_value();
  truth.sink = row.sink.value_or(0);
  build_problem(row, place, total_keys, judged);

  const Scores scores = scores_of(row);
  const auto at = [&](std::int64_t j) {
    return static_cast<std::size_t>(place[static_cast<std::size_t>(j)]);
  };
  const auto spread = [&](const std::vector<double>& from, double elsewhere) {
    std::vector<double> to;
    if (from.empty()) return to;
    to.assign(static_cast<std::size_t>(total_keys), elsewhere);
    for (std::int64_t j = 0; j < row.visible(); ++j) to[at(j)] = from[static_cast<std::size_t>(j)];
    return to;
  };
  truth.dot = spread(scores.dot, 0);
  truth.abs_dot = spread(scores.abs_dot, 0);
  truth.capped = spread(scores.capped, 0);
  truth.bias = spread(row.bias, 0);
  truth.alibi = spread(row.alibi, 0);
  truth.score.assign(static_cast<std::size_t>(total_keys), -kInfinity);
  truth.log_p = truth.score;
  truth.p.assign(truth.score.size(), 0.0);

  long double highest = row.sink ? static_cast<long double>(*row.sink)
                                 : -std::numeric_limits<long double>::infinity();
  for (const long double score : scores.final_score) highest = std::max(highest, score);
  long double total = row.sink ? std::exp(*row.sink - highest) : 0.0L;
  for (const long double score : scores.final_score) total += std::exp(score - highest);
  judged.lse = highest + std::log(total);
  judged.out.assign(static_cast<std::size_t>(row.value_dim), 0.0L);
  std::vector<long double> absolute = judged.out;  // [Dv] sum of p |v|
  for (std::int64_t j = 0; j < row.visible(); ++j) {
    const long double score = scores.final_score[static_cast<std::size_t>(j)];
    const long double probability = std::exp(score - highest) / total;
    truth.score[at(j)] = static_cast<double>(score);
    truth.log_p[at(j)] = static_cast<double>(score - judged.lse);
    truth.p[at(j)] = static_cast<double>(probability);
    for (std::int64_t column = 0; column < row.value_dim; ++column) {
      judged.out[static_cast<std::size_t>(column)] += probability * row.value(j, column);
      absolute[static_cast<std::size_t>(column)] += probability * std::fabs(row.value(j, column));
    }
  }
  truth.log_p_sink = row.sink ? static_cast<double>(*row.sink - judged.lse) : 0;
  truth.max_score = static_cast<double>(highest);
  // A long double dot product of d products errs by at most (d + 4) 2^-64 sum|q k|.
  double largest = 0;
  for (const double bound : scores.abs_dot) largest = std::max(largest, bound);
  truth.score_radius = static_cast<double>(row.head_dim + 4) * 0x1p-63 * largest;
  truth.lse = certified(judged.lse, std::fabs(judged.lse) + 1);
  for (std::size_t column = 0; column < judged.out.size(); ++column)
    truth.out.push_back(certified(judged.out[column], absolute[column]));
  return judged;
}

}  // namespace ringproof::adversary
