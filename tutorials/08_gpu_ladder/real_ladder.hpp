// The steps of cuda/kernels/ on one head, each judged under the contract it declares.
#pragma once

#include <vector>

namespace ringproof::tutorials {

/// Drawn normally, and numbers of bfloat16, which every step takes.
std::vector<float> drawn(long count, const char* name);

void print_ladder();

}  // namespace ringproof::tutorials
