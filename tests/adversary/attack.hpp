// The attack on one row under one contract: from zero and from random choices, follow the sign of
// the
// gradient in both directions, for an element of out, for the LSE, and for the functional of T1F.
// A local search: it can show that a bound is reached or broken, never that it holds.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "oracle/contract/contract.hpp"
#include "tests/adversary/contract_cases.hpp"
#include "tests/adversary/row.hpp"

namespace ringproof::adversary {

/// Largest error found, the judge's bound, and what the emulator's own binary64 arithmetic may add.
struct Reached {
  double error = 0, bound = 0, noise = 0;
  bool exceeded() const { return !(error <= bound + noise); }
  /// Error over bound, what the emulator itself may have contributed taken off.
  double ratio() const {
    if (error <= noise) return 0;
    return bound > 0 ? (error - noise) / bound : INFINITY;
  }
  /// False where the bound is so small that the emulator cannot tell.
  bool measurable() const { return bound > 16 * noise; }
};

struct AttackResult {
  std::string not_applicable = {};  // the judge's reason; then nothing below was attacked
  Reached out = {};                 // of the column with the largest error over bound
  Reached lse = {}, functional = {};
};

/// `kernel` is what is emulated, `judged` whose bound is tested: the same, except in ablations.
AttackResult attack(const oracle::Contract& kernel, const oracle::Contract& judged, const Row&,
                    std::mt19937_64&, Shown = Shown::as_it_is);

struct Ratios {
  std::vector<double> out, lse, functional;
  std::vector<double> known_out;  // rows with a declared ring: T1R
  std::int64_t targets = 0, not_applicable = 0;
  std::vector<std::string> exceeded;  // one line each, enough to repeat it
  std::string worst_family;
};

struct Effort {
  int seeds = 1;
  std::int64_t longest = 96;
  std::int64_t head_dims[2] = {16, 32};
  std::uint64_t seed = 7;
  std::size_t every = 1, first = 0;  // families: each, or one in so many from `first` on
  bool until_exceeded = false;       // stop at the first bound exceeded
};

/// All families and seeds of a case. `as_emulated`: the judge is told everything, whatever the case
/// says.
Ratios attack_all(const ContractCase&, const Effort&, bool as_emulated = false);

}  // namespace ringproof::adversary
