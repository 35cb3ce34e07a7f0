// Input families: what the numbers of q, k and v look like. Each is chosen against named faults
// (notes.json says which), because the same fault hides behind one family and shows on another:
// near-uniform weights make every shard's LSE equal and mean(V) vanish, so nothing depends on how
// partial results are merged. Not here: masks, sizes and types (recipe.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "oracle/case/dtype.hpp"

namespace ringproof::oracle {

/// Shape of the scores over the keys.
enum class Scores {
  normal,      // q and k normal
  flat,        // q small: weights nearly equal
  sharp,       // q times 8
  equal,       // q = 0: every score is exactly 0
  ascending,   // rising with the key, so that every block has a new maximum
  descending,  // falling
  peak,        // rising, then falling
  addressed,   // each query addresses one key whose weight is 1 to within e^-100
  high,        // near +1000, with gaps of order 1
  low,         // near -100000
  ties,        // keys repeat, so the maximum occurs many times
  shards,      // eighths of the keys differ by several units of score
  dyadic,      // integers 0, -1, -2, -3 that the scale ln 2 turns into powers of two
  cancelling,  // two large products that cancel
  one_high,    // one key at 0, all others at -7
};

enum class Values {
  normal,
  one,          // 1 everywhere
  positive,     // in [1/2, 3/2)
  coded,        // a quarter of the columns positive, the others +-1 by a hash of (j / 64, column)
  balanced,     // a quarter of the columns integers 1..3, the others with v[j + N/2] = -v[j]
  indexed,      // small integers that tell keys apart
  offset,       // normal + 4
  alternating,  // +-1000, sign by key
  tiny,         // near 2^12 times the smallest number of the type
};

struct InputFamily {
  std::string_view name;
  Scores scores;
  Values values;
};

/// All families, in the order of the notes.
std::span<const InputFamily> input_families();
/// Precondition: there is one of this name.
const InputFamily& input_family(std::string_view name);

/// What the numbers depend on beside the family.
struct FamilyShape {
  std::int64_t batches, heads, kv_heads, queries, keys, head_dim, value_dim;
  double scale;  // that the problem will apply; its last digits do not matter here
  DType dtype;   // type of q, k and v: some families stay within its range
  std::uint64_t seed;
  std::string_view stream;  // name of the case
};

/// Where the scores of a family lie: 0, or the height of "high" and "low".
double score_level(const InputFamily&, DType);

std::vector<double> draw_queries(const InputFamily&, const FamilyShape&);  // [B, H, Nq, D]
std::vector<double> draw_keys(const InputFamily&, const FamilyShape&);     // [B, Hkv, Nk, D]
std::vector<double> draw_values(const InputFamily&, const FamilyShape&);   // [B, Hkv, Nk, Dv]

}  // namespace ringproof::oracle
