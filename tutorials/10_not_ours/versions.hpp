// The stranger's kernel in its four versions, each compiled under a name of its own.
#pragma once

extern "C" {
#define RINGPROOF_VERSION_OF_KERNEL(name)                                                         \
  void name(const float* q, const float* k, const float* v, long heads, long group, long queries, \
            long keys, long d, long dv, float* out, float* lse)
RINGPROOF_VERSION_OF_KERNEL(attention_1);
RINGPROOF_VERSION_OF_KERNEL(attention_2);
RINGPROOF_VERSION_OF_KERNEL(attention_3);
RINGPROOF_VERSION_OF_KERNEL(attention_4);
#undef RINGPROOF_VERSION_OF_KERNEL
}
