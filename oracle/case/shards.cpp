// Shards: files that each hold some rows of one problem become one case. What a tensor's rows are
// is decided here; places come from row_places.cpp, bytes are moved by join_rows.cpp, and the
// joined tensors go through assemble_case like those of any file.
#include <algorithm>
#include <array>

#include "oracle/case/assemble.hpp"
#include "oracle/case/error.hpp"
#include "oracle/case/join_rows.hpp"
#include "oracle/case/load.hpp"
#include "oracle/case/row_places.hpp"
#include "oracle/case/stored_view.hpp"
#include "oracle/case/words.hpp"

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

/// All tensors of one shard, problem and answers.
Source all_tensors(const LoadedCase& shard) {
  Source all = shard.answer;
  if (shard.elsewhere)
    all.tensors.insert(shard.elsewhere->tensors.begin(), shard.elsewhere->tensors.end());
  return all;
}

class Joiner {
 public:
  Joiner(std::vector<Source> shards, AxisOrder layout, RowPlaces query, RowPlaces key)
      : shards_(std::move(shards)),
        layout_(layout),
        query_(std::move(query)),
        key_(std::move(key)) {}

  /// The joined tensors; positions are left out, because a row now is its position.
  Source join() {
    check_same_names();
    Source joined{shards_.front().path, {}};
    for (const auto& [name, first] : shards_.front().tensors) {
      if (name == "positions_q" || name == "positions_k") continue;
      joined.tensors.emplace(name, join(join_rule(name), pieces_of(name)));
    }
    return joined;
  }

  const Storage& storage() const { return storage_; }

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
    const bool per_key = axes >= 1 && some_wider_than_one(pieces, axes - 1);
    const bool per_query = axes >= 2 && some_wider_than_one(pieces, axes - 2);
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

  std::vector<Source> shards_;
  AxisOrder layout_;
  RowPlaces query_, key_;
  Storage storage_;
};

/// Everything the shards must agree on, apart from where each has its problem.
Spec shared_spec(const std::vector<LoadedCase>& shards) {
  const auto without_problem = [](Spec spec) {
    spec.problem.clear();
    spec.problem_sha256.clear();
    return spec;
  };
  const Spec first = without_problem(shards.front().spec);
  for (const LoadedCase& shard : shards) {
    if (without_problem(shard.spec) == first) continue;
    throw BadInput(shard.answer.path + ": the spec differs from that in " +
                   shards.front().answer.path);
  }
  return first;
}

/// Positions of the rows of a shard whose tensors are all there; checks the shard on the way.
struct ShardSides {
  ShardRows query, key;
  std::int64_t batches;
};
ShardSides sides_of(const LoadedCase& shard, const Spec& spec, bool alone) {
  for (const std::string_view name : {"cu_seqlens_q", "cu_seqlens_k"}) {
    if (shard.problem().find(name) != nullptr) {
      refuse_tensor(shard.problem(), name, "a shard says the document of each row (documents_*)");
    }
  }
  if (!alone && shard.problem().find("positions_q") == nullptr) {
    refuse_tensor(shard.problem(), "positions_q", "is missing; a shard needs it");
  }
  Source local = shard.problem();
  local.tensors.erase("key_lengths");  // counts the keys of the whole problem
  Case checked = assemble_case(local, shard.elsewhere ? shard.answer : local, spec);
  Problem& problem = checked.problem;
  return {{shard.answer.path, problem.queries, std::move(problem.position_q)},
          {shard.answer.path, problem.keys, std::move(problem.position_k)},
          problem.batches};
}

/// Shards with their own parts of the problem.
Case join_problems(std::vector<LoadedCase> shards, const Spec& spec) {
  std::vector<ShardRows> query, key;
  std::vector<Source> sources;
  std::int64_t batches = 0;
  for (const LoadedCase& shard : shards) {
    ShardSides sides = sides_of(shard, spec, shards.size() == 1);
    if (!query.empty() && sides.batches != batches) {
      refuse_tensor(shard.problem(), "q", "has another number of batches than in " + query[0].path);
    }
    batches = sides.batches;
    query.push_back(std::move(sides.query));
    key.push_back(std::move(sides.key));
    sources.push_back(all_tensors(shard));
  }
  const std::int64_t rows = std::max(row_count(query), row_count(key));
  Joiner joiner(std::move(sources), spec.layout, place_rows(query, batches, rows, false, "query"),
                place_rows(key, batches, rows, true, "key"));
  const Source joined = joiner.join();
  Case result = assemble_case(joined, joined, spec);
  result.storage = joiner.storage();
  return result;
}

}  // namespace

Case read_shards(const std::vector<std::string>& paths, const CaseOptions& options) {
  if (paths.empty()) throw BadInput("--shards: no file is named");
  std::vector<LoadedCase> shards;
  for (const std::string& path : paths) shards.push_back(load_case(path, options));
  const Spec spec = shared_spec(shards);
  Storage files;
  for (const LoadedCase& shard : shards) {
    files.insert(files.end(), shard.storage.begin(), shard.storage.end());
  }
  Case result = join_problems(std::move(shards), spec);
  result.storage.insert(result.storage.end(), files.begin(), files.end());
  return result;
}

}  // namespace ringproof::oracle
