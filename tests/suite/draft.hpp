// A problem as plain numbers, before it is laid out in memory: what laws permute, shift and cut.
// Tensors lie in the canonical axes of docs/formats.md; axis order and strides come later.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "oracle/case/dtype.hpp"
#include "oracle/case/spec.hpp"

namespace ringproof::suite {

using Index = std::int64_t;

struct Table {
  oracle::DType dtype = oracle::DType::f32;
  std::vector<Index> shape;
  std::vector<double> values;  // C order; numbers of dtype
};

struct Draft {
  Index batches = 1, heads = 1, kv_heads = 1, queries = 1, keys = 1, head_dim = 1, value_dim = 1;
  std::map<std::string, Table> tables;  // by the names of case files: "q", "mask", "cu_seqlens_q"
  oracle::Spec spec;
  bool gradients = false;  // dout (and dlse) are there and gradients are asked for
  Index stride_gap = 0;    // elements between the rows of q, k, v in memory

  Table& table(const std::string& name) { return tables.at(name); }
  const Table& table(const std::string& name) const { return tables.at(name); }
  bool has(const std::string& name) const { return tables.count(name) > 0; }
  double scale() const;  // the spec's, or 1 / sqrt(D)

  /// Elements of q, k, v by their canonical index.
  double& q(Index b, Index h, Index i, Index d) {
    return table("q")
        .values[static_cast<std::size_t>(((b * heads + h) * queries + i) * head_dim + d)];
  }
  double& k(Index b, Index h, Index j, Index d) {
    return table("k")
        .values[static_cast<std::size_t>(((b * kv_heads + h) * keys + j) * head_dim + d)];
  }
  double& v(Index b, Index h, Index j, Index c) {
    return table("v")
        .values[static_cast<std::size_t>(((b * kv_heads + h) * keys + j) * value_dim + c)];
  }

  /// Stores a table, each number rounded to `dtype`.
  void put(const std::string& name, oracle::DType dtype, std::vector<Index> shape,
           std::vector<double> values);
};

/// The draft with the rows of one axis chosen anew: row n of the result is row order[n]. Everything
/// that belongs to a row goes with it (mask, bias, documents, upstream gradients); positions are
/// made explicit where a mask depends on them. `by_position`: whether any does.
Draft choose_keys(const Draft&, const std::vector<Index>& order);
Draft choose_queries(const Draft&, const std::vector<Index>& order);

/// Does who sees whom depend on where a row stands?
bool by_position(const Draft&);

/// 0, 1, ..., count - 1.
std::vector<Index> ascending(Index count);

/// One line: sizes, masks, additions.
std::string describe(const Draft&);

}  // namespace ringproof::suite
