// Input families for one row: shapes of scores and values that once broke, or might break, a bound.
// The first 22 are those of docs/contract.md, section "numeric verification"; the others aim at one
// term each.
#pragma once

#include <random>
#include <string_view>
#include <vector>

#include "tests/adversary/row.hpp"

namespace ringproof::adversary {

enum class Family {
  randn,
  flat,
  sharp4,
  sharp12,
  large_maximum,
  ascending,
  descending,
  constant_values,
  offset_values,
  huge_alternating,
  one_dominant,
  few_keys,
  random_count,
  sink,
  ties,
  cancelling_dots,
  finite_mask,
  sink_large_maximum,
  subnormal_values,
  scattered,
  weightless_quarter,
  dyadic,
  tiny_scores,  // stored scores and capped scores underflow
  // weights of one contiguous quarter just below what exp can return, huge values there
  weightless_rank,
  // the same with a single key in the first half of the positions: a partial of its own
  lonely_weightless,
  slow_ascent,        // each block raises the maximum a little (or none does): rescales add up
  sparse,             // few keys, far apart
  vanishing_weights,  // weights spread down to where exp returns zero
};

std::vector<Family> all_families();
std::string_view name(Family);

/// What the contract under test brings into play.
struct RowOptions {
  double softcap = 0;
  bool bias = false, alibi = false, sinks = true;
  std::int64_t partials = 1;
  std::int64_t longest = 96;  // keys
  std::int64_t head_dim = 16, value_dim = 4;
  bool known_ring = false;  // declare layout and order of the ring
  double weight_floor =
      0x1p-126;  // below it exp may return anything: `exp_eta`, where there is one
};

Row make_row(Family, const RowOptions&, std::mt19937_64&);

}  // namespace ringproof::adversary
