// One small problem, a kernel's answer to it, and two opinions of the answer: the author's test's,
// and the judge's by its C interface (oracle/ringproof.h).
#pragma once

#include <vector>

#include "oracle/ringproof.h"

namespace ringproof::tutorials {

using Kernel = void (*)(const float* q, const float* k, const float* v, long heads, long group,
                        long queries, long keys, long d, long dv, float* out, float* lse);

struct Trial {
  long heads, queries, keys, d;
  std::vector<float> q, k, v;   // [H, Nq, D], [H, Nk, D] twice
  std::vector<float> out, lse;  // [H, Nq, D], [H, Nq]

  /// Numbers drawn normally.
  Trial(long heads, long queries, long keys, long d);
  void run(Kernel kernel);

  /// As the author tests: the largest difference to a plain softmax in binary64.
  double largest_difference() const;
  /// As we do: out and LSE, under the contract fp32.
  ringproof_result judged() const;
};

}  // namespace ringproof::tutorials
