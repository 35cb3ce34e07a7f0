// Shards: files that each hold some rows of one problem become one case. Here it is decided what
// the rows are; join_tensors.cpp joins them, and the result goes through assemble_case like any
// file. Two forms: every shard holds its own part of the problem, or all answer one whole problem
// file.
#include <algorithm>
#include <numeric>

#include "oracle/case/assemble.hpp"
#include "oracle/case/error.hpp"
#include "oracle/case/join_tensors.hpp"
#include "oracle/case/load.hpp"
#include "oracle/case/rows.hpp"
#include "oracle/case/words.hpp"

namespace ringproof::oracle {
namespace {

/// All tensors of one shard, problem and answers.
Source all_tensors(const LoadedCase& shard) {
  Source all = shard.answer;
  if (shard.elsewhere)
    all.tensors.insert(shard.elsewhere->tensors.begin(), shard.elsewhere->tensors.end());
  return all;
}

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
ShardSides sides_of(const LoadedCase& shard, const Spec& spec) {
  for (const std::string_view name : {"cu_seqlens_q", "cu_seqlens_k"}) {
    if (shard.problem().find(name) != nullptr) {
      refuse_tensor(shard.problem(), name, "a shard says the document of each row (documents_*)");
    }
  }
  if (shard.problem().find("positions_q") == nullptr) {
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

/// Shards with their own parts of the problem: N is the largest position + 1.
Case join_problems(const std::vector<LoadedCase>& shards, const Spec& spec) {
  std::vector<ShardRows> query, key;
  std::vector<Source> sources;
  std::int64_t batches = 0;
  for (const LoadedCase& shard : shards) {
    ShardSides sides = sides_of(shard, spec);
    if (!query.empty() && sides.batches != batches) {
      refuse_tensor(shard.problem(), "q", "has another number of batches than in " + query[0].path);
    }
    batches = sides.batches;
    query.push_back(std::move(sides.query));
    key.push_back(std::move(sides.key));
    sources.push_back(all_tensors(shard));
  }
  const std::int64_t rows = std::max(row_count(query), row_count(key));
  const RowPlaces query_places = place_rows(query, batches, rows, false, "query");
  const RowPlaces key_places = place_rows(key, batches, rows, true, "key");
  Storage storage;
  const Source joined = join_tensors(sources, spec.layout, query_places, key_places, storage);
  Case result = assemble_case(joined, joined, spec);
  result.storage = std::move(storage);
  return result;
}

/// Rows of a whole problem by their positions.
class RowFinder {
 public:
  /// `positions` [B, rows] of the problem file.
  RowFinder(const Source& problem, std::int64_t batches, const std::vector<std::int64_t>& positions)
      : problem_(problem),
        rows_(static_cast<std::int64_t>(positions.size()) / batches),
        order_(positions.size()),
        positions_(positions) {
    for (std::int64_t b = 0; b < batches; ++b) {
      const auto first = order_.begin() + b * rows_, last = first + rows_;
      std::iota(first, last, b * rows_);
      std::sort(first, last, [&](auto m, auto n) { return position(m) < position(n); });
      const auto twice = std::adjacent_find(
          first, last, [&](auto m, auto n) { return position(m) == position(n); });
      if (twice != last) {
        throw BadInput(problem.path + ": position " + std::to_string(position(*twice)) +
                       " has more than one row, so shards cannot say whose rows they hold");
      }
    }
  }

  /// Replaces positions [B, n] of a shard by row numbers.
  void number(ShardRows& shard) const {
    for (std::size_t n = 0; n < shard.positions.size(); ++n) {
      const auto b = static_cast<std::int64_t>(n) / shard.rows;
      const auto first = order_.begin() + b * rows_, last = first + rows_;
      const auto place = std::lower_bound(first, last, shard.positions[n],
                                          [&](auto m, auto value) { return position(m) < value; });
      if (place == last || position(*place) != shard.positions[n]) {
        throw BadInput(shard.path + ": no row of " + problem_.path + " has position " +
                       std::to_string(shard.positions[n]));
      }
      shard.positions[n] = *place - b * rows_;
    }
  }

 private:
  std::int64_t position(std::int64_t n) const { return positions_[static_cast<std::size_t>(n)]; }

  const Source& problem_;
  std::int64_t rows_;
  std::vector<std::int64_t> order_;
  const std::vector<std::int64_t>& positions_;
};

/// Rows that shards of answers say they hold; all of them, in order, where a shard does not say.
std::vector<ShardRows> answered_rows(const std::vector<LoadedCase>& shards, std::string_view name,
                                     const Problem& problem, std::int64_t rows,
                                     const std::vector<std::int64_t>& positions) {
  const RowFinder finder(*shards.front().elsewhere, problem.batches, positions);
  std::vector<ShardRows> result;
  for (const LoadedCase& shard : shards) {
    const StoredTensor* tensor = shard.answer.find(name);
    ShardRows held{shard.answer.path, rows, positions};
    if (tensor != nullptr) {
      held.rows = tensor->shape.empty() ? 0 : tensor->shape.back();
      held.positions = read_positions(shard.answer, name, problem.batches, held.rows);
    }
    finder.number(held);
    result.push_back(std::move(held));
  }
  return result;
}

/// Shards of answers to one whole problem: rows go to the rows of the same position there.
Case join_answers(const std::vector<LoadedCase>& shards, const Spec& spec) {
  const Source& source = *shards.front().elsewhere;
  std::vector<Source> answers;
  for (const LoadedCase& shard : shards) {
    if (!shard.elsewhere || shard.elsewhere->path != source.path) {
      throw BadInput(shard.answer.path + ": does not answer " + source.path + ", as " +
                     shards.front().answer.path + " does");
    }
    if (shard.answer.find("positions_q") == nullptr) {
      refuse_tensor(shard.answer, "positions_q", "is missing; a shard needs it");
    }
    answers.push_back(shard.answer);
  }
  const Source none{shards.front().answer.path, {}};
  const Problem whole = assemble_case(source, none, spec).problem;
  const auto query = answered_rows(shards, "positions_q", whole, whole.queries, whole.position_q);
  const auto key = answered_rows(shards, "positions_k", whole, whole.keys, whole.position_k);
  const RowPlaces query_places = place_rows(query, whole.batches, whole.queries, false, "query");
  const RowPlaces key_places = place_rows(key, whole.batches, whole.keys, true, "key");
  Storage storage;
  const Source joined = join_tensors(answers, spec.layout, query_places, key_places, storage);
  Case result = assemble_case(source, joined, spec);
  result.storage = std::move(storage);
  return result;
}

}  // namespace

Case read_shards(const std::vector<std::string>& paths, const CaseOptions& options) {
  if (paths.empty()) throw BadInput("--shards: no file is named");
  std::vector<LoadedCase> shards;
  for (const std::string& path : paths) shards.push_back(load_case(path, options, FilePart::shard));
  const Spec spec = shared_spec(shards);
  const LoadedCase& first = shards.front();
  const bool whole_problem = first.elsewhere && first.answer.find("positions_q") != nullptr;
  Case result = whole_problem ? join_answers(shards, spec) : join_problems(shards, spec);
  for (const LoadedCase& shard : shards) {
    result.storage.insert(result.storage.end(), shard.storage.begin(), shard.storage.end());
  }
  return result;
}

}  // namespace ringproof::oracle
