// Sums whose additions round to nearest, at the probabilistic level: formula (39a) of
// docs/contract.md. The error of a sum is a martingale of its roundings, so that it grows like the
// root of their number and not like the number. Matrix units that truncate are left out.
#pragma once

#include <span>

#include "oracle/contract/accumulator.hpp"
#include "oracle/contract/contract.hpp"

namespace ringproof::oracle {

/// True if every addition rounds to nearest: (39a) may list its roundings.
bool rounds_to_nearest(const Accumulator&);
/// True if (39a) holds for both sums of a contract: nothing is merged, and both round to nearest.
bool lists_sums(const Contract&);
/// The same contract with sums in so many digits that nothing of them is left.
Contract without_sums(const Contract&);

/// h of (39a): the roundings on the longest way of a term through the sum, and the rescales.
double path_roundings(const Accumulator&, const Terms&, double rescales);
/// lambda hat(u) e^{largest} sqrt(h), which stands for expm1 of the sum's budget. (39a)
double probable_sum(double lambda, double u, double largest_budget, double roundings);
/// Precondition of (39a): more than half of the addends are equal, and so may be their errors.
bool mostly_equal(std::span<const double> addends);

}  // namespace ringproof::oracle
