// Boxes of wrong gradients of one drawn head, gradient by gradient: for boxes_test.cpp, which
// attacks them, and literal_boxes_test.cpp, which reads them.
#pragma once

#include <array>
#include <optional>
#include <random>
#include <vector>

#include "oracle/diagnose/gradient_additions.hpp"
#include "tests/adversary/backward_attack.hpp"

namespace ringproof::adversary {

constexpr std::size_t kGradients = 5;  // dq, dk, dv, dbias, dsinks

/// Values and bounds under a mistake, one gradient after the other.
struct Boxes {
  std::vector<double> value, bound;
  std::size_t last[kGradients] = {};  // behind each
};

/// The largest size of a number.
double largest_of(const std::vector<double>& numbers);

/// A head as the contract's kernel may meet it.
Head draw_head(const ContractCase&, const oracle::Contract& kernel, std::mt19937_64&);

/// Nothing if the theorems do not apply to a row.
std::optional<oracle::GradientPairs> pairs_of(const oracle::Contract&, const Head&,
                                              const JudgedHead&);

/// A case of the head's shape, from which the lists of mistakes are made; they refer to it.
oracle::Case case_of(const Head&, const JudgedHead&);

/// dbias before any sum, dsinks of all heads together.
Boxes boxes_of(const oracle::Contract&, const Head&, const JudgedHead&,
               const oracle::GradientPairs&, const oracle::GradientMutant&);

}  // namespace ringproof::adversary
