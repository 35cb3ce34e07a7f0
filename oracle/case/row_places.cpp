// Placing rows by their positions (row_places.hpp). A position may be any number a file claims, so
// nothing is allocated by it: with more rows claimed than there are, one of the first is missing.
#include "oracle/case/row_places.hpp"

#include <algorithm>

#include "oracle/case/error.hpp"

namespace ringproof::oracle {
namespace {

std::string in_batch(std::int64_t b, std::int64_t batches) {
  return batches > 1 ? " of batch " + std::to_string(b) : std::string();
}

/// Marks of the rows that one shard, or all of them, hold.
struct Placing {
  const std::vector<ShardRows>& shards;
  std::int64_t batches, rows;
  const std::string& what;

  [[noreturn]] void refuse(const std::string& path, std::int64_t row, std::int64_t b,
                           const std::string& how) const {
    throw BadInput(path + ": " + what + " row " + std::to_string(row) + in_batch(b, batches) + " " +
                   how);
  }

  /// Writes the places of one shard; `place` covers rows [0, known) of one batch.
  void put(std::size_t r, std::int64_t b, Place* place, std::int64_t known) const {
    const ShardRows& shard = shards[r];
    for (std::int64_t n = 0; n < shard.rows; ++n) {
      const std::int64_t position = shard.positions[static_cast<std::size_t>(b * shard.rows + n)];
      if (position < 0)
        refuse(shard.path, position, b, "is below 0; in a shard positions number the rows");
      if (position >= rows) refuse(shard.path, position, b, "is not a row of the problem");
      if (position >= known) continue;
      Place& slot = place[position];
      if (slot.shard >= 0) {
        refuse(shard.path, position, b,
               "is doubled: " + shards[static_cast<std::size_t>(slot.shard)].path + " has it, too");
      }
      slot = {static_cast<std::int32_t>(r), n};
    }
  }

  /// The first missing row is named; there is one among the first `known` or none.
  void check_complete(const Place* place, std::int64_t b, std::int64_t known) const {
    for (std::int64_t n = 0; n < known; ++n) {
      if (place[n].shard < 0) {
        refuse(shards.front().path, n, b, "of " + std::to_string(rows) + " is in no shard");
      }
    }
  }
};

}  // namespace

bool RowPlaces::same_in_all_batches() const {
  for (std::int64_t b = 1; b < batches; ++b) {
    const auto first = b * rows;
    if (!std::equal(place.begin(), place.begin() + rows, place.begin() + first)) return false;
    for (const auto& rows_of : local) {
      if (!std::equal(rows_of.begin(), rows_of.begin() + rows, rows_of.begin() + first))
        return false;
    }
  }
  return true;
}

std::int64_t row_count(const std::vector<ShardRows>& shards) {
  std::int64_t rows = 0;
  for (const ShardRows& shard : shards) {
    for (const std::int64_t position : shard.positions) rows = std::max(rows, position + 1);
  }
  return rows;
}

RowPlaces place_rows(const std::vector<ShardRows>& shards, std::int64_t batches, std::int64_t rows,
                     bool may_repeat, const std::string& what) {
  RowPlaces result{batches, rows, false, {}, {}, {}};
  const Placing placing{shards, batches, rows, what};
  std::int64_t held = 0;
  for (const ShardRows& shard : shards) {
    held += shard.rows;
    result.held.push_back(shard.rows);
  }
  const std::int64_t known = std::min(rows, held + 1);
  const auto size = static_cast<std::size_t>(batches * known);
  result.everywhere =
      may_repeat && std::all_of(shards.begin(), shards.end(),
                                [&](const auto& shard) { return shard.rows == rows; });
  if (!result.everywhere) {
    result.place.assign(size, {});
    for (std::int64_t b = 0; b < batches; ++b) {
      for (std::size_t r = 0; r < shards.size(); ++r) {
        placing.put(r, b, result.place.data() + b * known, known);
      }
      placing.check_complete(result.place.data() + b * known, b, known);
    }
    return result;
  }
  for (std::size_t r = 0; r < shards.size(); ++r) {
    std::vector<Place> place(size);
    for (std::int64_t b = 0; b < batches; ++b) {
      placing.put(r, b, place.data() + b * known, known);
      placing.check_complete(place.data() + b * known, b, known);
    }
    std::vector<std::int64_t> local(size);
    std::transform(place.begin(), place.end(), local.begin(), [](const Place& p) { return p.row; });
    result.local.push_back(std::move(local));
    if (r == 0) result.place = std::move(place);
  }
  return result;
}

}  // namespace ringproof::oracle
