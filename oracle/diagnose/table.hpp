// Short forms in which the lists of mistakes are written.
#pragma once

#include <string>
#include <utility>

#include "oracle/diagnose/mutant.hpp"

namespace ringproof::oracle {

using Change = std::function<void(HeadChange&)>;
using Expectation = std::function<void(const RowMaterial&, ExpectedRow&)>;

/// A family of one: the changed problem is the whole mistake.
inline void add(Families& families, std::string id, std::string words, Change change,
                std::string also = "") {
  Family family;
  family.setting.change = std::move(change);
  family.mutants.push_back({std::move(id), std::move(words), std::move(also), {}});
  families.push_back(std::move(family));
}

/// One more mistake in a setting.
inline void add(Family& family, std::string id, std::string words, Expectation expect,
                std::string also = "") {
  family.mutants.push_back({std::move(id), std::move(words), std::move(also), std::move(expect)});
}

inline std::size_t index(std::int64_t n) { return static_cast<std::size_t>(n); }

/// Tile sizes worth a look: all of them on short rows, the usual ones on long rows.
std::vector<std::int64_t> tile_sizes(std::int64_t keys);
/// " (tiles of 64)"
std::string tiles_of(std::int64_t size);
/// For every such size that cuts the keys into a moderate number of tiles: the size, and a family
/// whose parts are the tiles.
struct Tiles {
  std::int64_t size;
  Family family;
};
std::vector<Tiles> tiled_families(std::int64_t keys);

/// True if rows are told apart by documents at all.
bool has_documents(const Problem&);

/// Who owns what when `ranks` ranks share the rows; the spec's layout, or all of them if it names
/// none.
struct Sharing {
  RingLayout layout;
  std::int64_t ranks;
  const char* name;
  const Problem* problem;
  std::int64_t stripe = 1;  // of a striped ring: rows that a rank gets one after the other
  /// Owner of the query or key at this place, by position where positions number the rows.
  std::int64_t query_rank(std::int64_t b, std::int64_t i) const;
  std::int64_t key_rank(std::int64_t b, std::int64_t j) const;

 private:
  std::int64_t owner(std::int64_t number, std::int64_t length) const;
};
std::vector<Sharing> sharings(const Subject&);
/// Stripes of several rows, which no spec can state: powers of two that deal all keys out evenly.
/// None if the spec names a layout.
std::vector<Sharing> wide_stripes(const Subject&);

}  // namespace ringproof::oracle
