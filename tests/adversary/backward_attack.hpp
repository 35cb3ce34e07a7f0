// The attack on the gradients of one KV head: forward and backward roundings together follow the
// sign of an element of dq, dk, dv or of dsinks. A local search, like attack.hpp.
#pragma once

#include "tests/adversary/attack.hpp"
#include "tests/adversary/backward_kernel.hpp"

namespace ringproof::adversary {

struct BackwardResult {
  std::string not_applicable = {};
  Reached dq = {}, dk = {}, dv = {}, dsinks = {};  // elements with the largest error over bound
};

/// (30)-(33) of the head; `not_applicable` if some row is.
struct GradientBounds {
  std::string not_applicable = {};
  std::vector<double> dq = {}, dk = {}, dv = {};  // [rows, D], [Nk, D], [Nk, Dv]
  double dsinks = 0;
};
GradientBounds bounds_of(const oracle::Contract&, const Head&, const JudgedHead&);

/// `kernel` is emulated, `judged` gives the bound.
BackwardResult attack_backward(const oracle::Contract& kernel, const oracle::Contract& judged,
                               const Head&, std::mt19937_64&);

struct BackwardRatios {
  std::vector<double> dq, dk, dv, dsinks;
  std::int64_t targets = 0, not_applicable = 0;
  std::vector<std::string> exceeded;  // one line each, enough to repeat it
};

/// Families and upstream gradients of a case.
BackwardRatios attack_backward_all(const ContractCase&, const Effort&, bool as_emulated = false);

/// The table of docs/contract.md, section 11.
struct BackwardTableRow {
  std::string contract;
  BackwardRatios ratios;
  bool gross_only = false;
};
void write_markdown(std::ostream&, const std::vector<BackwardTableRow>&);

}  // namespace ringproof::adversary
