// The kernels of the vector tile for every SIMD target, and their dispatch (simd_kernels.hpp).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mpi/simd_kernels.cpp"
// Vectors of unknown size cannot be array elements; AVX3_DL adds nothing that floats could use.
#define HWY_DISABLED_TARGETS \
  (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV | HWY_AVX3_DL)
#include "hwy/foreach_target.h"
//
#include <bit>
#include <limits>

#include "mpi/simd_product-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace ringproof {
namespace mpi {
namespace HWY_NAMESPACE {

void Multiply(const Product& product, Into into, const float* alpha) {
  if (into == Into::replace) multiply_into<Into::replace>(product, alpha);
  if (into == Into::add) multiply_into<Into::add>(product, alpha);
  if (into == Into::rescale) multiply_into<Into::rescale>(product, alpha);
}

constexpr int kAtOnce = 3;  // vectors of a row: a divisor of 48 lanes by any power of two

/// New maxima, the factors alpha of the old sums, and the weights in place of the scores; their
/// block sum starts at zero.
void WeighTile(const TileState& state, float* x, Index keys, float factor, float* alpha) {
  const Floats d;
  const Vec c = hn::Set(d, factor), none = hn::Set(d, -std::numeric_limits<float>::infinity());
  for (Index lane = 0; lane < kQueries; lane += kAtOnce * kLanes) {
    Vec old[kAtOnce], m[kAtOnce], safe[kAtOnce], shift[kAtOnce], l[kAtOnce], a[kAtOnce];
    for (int n = 0; n < kAtOnce; ++n) {
      m[n] = old[n] = hn::Load(d, state.m + lane + n * kLanes);
    }
    for (Index j = 0; j < keys; ++j) {
      const float* row = x + j * kQueries + lane;
      for (int n = 0; n < kAtOnce; ++n) m[n] = hn::Max(m[n], hn::Load(d, row + n * kLanes));
    }
    for (int n = 0; n < kAtOnce; ++n) {
      // Nothing seen yet: any finite shift will do, every weight is 2^(-infinity) = 0.
      safe[n] = hn::IfThenZeroElse(hn::Eq(m[n], none), m[n]);
      shift[n] = hn::Mul(safe[n], c);
      l[n] = hn::Zero(d);
      a[n] = hn::Mul(hn::Sub(old[n], safe[n]), c);
    }
    for (Index j = 0; j < keys; ++j) {
      float* row = x + j * kQueries + lane;
      Vec weight[kAtOnce];
      for (int n = 0; n < kAtOnce; ++n) {
        weight[n] = exponent_of(hn::Load(d, row + n * kLanes), safe[n], c, shift[n]);
      }
      exp2_of(weight);
      for (int n = 0; n < kAtOnce; ++n) {
        hn::Store(weight[n], d, row + n * kLanes);
        l[n] = hn::Add(l[n], weight[n]);
      }
    }
    exp2_of(a);
    for (int n = 0; n < kAtOnce; ++n) {
      const Index place = lane + n * kLanes;
      hn::Store(a[n], d, alpha + place);
      hn::Store(hn::MulAdd(a[n], hn::Load(d, state.l + place), l[n]), d, state.l + place);
      hn::Store(m[n], d, state.m + place);
    }
  }
}

void AbsorbTile(const TileState& state, float* x, Index keys, float factor, const float* values,
                Index value_dim) {
  HWY_ALIGN float alpha[kQueries];
  WeighTile(state, x, keys, factor, alpha);
  multiply_into<Into::rescale>({.a = {values, 1, value_dim},
                                .b = {x, kQueries},
                                .c = {state.o, kQueries},
                                .rows = value_dim,
                                .depth = keys,
                                .columns = kQueries},
                               alpha);
}

void ProbabilitiesTile(float* x, Index keys, float factor, const float* shift) {
  const Floats d;
  const Vec c = hn::Set(d, factor);
  for (Index j = 0; j < keys; ++j) {
    for (Index lane = 0; lane < kQueries; lane += kAtOnce * kLanes) {
      float* row = x + j * kQueries + lane;
      Vec power[kAtOnce];
      for (int n = 0; n < kAtOnce; ++n) {
        power[n] =
            hn::MulSub(hn::Load(d, row + n * kLanes), c, hn::Load(d, shift + lane + n * kLanes));
      }
      exp2_of(power);
      for (int n = 0; n < kAtOnce; ++n) hn::Store(power[n], d, row + n * kLanes);
    }
  }
}

void ScoreGradientsTile(float* dP, const float* P, Index keys, const float* delta) {
  const Floats d;
  for (Index j = 0; j < keys; ++j) {
    for (Index lane = 0; lane < kQueries; lane += kLanes) {
      const Index place = j * kQueries + lane;
      const Vec difference = hn::Sub(hn::Load(d, dP + place), hn::Load(d, delta + lane));
      const Vec p = hn::Load(d, P + place);
      // dP of a pair that is not seen may be anything, also no number.
      const Vec dS = hn::IfThenZeroElse(hn::Eq(p, hn::Zero(d)), hn::Mul(p, difference));
      hn::Store(dS, d, dP + place);
    }
  }
}

float float_of_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// The digits of a binary16 number, read as a float, lack 112 in their exponent; multiplying it in
/// mends subnormal numbers, too. Infinity and NaN have an exponent of their own.
float float_of_f16(std::uint16_t bits) {
  const std::uint32_t digits = static_cast<std::uint32_t>(bits & 0x7fffu) << 13;
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t finite =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(digits) * 0x1p112f);
  const std::uint32_t special = digits | 0x7f800000u;
  return std::bit_cast<float>(sign | (digits < 0x0f800000u ? finite : special));
}

void Widen(Sixteen type, const std::uint16_t* from, Index count, float* to) {
  if (type == Sixteen::bf16) {
    for (Index n = 0; n < count; ++n) to[n] = float_of_bf16(from[n]);
  } else {
    for (Index n = 0; n < count; ++n) to[n] = float_of_f16(from[n]);
  }
}

const char* SimdTarget() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace mpi
}  // namespace ringproof
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ringproof::mpi {

HWY_EXPORT(Multiply);
HWY_EXPORT(AbsorbTile);
HWY_EXPORT(ProbabilitiesTile);
HWY_EXPORT(ScoreGradientsTile);
HWY_EXPORT(Widen);
HWY_EXPORT(SimdTarget);

void multiply(const Product& product, Into into, const float* alpha) {
  HWY_DYNAMIC_DISPATCH(Multiply)(product, into, alpha);
}
void absorb_tile(const TileState& state, float* x, Index keys, float factor, const float* values,
                 Index value_dim) {
  HWY_DYNAMIC_DISPATCH(AbsorbTile)(state, x, keys, factor, values, value_dim);
}
void probabilities_tile(float* x, Index keys, float factor, const float* shift) {
  HWY_DYNAMIC_DISPATCH(ProbabilitiesTile)(x, keys, factor, shift);
}
void score_gradients_tile(float* dP, const float* P, Index keys, const float* delta) {
  HWY_DYNAMIC_DISPATCH(ScoreGradientsTile)(dP, P, keys, delta);
}
void widen(Sixteen type, const std::uint16_t* from, Index count, float* to) {
  HWY_DYNAMIC_DISPATCH(Widen)(type, from, count, to);
}
const char* simd_target() { return HWY_DYNAMIC_DISPATCH(SimdTarget)(); }

}  // namespace ringproof::mpi
#endif
