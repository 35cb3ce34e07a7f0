/* q [heads, queries, d], k and v [heads / group, keys, d or dv]; out [heads, queries, dv],
 * lse [heads, queries]. Query head h reads head h / group of k and v. No mask. */
void attention(const float* q, const float* k, const float* v, long heads, long group, long queries,
               long keys, long d, long dv, float* out, float* lse);
