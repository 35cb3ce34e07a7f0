/* q [heads, queries, d], k and v [heads / group, keys, d or dv]; lse may be NULL. */
void attention(const float* q, const float* k, const float* v, long heads, long group, long queries,
               long keys, long d, long dv, float* out, float* lse);
