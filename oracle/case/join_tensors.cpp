// The joining rule of each tensor of the table, and how each rule is carried out
// (join_tensors.hpp).
#include "oracle/case/join_tensors.hpp"

#include <algorithm>
#include <array>

#include "oracle/case/stored_view.hpp"

namespace ringproof::oracle {
namespace {

enum class Side { query, key };

/// How a tensor of the table takes part in the join.
enum class Rows { feature, row, list, factor, score, equal };
struct JoinRule {
  std::string_view name;
  Rows rows;
  Side side = Side::query;
};
constexpr std::array<JoinRule, 20> kJoinRules{{
    {"q", Rows::feature},
    {"out", Rows::feature},
    {"dout", Rows::feature},
    {"dq", Rows::feature},
    {"lse", Rows::row},
    {"dlse", Rows::row},
    {"documents_q", Rows::list},
    {"q_scale", Rows::factor},
    {"k", Rows::feature, Side::key},
    {"v", Rows::feature, Side::key},
    {"dk", Rows::feature, Side::key},
    {"dv", Rows::feature, Side::key},
    {"documents_k", Rows::list, Side::key},
    {"k_scale", Rows::factor, Side::key},
    {"v_scale", Rows::factor, Side::key},
    {"bias", Rows::score},
    {"mask", Rows::score},
    {"dbias", Rows::score},
    {"alibi_slopes", Rows::equal},
    {"sinks", Rows::equal},
}};

const JoinRule& join_rule(std::string_view name) {
  static constexpr JoinRule kEqual{"", Rows::equal};  // key_lengths, dsinks
  const auto* rule =
      std::find_if(kJoinRules.begin(), kJoinRules.end(),
                   [&](const JoinRule& candidate) { return candidate.name == name; });
  return rule == kJoinRules.end() ? kEqual : *rule;
}

std::size_t row_axis(AxisList axes) {
  return static_cast<std::size_t>(std::find(axes.begin(), axes.end(), kRow) - axes.begin());
}

class Joiner {
 public:
  Joiner(const std::vector<Source>& shards, AxisOrder layout, const RowPlaces& query,
         const RowPlaces& key, Storage& storage)
      : shards_(shards), layout_(layout), query_(query), key_(key), storage_(storage) {}

  Source join() {
    check_same_names();
    Source joined{shards_.front().path, {}};
    for (const auto& [name, first] : shards_.front().tensors) {
      if (name == "positions_q" || name == "positions_k") continue;
      joined.tensors.emplace(name, join(join_rule(name), pieces_of(name)));
    }
    return joined;
  }

 private:
  void check_same_names() const {
    const Source& first = shards_.front();
    for (const Source& shard : shards_) {
      for (const auto& [name, tensor] : first.tensors) {
        const StoredTensor* other = shard.find(name);
        if (other == nullptr)
          refuse_tensor(shard, name, "is missing, but " + first.path + " has it");
        if (other->dtype != tensor.dtype) {
          refuse_tensor(shard, name, "has another type than in " + first.path);
        }
      }
      for (const auto& [name, tensor] : shard.tensors) {
        if (first.find(name) == nullptr) {
          refuse_tensor(first, name, "is missing, but " + shard.path + " has it");
        }
      }
    }
  }

  Pieces pieces_of(const std::string& name) const {
    Pieces pieces{name, {}, {}, false};
    for (const Source& shard : shards_) {
      pieces.paths.push_back(shard.path);
      pieces.tensors.push_back(*shard.find(name));
    }
    return pieces;
  }

  const RowPlaces& places(Side side) const { return side == Side::query ? query_ : key_; }

  StoredTensor join(const JoinRule& rule, Pieces pieces) {
    const AxisList features = feature_axes(layout_);
    pieces.batched = layout_ != AxisOrder::nhd;
    switch (rule.rows) {
      case Rows::feature:
        return join_rows(pieces, row_axis(features), places(rule.side), storage_);
      case Rows::row:
        return join_rows(pieces, row_axis(row_axes(layout_)), query_, storage_);
      case Rows::list:
        pieces.batched = false;
        return join_rows(pieces, 0, places(rule.side), storage_);
      case Rows::factor:
        return join_factors(std::move(pieces), row_axis(features), places(rule.side));
      case Rows::score:
        return join_scores(std::move(pieces));
      case Rows::equal:
        break;
    }
    return join_equal(pieces);
  }

