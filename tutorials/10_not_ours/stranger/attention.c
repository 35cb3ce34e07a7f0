/* Somebody's attention in C: fp32, no mask, in tiles of keys. It knows no ringproof. VERSION 1 is
 * what we were given; the chapter mends it, one version at a time. */
#include "attention.h"

#include <math.h>

#ifndef VERSION
#define VERSION 1
#endif

enum { TILE = 16 };

// [versions]
#define PADDING (VERSION < 2 ? 0 : -INFINITY) /* the score of what is not there */
#define EVERY_TILE (VERSION >= 3)             /* softmax does not care what is subtracted */
#define QUARTIC (VERSION >= 4)                /* an exponential of our own */
// [/versions]

// [weight]
/* e^x for x <= 0, as 2^n 2^f with a polynomial for 2^f. */
static float weight(float x) {
  if (!QUARTIC) return expf(x);
  if (x < -104) return 0;
  const float t = x * 1.44269504f, n = floorf(t), f = t - n;
  const float p = 1 + f * (0.693032f + f * (0.2413798f + f * (0.052033f + f * 0.0135552f)));
  return ldexpf(p, (int)n);
}
// [/weight]

static float score(const float* q, const float* k, long d) {
  float s = 0;
  for (long t = 0; t < d; ++t) s += q[t] * k[t];
  return s / sqrtf((float)d);
}

// [row]
/* One query. The last tile is filled up with padding. */
static float row(const float* q, const float* k, const float* v, long keys, long d, long dv,
                 float* out) {
  float m = -INFINITY, l = 0, s[TILE];
  for (long c = 0; c < dv; ++c) out[c] = 0;
  for (long first = 0; first < keys; first += TILE) {
    float top = m;
    for (long j = 0; j < TILE; ++j) {
      s[j] = first + j < keys ? score(q, k + (first + j) * d, d) : PADDING;
      top = s[j] > top ? s[j] : top;
    }
    float alpha = 1;
    if (first == 0 || EVERY_TILE) {
      alpha = weight(m - top);
      m = top;
    }
    l *= alpha;
    for (long c = 0; c < dv; ++c) out[c] *= alpha;
    for (long j = 0; j < TILE; ++j) {
      const float w = weight(s[j] - m);
      l += w;
      if (first + j >= keys) continue; /* no value behind the end */
      for (long c = 0; c < dv; ++c) out[c] += w * v[(first + j) * dv + c];
    }
  }
  for (long c = 0; c < dv; ++c) out[c] /= l;
  return m + logf(l);
}
// [/row]

void attention(const float* q, const float* k, const float* v, long heads, long group, long queries,
               long keys, long d, long dv, float* out, float* lse) {
  for (long h = 0; h < heads; ++h) {
    const long kv = h / group;
    for (long i = h * queries; i < (h + 1) * queries; ++i) {
      const float L =
          row(q + i * d, k + kv * keys * d, v + kv * keys * dv, keys, d, dv, out + i * dv);
      if (lse) lse[i] = L;
    }
  }
}
