// One rank's queries against one block of keys: the scores of a head, and their way into the
// states. These scores, [b, b], are all a rank ever holds of the N x N matrix, and the largest of
// its tensors (C9).
#pragma once

#include "reference/online_softmax.hpp"
#include "reference/score.hpp"
#include "reference/shard.hpp"

namespace ringproof::reference {

/// One head of one batch.
struct Head {
  Index b = 0, h = 0;
};

template <class Real>
std::vector<Head> all_heads(const Problem<Real>& problem) {
  std::vector<Head> heads;
  for (Index b = 0; b < problem.batches; ++b) {
    for (Index h = 0; h < problem.heads; ++h) heads.push_back({b, h});
  }
  return heads;
}

/// S = Q K^T under the score rule, [queries of the rank, keys of the block]; minus infinity where
/// the query does not see the key. Nothing of an invisible key is read.
template <class Real>
Matrix<Real> scores(const Problem<Real>& problem, const Head& head, const QueryShard<Real>& queries,
                    const std::type_identity_t<KeyView<Real>>& block) {
  const Index width = problem.head_dim;
  const Index n_q = queries.rows(), n_k = block.rows();
  const Numbers<Real> q(queries.q), k = block.k;
  const std::vector<Index> keys = global_rows(block.sharding, block.origin);
  const Index first_query = (head.b * problem.heads + head.h) * n_q;
  const Index first_key = (head.b * problem.kv_heads + problem.kv_head(head.h)) * n_k;

  Matrix<Real> S(n_q, n_k);
  for (Index i = 0; i < n_q; ++i) {
    const QueryRow query{head.b, head.h, global_row(queries.sharding, queries.rank, i)};
    const auto q_i = q.subspan((first_query + i) * width, width);
    for (Index j = 0; j < n_k; ++j) {
      const auto k_j = k.subspan((first_key + j) * width, width);
      S.row(i)[j] = visible(problem, query, keys[j])
                        ? score(problem, query, keys[j], dot<Real>(q_i, k_j))
                        : Number<Real>::minus_infinity();
    }
  }
  return S;
}

/// The states of one rank, one per query row of every head: [B, H, n].
template <class Real>
using States = std::vector<RowState<Real>>;

template <class Real>
States<Real> empty_states(const Problem<Real>& problem, const QueryShard<Real>& queries) {
  return States<Real>(problem.batches * problem.heads * queries.rows(),
                      RowState<Real>(problem.value_dim));
}

/// Folds the scores of one head and the values of the block into the rank's states.
template <class Real>
void online_softmax(const Problem<Real>& problem, const Head& head, States<Real>& states,
                    const Matrix<Real>& S, const std::type_identity_t<KeyView<Real>>& block) {
  const Index per_head = block.rows() * problem.value_dim;
  const Index kv_head = head.b * problem.kv_heads + problem.kv_head(head.h);
  const auto values = block.v.subspan(kv_head * per_head, per_head);
  const Index first = (head.b * problem.heads + head.h) * S.rows;
  for (Index i = 0; i < S.rows; ++i) absorb(states[first + i], S.row(i), values);
}

/// How many pairs of the scores are visible.
template <class Real>
Index visible_pairs(const Matrix<Real>& S) {
  Index pairs = 0;
  for (const Real& s : S.data) pairs += is_minus_infinity(s) ? 0 : 1;
  return pairs;
}

/// Last lines of a rank: each head's sink enters every row once, then the one division.
template <class Real>
ShardAnswer<Real> finish_rank(const Problem<Real>& problem, const QueryShard<Real>& queries,
                              States<Real>& states) {
  const Index width = problem.value_dim;
  const Real nothing = empty_output(problem);
  ShardAnswer<Real> answer{std::vector<Real>(states.size() * width),
                           std::vector<Real>(states.size())};
  for (std::size_t row = 0; row < states.size(); ++row) {
    const Index h = static_cast<Index>(row) / queries.rows() % problem.heads;
    if (problem.sinks) absorb_sink(states[row], problem.sinks(0, h, 0, 0));
    answer.lse[row] = log_sum_exp(states[row]);
    finish(states[row], nothing, std::span(answer.out).subspan(row * width, width));
  }
  return answer;
}

}  // namespace ringproof::reference
