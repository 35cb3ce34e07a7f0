// A random case that can be cut by rows into shards in every way that is allowed.
#pragma once

#include <algorithm>
#include <numeric>
#include <random>

#include "oracle/case/spec.hpp"
#include "tests/unit/case/case_builder.hpp"

namespace ringproof::test {

using List = std::vector<std::int64_t>;

/// Rows of axis `axis` of a tensor, in the order of `rows`.
inline OwnedTensor take(const OwnedTensor& tensor, std::size_t axis, const List& rows) {
  const auto count = [&](std::size_t first, std::size_t last) {
    return std::accumulate(tensor.shape.begin() + static_cast<std::ptrdiff_t>(first),
                           tensor.shape.begin() + static_cast<std::ptrdiff_t>(last),
                           std::int64_t{1}, std::multiplies<>());
  };
  const std::int64_t outer = count(0, axis), size = tensor.shape[axis];
  const std::int64_t inner = count(axis + 1, tensor.shape.size()) *
                             static_cast<std::int64_t>(oracle::size_of(tensor.dtype));
  OwnedTensor result{tensor.dtype, tensor.shape, {}};
  result.shape[axis] = static_cast<std::int64_t>(rows.size());
  for (std::int64_t o = 0; o < outer; ++o) {
    for (const std::int64_t row : rows) {
      const auto from = tensor.bytes.begin() + (o * size + row) * inner;
      result.bytes.insert(result.bytes.end(), from, from + inner);
    }
  }
  return result;
}

/// How one tensor is cut: the axes of its query and key rows; -1: none.
struct Cut {
  int query = -1, key = -1;
};

struct ShardedCase {
  std::mt19937_64 random;
  oracle::AxisOrder layout;
  std::int64_t batches, rows;
  bool all_keys;
  CaseBuilder whole;
  std::vector<std::pair<std::string, Cut>> cuts;

  explicit ShardedCase(std::uint64_t seed) : random(seed) {
    layout = static_cast<oracle::AxisOrder>(below(3));
    batches = layout == oracle::AxisOrder::nhd ? 1 : below(2) + 1;
    rows = below(9);
    all_keys = below(2) == 0;
    const std::int64_t kv_heads = below(2) + 1, heads = kv_heads * (below(2) + 1);
    add_features("q", heads, 4, true);
    add_features("out", heads, 3, true);
    add_features("dout", heads, 3, true);
    add_features("k", kv_heads, 4, false);
    add_features("v", kv_heads, 3, false);
    add_features("dk", kv_heads, 4, false);
    if (chance()) add_features("q_scale", heads, 1, true);
    if (chance()) add_features("k_scale", kv_heads, 1, false);
    add("lse", layout == oracle::AxisOrder::nhd ? List{heads, rows} : List{batches, heads, rows},
        {layout == oracle::AxisOrder::nhd ? 1 : 2, -1});
    if (chance()) {
      add_integers("documents_q", oracle::DType::i32, {0, -1});
      add_integers("documents_k", oracle::DType::i32, {-1, 0});
    }
    if (chance()) add("sinks", {heads}, {});
    if (chance()) add("alibi_slopes", {heads}, {});
    if (chance())
      whole.set("key_lengths", make_tensor(oracle::DType::i32, {batches},
                                           [&](std::int64_t) { return below(rows + 1); }));
    if (whole.find("key_lengths") != nullptr) cuts.emplace_back("key_lengths", Cut{});
    // Scores of every query with every key exist only where all keys are in every file.
    if (chance()) add("bias", {all_keys ? rows : 1, rows}, {all_keys ? 0 : -1, 1});
    if (chance()) add("bias", {heads, rows, 1}, {1, -1});
    if (chance() && all_keys) add("bias", {batches, heads, rows, rows}, {2, 3});
    whole.spec = std::string(R"({"version": 1, "causal": "top_left", "layout": ")") +
                 (layout == oracle::AxisOrder::bhnd   ? "bhnd"
                  : layout == oracle::AxisOrder::bnhd ? "bnhd"
                                                      : "nhd") +
                 "\"}";
  }

  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  }
  bool chance() { return below(2) == 0; }

  void add(const std::string& name, List shape, Cut cut) {
    whole.set(name, make_tensor(oracle::DType::f32, std::move(shape),
                                [&](std::int64_t) { return below(1000); }));
    std::erase_if(cuts, [&](const auto& entry) { return entry.first == name; });
    cuts.emplace_back(name, cut);
  }
  void add_integers(const std::string& name, oracle::DType type, Cut cut) {
    whole.set(name, make_tensor(type, {rows}, [&](std::int64_t) { return below(3) - 1; }));
    cuts.emplace_back(name, cut);
  }
  void add_features(const std::string& name, std::int64_t heads, std::int64_t columns, bool query) {
    List shape{batches, heads, rows, columns};
    int axis = 2;
    if (layout == oracle::AxisOrder::bnhd) shape = {batches, rows, heads, columns}, axis = 1;
    if (layout == oracle::AxisOrder::nhd) shape = {rows, heads, columns}, axis = 0;
    add(name, shape, query ? Cut{axis, -1} : Cut{-1, axis});
  }

  /// Rows dealt out to `ranks` files at random, in random order.
  std::vector<List> deal(std::int64_t ranks) {
    List order(static_cast<std::size_t>(rows));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    std::vector<List> result(static_cast<std::size_t>(ranks));
    for (const std::int64_t row : order)
      result[static_cast<std::size_t>(below(ranks))].push_back(row);
    return result;
  }

  CaseBuilder shard(const List& queries, const List& keys) const {
    CaseBuilder result;
    result.spec = whole.spec;
    for (const auto& [name, cut] : cuts) {
      OwnedTensor tensor = *const_cast<CaseBuilder&>(whole).find(name);
      if (cut.query >= 0) tensor = take(tensor, static_cast<std::size_t>(cut.query), queries);
      if (cut.key >= 0) tensor = take(tensor, static_cast<std::size_t>(cut.key), keys);
      result.set(name, std::move(tensor));
    }
    result.set("positions_q", make_list(oracle::DType::i64, queries));
    result.set("positions_k", make_list(oracle::DType::i64, keys));
    return result;
  }

  /// One query and one key in each file: then a bias of one element could belong to either.
  static bool ambiguous(const std::vector<List>& queries, const std::vector<List>& keys) {
    const auto single = [](const List& rows) { return rows.size() == 1; };
    return std::all_of(queries.begin(), queries.end(), single) &&
           std::all_of(keys.begin(), keys.end(), single);
  }

  std::vector<CaseBuilder> shards() {
    const std::int64_t ranks = below(5) + 1;
    auto queries = deal(ranks), keys = deal(ranks);
    while (!all_keys && ambiguous(queries, keys)) {
      queries.push_back({});
      keys.push_back({});
    }
    List all(static_cast<std::size_t>(rows));
    std::iota(all.begin(), all.end(), 0);
    std::vector<CaseBuilder> result;
    for (std::size_t r = 0; r < queries.size(); ++r) {
      std::shuffle(all.begin(), all.end(), random);
      result.push_back(shard(queries[r], all_keys ? all : keys[r]));
    }
    return result;
  }
};

}  // namespace ringproof::test
