// Wrong ways to put the parts of a row together: tiles whose rescaling is wrong, partial results
// that are merged with wrong weights. All of them are out = sum_t e^{w_t} out_t, and differ in w.
#pragma once

#include "oracle/diagnose/mutant.hpp"

namespace ringproof::oracle {

/// A tiled online softmax, tile by tile in order of part number: numerator and denominator are
/// multiplied by a factor when a tile comes in, and its exponentials refer to a maximum.
struct OnlineRule {
  enum class Reference {  // whose maximum the exponentials refer to
    running,
    tile,              // the tile's own
    previous,          // the running one before this tile
    previous_at_last,  // that, in the last step only
    first_or_tile      // the larger of the first tile's and this tile's
  };
  enum class Factor {
    right,         // exp(m_old - m_new)
    none,          // 1
    inverse,       // exp(m_new - m_old)
    none_at_last,  // right, but 1 for the last tile
    late,          // that of the tile before
    of_tiles,      // exp(difference of the two tiles' own maxima)
    from_first,    // exp(m_first - max(m_first, m_tile)): the old maximum was never stored
    zero           // the old state is lost
  };
  Reference reference = Reference::running;
  Factor o = Factor::right, l = Factor::right;
  bool descending = false;      // the tiles come in falling order
  bool lse_from_first = false;  // the LSE adds the first tile's maximum
};
std::function<void(const RowMaterial&, ExpectedRow&)> online(const OnlineRule&);

/// Weights of normalised partial results, as functions of their LSEs.
enum class MergeRule {
  average_present,     // 1 / number of ranks that hold a visible key
  average_all,         // 1 / P
  average_by_keys,     // share of the visible keys
  sum,                 // 1
  base_two,            // 2^L
  log2_as_natural,     // e^(L log2 e)
  exchanged,           // old and new weight exchanged in every step
  aliased,             // the new LSE is read where the old one is meant
  without_maximum,     // e^L, which overflows
  exp_of_difference,   // log(1 + e^(new - old)), which overflows
  first,               // the first partial alone
  last,                // the last one alone
  unscaled,            // numerators added as if all had the same maximum
  empty_first_is_nan,  // (-inf) - (-inf) where both sides of a merge are empty
  empty_last_is_nan,   // the same, from the other end
  any_empty_is_nan,    // 0/0 of an empty part, whatever its weight
  empty_weighs_one     // an empty part's LSE is 0
};
std::function<void(const RowMaterial&, ExpectedRow&)> merged(MergeRule);

/// Parts absorbed a given number of times each (1 for those not named).
std::function<void(const RowMaterial&, ExpectedRow&)> absorbed(std::vector<std::int64_t> named,
                                                               double times);
/// out = sum_t e^{w_t} out_t of the parts with a finite w, each w known to within w_error, and the
/// budget of putting them together. Alternatives of the LSE are left to the caller.
void weigh(const RowMaterial&, const std::vector<double>& log_weight,
           const std::vector<double>& log_error, ExpectedRow&);

/// Log budget of the steps that put the parts of this row together.
double combination_budget(const RowMaterial&);

/// ln of the largest number of the softmax's type.
double largest_exponent(const Contract&);

}  // namespace ringproof::oracle
