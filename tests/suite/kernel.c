/* A plain attention kernel in C for the tests of the suite: fp32, no mask, no addition. Compiled
 * once as it is, and once for each way in which a kernel can misbehave (CMakeLists.txt). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "oracle/ringproof.h"

enum { NONE, CRASH, HANG, EXIT, WRITES_INPUT, WRITES_BESIDE, LEAVES_A_ROW, DROPS_LAST_KEY, RANDOM };

/* Only the plain problem in C order, with as many queries as keys or not. */
static int is_plain(const ringproof_problem* p) {
  const int masks = p->mask.data || p->bias.data || p->alibi_slopes.data || p->sinks.data ||
                    p->key_lengths.data || p->cu_seqlens_q.data || p->positions_q.data ||
                    p->documents_q.data || p->window_left >= 0 || p->window_right >= 0;
  const int factors = p->q_scale.data || p->k_scale.data || p->v_scale.data;
  return !masks && !factors && p->causal == RINGPROOF_CAUSAL_NONE && p->softcap == 0 &&
         !p->has_scale && !p->dout.data && !p->q.strides && p->layout == RINGPROOF_BHND &&
         p->ranks <= 1 && p->q.dtype.code == 2 && p->q.dtype.bits == 32 && p->k.shape[2] > 0;
}

static void row(const float* q, const float* k, const float* v, int64_t keys, int64_t d, int64_t dv,
                float* out, float* lse) { /* [D], [Nk, D], [Nk, Dv], [Dv], [1] */
  float m = -INFINITY, l = 0;
  for (int64_t c = 0; c < dv; ++c) out[c] = 0;
  for (int64_t j = 0; j < keys; ++j) {
    float s = 0;
    for (int64_t t = 0; t < d; ++t) s += q[t] * k[j * d + t];
    s *= 1 / sqrtf((float)d);
    const float larger = s > m ? s : m, alpha = expf(m - larger), weight = expf(s - larger);
    l = alpha * l + weight;
    for (int64_t c = 0; c < dv; ++c) out[c] = alpha * out[c] + weight * v[j * dv + c];
    m = larger;
  }
  for (int64_t c = 0; c < dv; ++c) out[c] /= l;
  if (lse) *lse = m + logf(l);
}

int ringproof_candidate_v1(const ringproof_problem* p, ringproof_answer* answer) {
  if (!is_plain(p)) return 1;
  const int64_t batches = p->q.shape[0], heads = p->q.shape[1], kv_heads = p->k.shape[1];
  const int64_t queries = p->q.shape[2], d = p->q.shape[3], dv = p->v.shape[3];
  const int64_t keys = p->k.shape[2], group = heads / kv_heads;
  const int big = queries > 3 && keys > 3 && heads > 1; /* not the problems of the probe */
  float* out = answer->out.data;
  float* lse = answer->lse.data;
  if (FAULT == CRASH && big) abort();
  if (FAULT == EXIT && big) exit(0);
  if (FAULT == HANG && big && getenv("RINGPROOF_MARK")) { /* says that it hangs now */
    fclose(fopen(getenv("RINGPROOF_MARK"), "w"));
  }
  while (FAULT == HANG && big) pause();
  for (int64_t h = 0; h < batches * heads; ++h) {
    const int64_t kv = h / heads * kv_heads + h % heads / group;
    for (int64_t i = 0; i < queries; ++i) {
      const int64_t n = h * queries + i;
      if (FAULT == LEAVES_A_ROW && big && n == 3) continue;
      row((const float*)p->q.data + n * d, (const float*)p->k.data + kv * keys * d,
          (const float*)p->v.data + kv * keys * dv, keys - (FAULT == DROPS_LAST_KEY && big), d, dv,
          out + n * dv, lse ? lse + n : NULL);
    }
  }
  if (FAULT == WRITES_INPUT && big) ((float*)p->k.data)[0] += 1;
  if (FAULT == WRITES_BESIDE && big) out[batches * heads * queries * dv] = 0;
  if (FAULT == RANDOM && big) out[0] = nextafterf(out[0], rand() % 2 ? 100.0f : -100.0f);
  return 0;
}
