// The suites of `ringproof gen`: lists of recipes. What a list holds does not depend on the seed;
// only the numbers do.
#pragma once

#include <string_view>
#include <vector>

#include "oracle/generate/recipe.hpp"

namespace ringproof::oracle {

/// Names of the suites: "quick" (judged in seconds), "full" (in minutes), "long" (up to 524288
/// keys, with the families that keep power there), "vectors" (tiny; tests/vectors ships their
/// answers).
std::vector<std::string_view> suite_names();
/// Throws BadInput for a name that is not in the list.
std::vector<Recipe> suite(std::string_view name);

/// The presets whose kernels read inputs of this type: the contracts that certificates name. The
/// stricter contracts of a preset are covered by it.
std::vector<std::string> contracts_of(DType);
/// The same for a case, loosest last. Long rows have power only under contracts that say how sums
/// are blocked and how long partial results are.
std::vector<std::string> contracts_of(const Recipe&);

}  // namespace ringproof::oracle
