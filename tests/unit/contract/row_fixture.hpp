// Rows built by hand, in plain binary64, for tests of the contract alone: no truth library, no case
// file. The scores are exact by assumption (radius 0), so that only the contract's formulas are at
// work.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "oracle/contract/bound.hpp"

namespace ringproof::test {

struct RowFixture {
  oracle::Problem problem;
  oracle::RowTruth row;
  std::vector<double> values;  // [N, Dv]

  RowFixture(std::int64_t keys, std::int64_t head_dim, std::int64_t value_dim) {
    problem.batches = problem.heads = problem.kv_heads = 1;
    problem.queries = problem.keys = keys;
    problem.head_dim = head_dim;
    problem.value_dim = value_dim;
    problem.key_length = {keys};
    for (std::int64_t j = 0; j < keys; ++j) {
      problem.position_q.push_back(j);
      problem.position_k.push_back(j);
    }
    problem.document_q.assign(static_cast<std::size_t>(keys), 0);
    problem.document_k = problem.document_q;
    row.i = keys - 1;
    row.keys = {0, keys};
    const auto n = static_cast<std::size_t>(keys);
    for (auto* array : {&row.dot, &row.abs_dot, &row.score, &row.log_p, &row.p}) array->resize(n);
    values.resize(n * static_cast<std::size_t>(value_dim));
  }

  void hide(std::int64_t j) { row.score[static_cast<std::size_t>(j)] = -INFINITY; }

  /// Puts `more` keys and queries before those that are there; the row does not see them.
  void put_behind(std::int64_t more) {
    problem.queries = problem.keys = problem.keys + more;
    problem.key_length = {problem.keys};
    row.keys = {more, problem.keys};
    row.i = problem.keys - 1;
    for (std::int64_t n = 0; n < more; ++n) {
      for (auto* positions : {&problem.position_q, &problem.position_k}) {
        positions->push_back(positions->back() + 1);
      }
      problem.document_q.push_back(0);
      problem.document_k.push_back(0);
    }
  }

  /// Completes score (from dot or capped, bias, alibi), log_p, p, lse and out; hidden keys stay
  /// hidden.
  void finish() {
    const auto n = static_cast<std::size_t>(problem.keys);
    row.visible = 0;
    row.max_score = row.has_sink ? row.sink : -INFINITY;
    for (std::size_t j = 0; j < n; ++j) {
      if (row.score[j] == -INFINITY) continue;
      row.score[j] = row.capped.empty() ? row.dot[j] : row.capped[j];
      if (!row.bias.empty()) row.score[j] += row.bias[j];
      if (!row.alibi.empty()) row.score[j] += row.alibi[j];
      row.max_score = std::max(row.max_score, row.score[j]);
      ++row.visible;
    }
    long double sum = row.has_sink ? expl(static_cast<long double>(row.sink) - row.max_score) : 0;
    for (std::size_t j = 0; j < n; ++j) {
      if (row.score[j] != -INFINITY)
        sum += expl(static_cast<long double>(row.score[j]) - row.max_score);
    }
    const long double L = row.max_score + logl(sum);
    row.lse = {static_cast<double>(L), 0, 0};
    row.log_p_sink = static_cast<double>(row.sink - L);
    const auto columns = static_cast<std::size_t>(problem.value_dim);
    std::vector<long double> out(columns, 0), magnitude(columns, 0);
    for (std::size_t j = 0; j < n; ++j) {
      const bool hidden = row.score[j] == -INFINITY;
      row.log_p[j] = hidden ? -INFINITY : static_cast<double>(row.score[j] - L);
      const long double p = hidden ? 0 : expl(static_cast<long double>(row.score[j]) - L);
      row.p[j] = static_cast<double>(p);
      for (std::size_t c = 0; c < columns && !hidden; ++c) {
        out[c] += p * values[j * columns + c];
        magnitude[c] += p * fabsl(values[j * columns + c]);
      }
    }
    row.out.clear();
    for (std::size_t c = 0; c < columns; ++c) {
      row.out.push_back(
          {static_cast<double>(out[c]), 0, 0x1p-50 * static_cast<double>(magnitude[c])});
    }
  }

  oracle::RowBound bound(const oracle::Contract& contract, bool missing_blocks = false) const {
    oracle::RowBound result;
    oracle::bound_row(contract, problem, row, values.data(), problem.value_dim, missing_blocks,
                      result);
    return result;
  }
};

}  // namespace ringproof::test
