// One row of a conforming forward kernel on the tape: every operation that a contract lists is
// rounded
// by the adversary, in the places where the fields of the contract allow a rounding and nowhere
// else.
#pragma once

#include "oracle/contract/contract.hpp"
#include "tests/adversary/plan.hpp"
#include "tests/adversary/row.hpp"
#include "tests/adversary/tape.hpp"

namespace ringproof::adversary {

struct TracedRow {
  std::vector<Traced> out;  // [Dv] before the rounding of the output
  Traced lse;               // as stored
  // Normalised probabilities of a two-pass kernel with one partial, for a backward pass that stores
  // them: before and after the cast; empty otherwise.
  std::vector<Traced> p = {}, p_cast = {};  // [n]
  Traced p_sink = {}, p_sink_cast = {};
};

/// Scores as a backward pass computes them anew, with roundings of their own.
struct TracedScores {
  std::vector<Traced> score, capped;  // [n]; capped: after the softcap, before any bias
  Traced sink;
};
TracedScores recompute_scores(Tape&, const oracle::Contract&, const Row&, const Plan&);

TracedRow run_kernel(Tape&, const oracle::Contract&, const Row&, const Plan&);

}  // namespace ringproof::adversary
