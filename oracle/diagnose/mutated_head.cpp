// Editing and writing out one head (mutated_head.hpp).
#include "oracle/diagnose/mutated_head.hpp"

#include <cmath>
#include <utility>

#include "oracle/truth/row_setup.hpp"

namespace ringproof::oracle {

namespace {

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

Tensor view(const std::vector<double>& values, std::int64_t rows, std::int64_t columns) {
  return {DType::f64,
          {1, 1, rows, columns},
          {0, 0, columns, 1},
          reinterpret_cast<const std::byte*>(values.data())};
}

/// One row of a tensor as the change reads it.
void read_row(const Tensor& tensor, const Factors& factors, bool dequantise, HeadChange::Head from,
              std::int64_t n, double* out) {  // [D]
  if (n == kZeroKey) {
    std::fill(out, out + tensor.shape[3], 0.0);
    return;
  }
  static const Factors none;
  decode_scaled(tensor, dequantise ? factors : none, from.b, from.head, n, out);
}

void write_queries(const HeadChange& change, const std::vector<std::int64_t>& queries,
                   MutatedHead& head) {
  const Problem& problem = *change.problem;
  head.q.resize(queries.size() * size(problem.head_dim));
  for (std::size_t n = 0; n < queries.size(); ++n) {
    read_row(problem.q, problem.q_scale, change.dequantise_q, change.q_from, queries[n],
             head.q.data() + n * size(problem.head_dim));
  }
}

void write_keys(const HeadChange& change, MutatedHead& head) {
  const Problem& problem = *change.problem;
  const std::size_t depth = size(problem.head_dim), width = size(problem.value_dim);
  head.k.resize(change.keys.size() * depth);
  head.v.resize(change.keys.size() * width);
  for (std::size_t n = 0; n < change.keys.size(); ++n) {
    double* k = head.k.data() + n * depth;
    double* v = head.v.data() + n * width;
    read_row(problem.k, problem.k_scale, change.dequantise_k, change.k_from, change.keys[n].k, k);
    read_row(problem.v, problem.v_scale, change.dequantise_v, change.v_from, change.keys[n].v, v);
    std::fill(k + change.channels, k + depth, 0.0);
    for (std::size_t c = 0; c < width; ++c) {
      if (std::isfinite(v[c])) continue;
      if (head.poison.empty()) {
        head.poison.assign(change.keys.size(), std::vector<std::uint8_t>(width));
      }
      head.poison[n][c] = 1;
      v[c] = 0;
    }
  }
}

/// Mask and bias of every pair.
void write_pairs(const HeadChange& change, const std::vector<std::int64_t>& queries,
                 MutatedHead& head) {
  const std::size_t keys = change.keys.size();
  head.mask.assign(queries.size() * keys, std::byte{0});
  if (change.bias) head.bias.assign(queries.size() * keys, 0.0);
  for (std::size_t n = 0; n < queries.size(); ++n) {
    for (std::size_t j = 0; j < keys; ++j) {
      const std::int64_t place = change.keys[j].at;
      if (!change.visible(queries[n], place)) continue;
      head.mask[n * keys + j] = std::byte{1};
      if (change.bias) head.bias[n * keys + j] = change.bias(queries[n], place);
    }
  }
}

void write_rest(const HeadChange& change, const std::vector<std::int64_t>& queries,
                MutatedHead& head) {
  Problem& problem = head.problem;
  if (change.slope) head.slope = {*change.slope};
  if (change.sink) head.sink = {*change.sink};
  for (const std::int64_t i : queries) problem.position_q.push_back(change.position_q(i));
  for (const KeySource& key : change.keys) {
    problem.position_k.push_back(change.position_k(key.at));
  }
  problem.document_q.assign(queries.size(), 0);
  problem.document_k.assign(change.keys.size(), 0);
  problem.key_length = {problem.keys};
}

}  // namespace

HeadChange::HeadChange(const Problem& p, std::int64_t batch, std::int64_t head,
                       std::int64_t row_rank)
    : problem(&p),
      b(batch),
      h(head),
      rank(row_rank),
      q_from{batch, head},
      k_from{batch, p.kv_head(head)},
      v_from{batch, p.kv_head(head)},
      visible([&p, batch, head](std::int64_t i, std::int64_t j) {
        return oracle::visible(p, batch, head, i, j);
      }),
      position_q([&p, batch](std::int64_t i) { return p.position_q[size(batch * p.queries + i)]; }),
      position_k([&p, batch](std::int64_t j) { return p.position_k[size(batch * p.keys + j)]; }),
      scale(p.spec.scale),
      softcap(p.spec.softcap),
      channels(p.head_dim) {
  for (std::int64_t j = 0; j < p.keys; ++j) keys.push_back({j, j, j});
  if (p.bias) {
    bias = [&p, batch, head](std::int64_t i, std::int64_t j) {
      return p.bias.at(batch, head, i, j);
    };
  }
  if (p.alibi_slopes) slope = p.alibi_slopes.at(batch, head, 0, 0);
  if (p.sinks) sink = p.sinks.at(0, head, 0, 0);
}

double HeadChange::scale_value() const {
  return scale.value_or(1 / std::sqrt(static_cast<double>(problem->head_dim)));
}

void HeadChange::add_zero_scores(std::function<bool(std::int64_t, std::int64_t)> sees,
                                 double extra_bias) {
  // Places of the added keys are numbered behind those of the others.
  const auto places = problem->keys;
  const std::size_t present = keys.size();
  for (std::size_t n = 0; n < present; ++n) {
    keys.push_back({kZeroKey, keys[n].v, places + keys[n].at});
  }
  visible = [places, sees = std::move(sees), before = std::move(visible)](std::int64_t i,
                                                                          std::int64_t j) {
    return j < places ? before(i, j) : sees(i, j - places);
  };
  position_k = [places, before = std::move(position_k)](std::int64_t j) {
    return before(j < places ? j : j - places);
  };
  if (!bias && extra_bias == 0) return;
  bias = [places, extra_bias, before = std::move(bias)](std::int64_t i, std::int64_t j) {
    if (j >= places) return extra_bias;
    return before ? before(i, j) : 0.0;
  };
}

bool MutatedHead::poisoned(std::int64_t n, std::int64_t column, bool also_masked) const {
  for (std::size_t j = 0; j < poison.size(); ++j) {
    const bool counts = also_masked || mask[size(n) * poison.size() + j] != std::byte{0};
    if (counts && poison[j][size(column)] != 0) return true;
  }
  return false;
}

MutatedHead build(const HeadChange& change, const std::vector<std::int64_t>& queries) {
  const Problem& from = *change.problem;
  MutatedHead head;
  Problem& problem = head.problem;
  problem.batches = problem.heads = problem.kv_heads = 1;
  problem.queries = static_cast<std::int64_t>(queries.size());
  problem.keys = static_cast<std::int64_t>(change.keys.size());
  problem.head_dim = from.head_dim;
  problem.value_dim = from.value_dim;
  write_queries(change, queries, head);
  write_keys(change, head);
  write_pairs(change, queries, head);
  write_rest(change, queries, head);

  problem.q = view(head.q, problem.queries, problem.head_dim);
  problem.k = view(head.k, problem.keys, problem.head_dim);
  problem.v = view(head.v, problem.keys, problem.value_dim);
  if (change.bias) problem.bias = view(head.bias, problem.queries, problem.keys);
  problem.mask = {DType::boolean,
                  {1, 1, problem.queries, problem.keys},
                  {0, 0, problem.keys, 1},
                  head.mask.data()};
  if (change.slope) problem.alibi_slopes = view(head.slope, 1, 1);
  if (change.sink) problem.sinks = view(head.sink, 1, 1);
  // What a row sees is written out; what is left of the spec are the numbers of a score.
  problem.spec.scale = change.scale;
  problem.spec.softcap = change.softcap;
  problem.spec.empty_row = from.spec.empty_row;
  problem.spec.lse_base = from.spec.lse_base;
  problem.spec.ranks = from.spec.ranks;
  index_keys(problem);
  return head;
}

}  // namespace ringproof::oracle
