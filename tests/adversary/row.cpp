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

/// `size`: the sum of the absolute values of what was added. 2^-50 of it covers every long double
/// sum
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

/// The sink as a key behind the others: no product, value 0.
Row with_sink_as_key(Row row) {
  row.keys.resize(row.keys.size() + static_cast<std::size_t>(row.head_dim), 0.0);
  row.values.resize(row.values.size() + static_cast<std::size_t>(row.value_dim), 0.0);
  row.position.push_back(row.total_keys++);
  row.sink.reset();
  return row;
}

/// The visible keys' numbers at their places among all keys.
std::vector<double> spread(const std::vector<double>& from, const std::vector<std::int64_t>& place,
                           std::int64_t total_keys) {
  std::vector<double> to;
  if (from.empty()) return to;
  to.assign(static_cast<std::size_t>(total_keys), 0.0);
  for (std::size_t j = 0; j < place.size(); ++j) to[static_cast<std::size_t>(place[j])] = from[j];
  return to;
}

/// Softmax and its sums: what depends on the final scores alone.
void fill_answer(const Row& row, const std::vector<std::int64_t>& place,
                 const std::vector<long double>& scores, JudgedRow& judged) {
  oracle::RowTruth& truth = judged.truth;
  const auto width = static_cast<std::size_t>(row.value_dim);
  long double highest = -std::numeric_limits<long double>::infinity(), total = 0;
  if (row.sink) highest = *row.sink;
  for (const long double score : scores) highest = std::max(highest, score);
  if (row.sink) total = std::exp(*row.sink - highest);
  for (const long double score : scores) total += std::exp(score - highest);
  judged.lse = highest + std::log(total);
  judged.out.assign(width, 0.0L);
  std::vector<long double> absolute(width, 0.0L);  // [Dv] sum of p |v|
  for (std::size_t j = 0; j < scores.size(); ++j) {
    const auto at = static_cast<std::size_t>(place[j]);
    const long double probability = std::exp(scores[j] - highest) / total;
    truth.score[at] = static_cast<double>(scores[j]);
    truth.log_p[at] = static_cast<double>(scores[j] - judged.lse);
    truth.p[at] = static_cast<double>(probability);
    for (std::size_t column = 0; column < width; ++column) {
      const double value = row.values[j * width + column];
      judged.out[column] += probability * value;
      absolute[column] += probability * std::fabs(value);
    }
  }
  truth.log_p_sink = row.sink ? static_cast<double>(*row.sink - judged.lse) : 0;
  truth.max_score = static_cast<double>(highest);
  truth.lse = certified(judged.lse, std::fabs(judged.lse) + 1);
  for (std::size_t column = 0; column < width; ++column)
    truth.out.push_back(certified(judged.out[column], absolute[column]));
}

}  // namespace

JudgedRow judged_row(const Row& shown, Shown how) {
  const bool sink_as_key = how == Shown::sink_as_key && shown.sink;
  const Row row = sink_as_key ? with_sink_as_key(shown) : shown;
  Scores scores = scores_of(row);
  if (sink_as_key) scores.final_score.back() = scores.dot.back() = *shown.sink;
  std::vector<std::int64_t> place = row.position;
  if (how == Shown::without_holes) std::iota(place.begin(), place.end(), 0);
  const std::int64_t total = how == Shown::without_holes ? row.visible() : row.total_keys;

  JudgedRow judged;
  oracle::RowTruth& truth = judged.truth;
  truth.i = row.ring ? row.query_position : 0;
  truth.keys = {0, total};
  truth.visible = row.visible();
  truth.has_sink = row.sink.has_value();
  truth.sink = row.sink.value_or(0);
  truth.dot = spread(scores.dot, place, total);
  truth.abs_dot = spread(scores.abs_dot, place, total);
  truth.capped = spread(scores.capped, place, total);
  truth.bias = spread(row.bias, place, total);
  truth.alibi = spread(row.alibi, place, total);
  truth.score.assign(static_cast<std::size_t>(total), -kInfinity);
  truth.log_p = truth.score;
  truth.p.assign(truth.score.size(), 0.0);
  // A long double dot product of d products errs by at most (d + 4) 2^-64 sum|q k|.
  truth.score_radius = static_cast<double>(row.head_dim + 4) * 0x1p-63 *
                       *std::max_element(scores.abs_dot.begin(), scores.abs_dot.end());
  build_problem(row, place, total, judged);
  fill_answer(row, place, scores.final_score, judged);
  return judged;
}

}  // namespace ringproof::adversary
