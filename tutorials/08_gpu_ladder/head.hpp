// One small head of attention for the kernels of this chapter, and how often they read its numbers.
// Plain fp32, no mask; the real ladder (cuda/kernels/) has all of that.
#pragma once

#include <cmath>
#include <vector>

namespace ringproof::tutorials {

// [reads]
constexpr int kN = 128, kD = 8;  // queries and keys; components of q, k and v

/// Reads of device memory, which all threads share and which is far away, and of shared memory,
/// which the threads of one block share and which is near.
struct Reads {
  long device = 0, shared = 0;
};
inline Reads reads;

inline float from_device(float x) { return ++reads.device, x; }
inline float from_shared(float x) { return ++reads.shared, x; }
// [/reads]

struct Head {
  const float *q, *k, *v;  // [N, D] each, in device memory
  float* out;              // [N, D]
};

/// The state of a row in a thread's registers, and the document's update by one key, (6) and (7).
struct Row {
  float m = -INFINITY, l = 0, o[kD] = {};

  template <class Value>
  void absorb(float s, const Value& value) {
    const float top = s > m ? s : m, alpha = std::exp(m - top), w = std::exp(s - top);
    l = alpha * l + w;
    for (int d = 0; d < kD; ++d) o[d] = alpha * o[d] + w * value(d);
    m = top;
  }
};

}  // namespace ringproof::tutorials
