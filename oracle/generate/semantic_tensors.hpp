// The tensors of a recipe: q, k, v from the family; masks, biases, sinks, positions, documents and
// upstream gradients from the semantics. Private to generated_case.cpp.
#pragma once

#include <vector>

#include "oracle/generate/generated_case.hpp"

namespace ringproof::oracle {

std::vector<OwnedTensor> problem_tensors(const Recipe&, std::uint64_t seed);

}  // namespace ringproof::oracle
