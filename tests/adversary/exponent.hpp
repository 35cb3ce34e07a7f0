// The exponential of a kernel on the tape, in the three argument forms of `softmax.arg`, and the
// logarithm that ends an LSE. Scores here are in natural units with the constant's error inside, so
// one model serves exp and exp2.
#pragma once

#include "oracle/contract/contract.hpp"
#include "tests/adversary/tape.hpp"

namespace ringproof::adversary {

/// A running maximum and, for fma_scaled, its rounded product with the constant.
struct Maximum {
  Traced raw, rounded;
  bool empty() const { return raw.node < 0; }
};

class Exponent {
 public:
  Exponent(Tape& tape, const oracle::Contract& contract) : tape_(tape), contract_(contract) {
    // The constant log2(e) of exp2((s - m) log2 e) carries one rounding, the same for all keys.
    log2e_ = form() == oracle::ExpArgument::sub_log2 ? round(tape.constant(1)) : tape.constant(1);
  }

  oracle::ExpArgument form() const { return contract_.softmax.arg; }
  Traced round(Traced x) const { return tape_.round(x, contract_.softmax.u); }

  /// The instruction itself: exp(0) = 1 where the contract says `exact` (H5).
  Traced exp(Traced x) const {
    if (x.value() == 0 && contract_.softmax.exp_zero_exact) return tape_.constant(1);
    return tape_.round(adversary::exp(x), contract_.softmax.exp_rel, contract_.softmax.exp_eta);
  }

  Maximum maximum(Traced raw) const {
    return {raw, form() == oracle::ExpArgument::fma_scaled ? round(raw) : raw};
  }

  /// exp(s - m) of a key.
  Traced of_score(Traced score, const Maximum& m) const {
    switch (form()) {
      case oracle::ExpArgument::sub:
        return exp(round(score - m.raw));
      case oracle::ExpArgument::sub_log2:
        return exp(round(round(score - m.raw) * log2e_));
      case oracle::ExpArgument::fma_scaled:
        break;
    }
    return exp(round(score - m.rounded));
  }

  /// exp(m_before - m_after): the factor of a rescale or of an unnormalised merge.
  Traced rescale(const Maximum& before, const Maximum& after) const {
    if (before.raw.node == after.raw.node) return exp(tape_.constant(0));
    if (form() == oracle::ExpArgument::fma_scaled &&
        contract_.softmax.alpha_from == oracle::AlphaFrom::scaled_max)
      return exp(round(before.rounded - after.rounded));
    const Traced difference = round(before.raw - after.raw);
    return exp(form() == oracle::ExpArgument::sub ? difference : round(difference * log2e_));
  }

  Traced log(Traced x) const { return inexact(adversary::log(x)); }
  Traced log1p(Traced x) const { return inexact(adversary::log1p(x)); }

  /// From here on lse() multiplies the maximum by `ratio`, unless the maximum is `except`.
  void rescale_maximum(Traced ratio, Traced except) {
    lse_ratio_ = ratio;
    lse_except_ = except;
  }

  /// fl(fl(m) + fl(ln l)), stored with unit `store`: (24).
  Traced lse(Traced m, Traced l, double store) const {
    const Traced logarithm = round(round(log(l)));
    if (lse_ratio_.node >= 0 && m.node != lse_except_.node) m = m * lse_ratio_;
    for (int k = 0; k < contract_.lse.max_roundings; ++k) m = round(m);
    return tape_.round(round(m + logarithm), store);
  }

 private:
  /// A logarithm may miss an exact zero by its absolute error, unlike a rounding.
  Traced inexact(Traced x) const {
    return tape_.shift(x, contract_.lse.log_rel * std::fabs(x.value()) + contract_.lse.log_abs);
  }

  Tape& tape_;
  const oracle::Contract& contract_;
  Traced log2e_, lse_ratio_, lse_except_;
};

/// One partial result: the state of an online softmax, or of a two-pass one (then divided already).
struct Partial {
  Maximum m = {};
  Traced l = {};
  std::vector<Traced> acc = {};  // [Dv]
  bool normalized = false;
};

struct Merged {
  std::vector<Traced> out = {};  // [Dv]
  Traced lse = {};
};

/// Merges partials in the order given, by the merge named (17)-(20b). `finish` divides acc by l.
Merged merge_partials(Tape&, const oracle::Contract&, const Exponent&, oracle::Merge,
                      std::vector<Partial> partials);
/// acc / l with the roundings of `finish`.
Traced divide(Tape&, const oracle::Contract&, Traced acc, Traced l);

}  // namespace ringproof::adversary
