// The backward pass of one KV head on the tape, end to end: the forward rows run on the same tape,
// so that their roundings and those of the gradients are chosen together. Rounded in the places
// where the fields of the contract allow it and nowhere else.
#pragma once

#include "tests/adversary/backward_head.hpp"
#include "tests/adversary/kernel.hpp"

namespace ringproof::oracle {
struct GradientRule;
}

namespace ringproof::adversary {

/// What a contract leaves open in the backward pass; one plan is one kernel.
struct BackwardPlan {
  oracle::Accumulator dp, D, grad;
  bool stored = false;  // P of the forward pass, else exp(s - L)
  bool D_from_products = false;
  bool cast_in_ds = false;      // dS from the cast P
  bool factor_first = false;    // t f before P, else P t before f
  bool scale_first = false;     // the scale before the cast of dS, else after the sum
  bool heads_apart = false;     // heads are summed apart and stored, then added
  std::vector<Plan> rows = {};  // of the forward pass
  // A mistake that is planted (mistakes.hpp); D is right but for what the rule says of it.
  // Gradients that it adds up may be stored before.
  const oracle::GradientRule* rule = nullptr;
  bool stored_before = false;
};
BackwardPlan draw_backward_plan(const oracle::Contract&, const Head&, std::mt19937_64&);

struct TracedGradients {
  std::vector<Traced> dq, dk, dv;  // [rows, D], [Nk, D], [Nk, Dv]; of keys no row sees: zeros
  Traced dsinks;
  std::vector<Traced> dbias;  // [rows, Nk] before any sum; empty unless a mistake is planted
};
TracedGradients run_backward(Tape&, const oracle::Contract&, const Head&, const BackwardPlan&);

}  // namespace ringproof::adversary
