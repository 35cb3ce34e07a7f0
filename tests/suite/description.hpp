// A random problem as small integers, so that RapidCheck can draw and shrink it: sizes come first,
// then masks and additions, and the values last, down to small integers.
// What the integers mean in numbers is draw.hpp; a law may force some of them (law.hpp).
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <vector>

#include "tests/suite/draft.hpp"
#include "tests/suite/feature.hpp"

namespace ringproof::suite {

/// Families of numbers; the first is what values shrink to.
enum Values : int {
  small_integers,
  normal,
  sharp,  // scores eight times as large
  ascending_scores,
  descending_scores,
  far_apart,     // blocks of scores about 100 apart, of both signs
  large_values,  // V of about 1000
  count_of_values,
};

/// Shapes of a bias or mask (draw.cpp). The last has two axes: for laws that take no rows away.
constexpr int kScoreShapes = 5;

struct Description {
  int batches = 1, kv_heads = 1, group = 1, queries = 1, keys = 1;
  int head_dim = 0, value_dim = 0;  // indices into the kernel's sizes
  int causal = 0;                   // none, top_left, bottom_right
  int window_left = -1, window_right = -1;
  int lengths = 0, mask = 0, rows = 0;  // rows: plain, cu_seqlens, documents, positions
  int bias = 0, alibi = 0, softcap = 0, sinks = 0, scale = 0, empty = 0;
  int axes = 0, gap = 0;               // bhnd, bnhd, nhd; gap between rows
  int ranks = 1, ring = 0, order = 0;  // ring: unknown, contiguous, zigzag, striped
  int at = 0;                          // a place, for the law: 0 .. 999
  int values = small_integers;
  std::uint32_t seed = 0;
};

/// What the kernel can do, as far as sizes go.
struct Sizes {
  std::vector<int> head_dims{4};
  Features support{};
  int most_keys = 40;
};

/// Descriptions of problems that need nothing beyond the support.
rc::Gen<Description> descriptions(const Sizes&);

/// Takes away what the support lacks.
void restrict(Description&, const Sizes&);

}  // namespace ringproof::suite
