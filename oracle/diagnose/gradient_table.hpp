// Short forms in which the lists of wrong gradients are written.
#pragma once

#include <string>

#include "oracle/diagnose/gradient_mutant.hpp"
#include "oracle/diagnose/table.hpp"

namespace ringproof::oracle {

using Mutants = std::vector<GradientMutant>;
using Edit = std::function<void(GradientRule&)>;

/// Gradients that come out wrong, as a sum.
constexpr int kDq = 1, kDk = 2, kDv = 4, kDbias = 8, kDsinks = 16, kAllGradients = 31;

void add(Mutants&, const char* id, std::string words, int wrong, const Edit& edit,
         const char* also = "");
/// "dq, dk and dv"
std::string names(int wrong);
/// The gradients of the case that are judged.
int judged_gradients(const Case&);
/// `wrong` alone and with dbias, dsinks or both, as far as the case has them: what a mistake in a
/// term that all of them use may have made wrong.
std::vector<int> with_additions(const Case&, int wrong, int additions = kDbias + kDsinks);

/// Pairs that do not count, in the gradients that are wrong. dsinks has no keys.
void count_pairs(GradientRule&, int wrong, const GradientRule::Pair& counts);

/// Probabilities to the power of this are those of another base.
constexpr double kLn2 = 0x1.62e42fefa39efp-1;

}  // namespace ringproof::oracle
