// What one rank knows of a problem: the description, its own queries, its own keys and values.
// The rank's Problem counts queries by its own slots: rows of positions, documents, masks and bias
// are dealt like q, so nothing with N rows of numbers is ever here. Keys keep their numbers in the
// whole problem, because blocks of all ranks come by; their q, k and v are not in it.
#pragma once

#include "reference/gradients.hpp"
#include "reference/shard.hpp"

namespace ringproof::mpi {

using reference::Index;
using reference::Layout;
using reference::Sharding;

/// Gives the memory of a list back; assigning {} would only empty it.
template <class T>
void release(std::vector<T>& numbers) {
  std::vector<T>().swap(numbers);
}

template <class Real>
struct RankProblem {
  reference::Problem<Real> problem;  // queries: this rank's; q, k, v: absent
  Sharding keys;                     // how all keys are dealt
  Index rank = 0;
  std::vector<Real> q;           // [B, H, n, D]
  std::vector<Real> k, v;        // [B, Hkv, m, D], [B, Hkv, m, Dv]
  std::vector<Real> dout, dlse;  // [B, H, n, Dv], [B, H, n]; zeros where absent

  std::vector<Real> bias;
  std::vector<std::uint8_t> mask;
  std::vector<Index> position_q;
  std::vector<std::int32_t> document_q;

  RankProblem() = default;
  RankProblem(const RankProblem&) = delete;  // the problem looks at these vectors
  RankProblem(RankProblem&&) = default;

  /// The queries as a shard of the rank's own problem: slot and row are the same.
  Sharding queries() const { return {Layout::contiguous, problem.queries, 1}; }
};

/// Where a rank's numbers come from: the tensors of a problem in memory. A file is another source
/// (cli/case_source.hpp) with the same members.
template <class Real>
struct MemorySource {
  reference::Problem<Real> problem;
  reference::Upstream<Real> upstream;

  Real q(Index b, Index h, Index i, Index d) const {
    return dequantised(problem.q, problem.q_scale, b, h, i, d);
  }
  Real k(Index b, Index h, Index j, Index d) const {
    return dequantised(problem.k, problem.k_scale, b, h, j, d);
  }
  Real v(Index b, Index h, Index j, Index c) const {
    return dequantised(problem.v, problem.v_scale, b, h, j, c);
  }
  Real dout(Index b, Index h, Index i, Index c) const {
    return upstream.dout ? upstream.dout(b, h, i, c) : Real{0};
  }
  Real dlse(Index b, Index h, Index i) const {
    return upstream.dlse ? upstream.dlse(b, h, i, 0) : Real{0};
  }
  Real bias(Index b, Index h, Index i, Index j) const { return problem.bias(b, h, i, j); }
  std::uint8_t mask(Index b, Index h, Index i, Index j) const { return problem.mask(b, h, i, j); }
  /// Strides in the axes [B, H, Nq, Nk]; 0 repeats. All 0 and absent: nullptr.
  const std::array<Index, 4>* bias_stride() const {
    return problem.bias ? &problem.bias.stride : nullptr;
  }
  const std::array<Index, 4>* mask_stride() const {
    return problem.mask ? &problem.mask.stride : nullptr;
  }
};

/// Rows [B, heads, rows of the list, width], each number from get(b, h, row, column).
template <class Real>
std::vector<Real> collect(Index batches, Index heads, const std::vector<Index>& rows, Index width,
                          const auto& get) {
  std::vector<Real> taken;
  taken.reserve(static_cast<std::size_t>(batches * heads * width) * rows.size());
  for (Index b = 0; b < batches; ++b) {
    for (Index h = 0; h < heads; ++h) {
      for (const Index row : rows) {
        for (Index d = 0; d < width; ++d) taken.push_back(get(b, h, row, d));
      }
    }
  }
  return taken;
}

/// The rank's rows of a tensor of the scores' shape. An axis that repeats stays one that repeats,
/// and the axis of the rows stays one of its own even if the rank has a single row.
template <class T>
reference::View<T> collect_scores(const reference::Problem<auto>& problem,
                                  const std::array<Index, 4>& stride,
                                  const std::vector<Index>& rows, const auto& get,
                                  std::vector<T>& storage) {
  const auto size = [&](std::size_t axis, Index full) { return stride[axis] == 0 ? 1 : full; };
  const std::vector<Index> one_row(1, 0);
  const std::vector<Index>& taken_rows = stride[2] == 0 ? one_row : rows;
  storage = collect<T>(size(0, problem.batches), size(1, problem.heads), taken_rows,
                       size(3, problem.keys), get);
  reference::View<T> view{storage, {}};
  Index step = 1;
  const std::array<Index, 4> sizes{size(0, problem.batches), size(1, problem.heads),
                                   static_cast<Index>(taken_rows.size()), size(3, problem.keys)};
  for (std::size_t axis = 4; axis-- > 0;) {
    view.stride[axis] = stride[axis] == 0 ? 0 : step;
    step *= sizes[axis];
  }
  return view;
}

/// One rank's part. `description` gives everything but the tensors that `source` is asked for.
template <class Real>
RankProblem<Real> deal(const reference::Problem<Real>& description, const auto& source,
                       Layout layout, Index ranks, Index rank) {
  RankProblem<Real> mine;
  const Index B = description.batches, H = description.heads;
  mine.keys = {layout, description.keys, ranks};
  mine.rank = rank;
  const Sharding queries{layout, description.queries, ranks};
  const std::vector<Index> rows = global_rows(queries, rank), keys = global_rows(mine.keys, rank);
  const auto n = static_cast<Index>(rows.size());

  mine.q =
      collect<Real>(B, H, rows, description.head_dim, [&](auto... at) { return source.q(at...); });
  mine.k = collect<Real>(B, description.kv_heads, keys, description.head_dim,
                         [&](auto... at) { return source.k(at...); });
  mine.v = collect<Real>(B, description.kv_heads, keys, description.value_dim,
                         [&](auto... at) { return source.v(at...); });
  mine.dout = collect<Real>(B, H, rows, description.value_dim,
                            [&](auto... at) { return source.dout(at...); });
  mine.dlse = collect<Real>(B, H, rows, 1,
                            [&](Index b, Index h, Index i, Index) { return source.dlse(b, h, i); });

  reference::Problem<Real>& problem = mine.problem = description;
  problem.queries = n;
  problem.q = problem.k = problem.v = {};
  problem.q_scale = problem.k_scale = problem.v_scale = {};
  problem.bias = {}, problem.mask = {};
  mine.position_q = collect<Index>(B, 1, rows, 1, [&](Index b, Index, Index i, Index) {
    return query_position(description, b, i);
  });
  problem.position_q = {mine.position_q, {n, 0, 1, 0}};
  if (description.document_q) {
    mine.document_q = collect<std::int32_t>(B, 1, rows, 1, [&](Index b, Index, Index i, Index) {
      return description.document_q(b, 0, i, 0);
    });
    problem.document_q = {mine.document_q, {n, 0, 1, 0}};
  }
  if (const auto* stride = source.bias_stride()) {
    problem.bias = collect_scores<Real>(
        description, *stride, rows, [&](auto... at) { return source.bias(at...); }, mine.bias);
  }
  if (const auto* stride = source.mask_stride()) {
    problem.mask = collect_scores<std::uint8_t>(
        description, *stride, rows, [&](auto... at) { return source.mask(at...); }, mine.mask);
  }
  return mine;
}

}  // namespace ringproof::mpi