  static bool equal(const StoredTensor& a, const StoredTensor& b) {
    return a.shape == b.shape && std::equal(a.data, a.data + a.bytes(), b.data);
  }
  static bool all_equal(const Pieces& pieces) {
    return std::all_of(pieces.tensors.begin(), pieces.tensors.end(),
                       [&](const auto& tensor) { return equal(tensor, pieces.tensors.front()); });
  }
  static bool some_wider_than_one(const Pieces& pieces, std::size_t axis) {
    return std::any_of(pieces.tensors.begin(), pieces.tensors.end(),
                       [&](const auto& tensor) { return tensor.shape[axis] != 1; });
  }

  static bool one_each(const RowPlaces& places) {
    return std::all_of(places.held.begin(), places.held.end(), [](auto rows) { return rows == 1; });
  }

  /// Gives every piece all its rows along `axis`, also where the file has one for all or one a
  /// block.
  void expand(Pieces& pieces, std::size_t axis, const RowPlaces& places) {
    for (std::size_t r = 0; r < pieces.tensors.size(); ++r) {
      pieces.tensors[r] = expand_rows(pieces.tensors[r], axis, places.held[r], storage_);
    }
  }

  /// Factors become one a row, unless one serves all rows of all shards.
  StoredTensor join_factors(Pieces pieces, std::size_t axis, const RowPlaces& places) {
    if (!some_wider_than_one(pieces, axis) && all_equal(pieces)) return pieces.tensors.front();
    expand(pieces, axis, places);
    return join_rows(pieces, axis, places, storage_);
  }

  /// bias, mask and dbias: [.., Nq or 1, Nk or 1], possibly with fewer axes in front. Where shards
  /// hold their own keys only, nobody has the scores of one shard's queries with another's keys.
  StoredTensor join_scores(Pieces pieces) {
    const std::size_t axes = pieces.tensors.front().shape.size();
    for (std::size_t r = 0; r < pieces.tensors.size(); ++r) {
      if (pieces.tensors[r].shape.size() == axes) continue;
      refuse_tensor(shards_[r], pieces.name,
                    "has another number of axes than in " + shards_[0].path);
    }
    pieces.batched = axes == 4;
    bool per_key = axes >= 1 && some_wider_than_one(pieces, axes - 1);
    bool per_query = axes >= 2 && some_wider_than_one(pieces, axes - 2);
    if (!per_key && !per_query && !key_.everywhere && !all_equal(pieces)) {
      // One element in each shard: of its only key or of its only query, whichever it can be.
      per_key = axes >= 1 && one_each(key_);
      per_query = axes >= 2 && one_each(query_);
      if (per_key == per_query) {
        refuse_tensor(shards_[0], pieces.name,
                      "differs in other shards, and is neither per key nor per query");
      }
    }
    if (per_key) {
      if (per_query && !key_.everywhere) {
        refuse_tensor(
            shards_[0], pieces.name,
            "needs a column for every key of the problem, so every shard must hold all keys");
      }
      expand(pieces, axes - 1, key_);
      if (!key_.everywhere) return join_rows(pieces, axes - 1, key_, storage_);
      pieces = order_columns(pieces, key_, storage_);
    }
    // One row for all queries of a shard stays one row if it is the same in all shards.
    if (axes < 2 || (!per_query && (all_equal(pieces) || !key_.everywhere)))
      return join_equal(pieces);
    expand(pieces, axes - 2, query_);
    return join_rows(pieces, axes - 2, query_, storage_);
  }

  const std::vector<Source>& shards_;
  AxisOrder layout_;
  const RowPlaces& query_;
  const RowPlaces& key_;
  Storage& storage_;
};

}  // namespace

Source join_tensors(const std::vector<Source>& shards, AxisOrder layout, const RowPlaces& query,
                    const RowPlaces& key, Storage& storage) {
  return Joiner(shards, layout, query, key, storage).join();
}

}  // namespace ringproof::oracle
