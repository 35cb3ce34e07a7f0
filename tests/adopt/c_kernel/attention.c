/* Somebody's attention in C: fp32, no mask, online softmax row by row. It knows no ringproof. */
#include "attention.h"

#include <math.h>

void attention(const float* q, const float* k, const float* v, long heads, long group, long queries,
               long keys, long d, long dv, float* out, float* lse) {
  for (long n = 0; n < heads * queries; ++n) {
    const long kv = n / queries / group;
    float m = -INFINITY, l = 0;
    for (long c = 0; c < dv; ++c) out[n * dv + c] = 0;
    for (long j = 0; j < keys; ++j) {
      float s = 0;
      for (long t = 0; t < d; ++t) s += q[n * d + t] * k[(kv * keys + j) * d + t];
      s *= 1 / sqrtf((float)d);
      const float top = s > m ? s : m, alpha = expf(m - top), p = expf(s - top);
      l = alpha * l + p;
      for (long c = 0; c < dv; ++c) {
        out[n * dv + c] = alpha * out[n * dv + c] + p * v[(kv * keys + j) * dv + c];
      }
      m = top;
    }
    for (long c = 0; c < dv; ++c) out[n * dv + c] /= l;
    if (lse) lse[n] = m + logf(l);
  }
}
