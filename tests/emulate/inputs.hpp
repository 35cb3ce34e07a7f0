// Queries, keys and values of the input families, as plain numbers before they are stored.
#pragma once

#include <random>
#include <vector>

#include "tests/emulate/draw.hpp"

namespace ringproof::emulate {

struct InputShape {
  std::int64_t query_rows, key_rows, head_dim, value_dim;  // rows over all batches and heads
  std::int64_t keys;                                       // Nk: rows of one head
  double scale;
  oracle::DType dtype;
};
struct InputValues {
  std::vector<double> q, k, v;  // [rows, D], [rows, D], [rows, Dv]
};

InputValues draw_inputs(InputFamily, const InputShape&, std::mt19937_64&);

}  // namespace ringproof::emulate
