// Where the rows of a whole problem lie in its shards: pure integers, from positions to places.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ringproof::oracle {

/// The rows of one shard on one side (query or key), as positions.
struct ShardRows {
  std::string path;
  std::int64_t rows = 0;
  std::vector<std::int64_t> positions;  // [B, rows]
};

/// Shard and local row that hold one row of the whole.
struct Place {
  std::int32_t shard = -1;
  std::int64_t row = -1;
  bool operator==(const Place&) const = default;
};

struct RowPlaces {
  std::int64_t batches = 0, rows = 0;
  bool everywhere = false;   // every shard holds every row; then `place` names the first shard
  std::vector<Place> place;  // [B, rows]
  std::vector<std::int64_t> held;  // [R]: rows in each shard
  /// Local rows of every shard, only if `everywhere`: local[r][b * rows + n] is where shard r has
  /// row n.
  std::vector<std::vector<std::int64_t>> local;  // [R][B, rows]

  const Place& at(std::int64_t b, std::int64_t n) const {
    return place[static_cast<std::size_t>(b * rows + n)];
  }
  /// True if every batch has its rows at the same places.
  bool same_in_all_batches() const;
};

/// Largest position + 1, 0 without any.
std::int64_t row_count(const std::vector<ShardRows>&);

/// Places of `rows` rows. Each must be in exactly one shard, or, where `may_repeat`, all rows in
/// every shard. Throws BadInput naming the first row of `what` ("query", "key") that is missing or
/// doubled.
RowPlaces place_rows(const std::vector<ShardRows>&, std::int64_t batches, std::int64_t rows,
                     bool may_repeat, const std::string& what);

}  // namespace ringproof::oracle
