// exp in double-double (Theorem 13 of docs/double_double.md): x = k ln2/64 + R, |R| <= ln2/128,
// exp(x) = 2^(k/64) exp(R), the first factor from a table of 64, the second a polynomial of degree
// 11. Included once for every target.
#include "oracle/truth/double_double-inl.hpp"

#if defined(RINGPROOF_EXP_DD_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGPROOF_EXP_DD_INL
#undef RINGPROOF_EXP_DD_INL
#else
#define RINGPROOF_EXP_DD_INL
#endif

#include "oracle/truth/exp_table.hpp"

HWY_BEFORE_NAMESPACE();
namespace ringproof {
namespace oracle {
namespace HWY_NAMESPACE {

/// R = hi + lo and the integer k, as a number and in the low bits of `biased`.
struct Reduced {
  Pair remainder;
  Vec biased;
};

/// Lemma 12.1. Precondition: |x.lo| <= 2^-53 |x.hi|, |x.hi| <= 700.
HWY_INLINE Reduced reduce(Pair x) {
  // Adding 1.5 2^52 rounds to an integer and leaves it in the low bits of the sum.
  const Vec to_integer = broadcast(0x1.8p52);
  const Vec biased = hn::Add(hn::Mul(x.hi, broadcast(kInverseLn2Over64)), to_integer);
  const Vec k = hn::Sub(biased, to_integer);
  const Vec first = fused_from(x.hi, k, broadcast(kLn2Over64[0]));            // exact
  const Pair second = two_sum(first, hn::Mul(k, broadcast(-kLn2Over64[1])));  // exact
  const Vec third = fused_from(x.lo, k, broadcast(kLn2Over64[2]));
  return {two_sum(second.hi, hn::Add(second.lo, third)), biased};
}

/// The terms of exp(R) / R^5 from 1/5! on, for |R| <= 0.00542: all but the first in plain binary64.
HWY_INLINE Pair exp_tail(Pair r) {
  Vec tail = broadcast(kInverseFactorial[11]);
  for (int n = 10; n >= 6; --n) {
    tail = fused_add(tail, r.hi, broadcast(kInverseFactorial[n]));
  }
  const Pair sum = fast_two_sum(broadcast(kInverseFactorial[5]), hn::Mul(r.hi, tail));
  return {sum.hi, hn::Add(sum.lo, broadcast(kInverseFactorialLow[5]))};
}

/// One step of Horner's rule in double-double: 1/degree! + R y (Lemma 12.2).
HWY_INLINE Pair horner(Pair r, Pair y, int degree) {
  const Pair product = two_product(r.hi, y.hi);
  const Vec low = fused_add(r.lo, y.hi, fused_add(r.hi, y.lo, product.lo));
  const Pair sum = fast_two_sum(broadcast(kInverseFactorial[degree]), product.hi);
  if (degree < 3) return {sum.hi, hn::Add(sum.lo, low)};  // 1/2!, 1/1!, 1/0! have no low word
  return {sum.hi, hn::Add(sum.lo, hn::Add(low, broadcast(kInverseFactorialLow[degree])))};
}

/// The entries of the table at `index`, one for each lane.
template <class Integers>
HWY_INLINE Pair table_entries(const ExpTable& table, Integers index) {
#if HWY_TARGET == HWY_AVX2
  // Gathers are slow on many processors: loads of both words of an entry, then a transposition.
  alignas(64) std::int64_t at[kLanes];
  hn::Store(index, hn::RebindToSigned<Tag>(), at);
  const hn::Half<Tag> pair;
  const auto entry = [&](int lane) HWY_ATTR { return hn::Load(pair, table.entry[at[lane]]); };
  const Vec even = hn::Combine(Tag(), entry(2), entry(0));
  const Vec odd = hn::Combine(Tag(), entry(3), entry(1));
  return {hn::InterleaveLower(Tag(), even, odd), hn::InterleaveUpper(Tag(), even, odd)};
#else
  const auto place = hn::Add(index, index);
  return {hn::GatherIndex(Tag(), table.entry[0], place),
          hn::GatherIndex(Tag(), table.entry[0] + 1, place)};
#endif
}

/// exp(R) 2^(k/64): the table, and 2^floor(k / 64) from the bits above the table index.
HWY_INLINE Pair scale_by_power(const ExpTable& table, Pair y, Vec biased) {
  const hn::RebindToSigned<Tag> integers;
  const hn::RebindToUnsigned<Tag> bits;
  const Pair power =
      table_entries(table, hn::And(hn::BitCast(integers, biased), hn::Set(integers, 63)));
  const Pair product = two_product(power.hi, y.hi);
  const Vec low = fused_add(power.lo, y.hi, fused_add(power.hi, y.lo, product.lo));
  const Pair result = fast_two_sum(product.hi, low);
  const auto exponent = hn::ShiftRight<6>(hn::BitCast(bits, biased));
  const Vec scale =
      hn::BitCast(Tag(), hn::ShiftLeft<52>(hn::Add(exponent, hn::Set(bits, 1023ULL))));
  return {hn::Mul(result.hi, scale), hn::Mul(result.lo, scale)};
}

/// Replaces each x by exp(x). Precondition: |x.lo| <= 2^-53 |x.hi|, -691 <= x.hi <= 1. The caller
/// has to normalise x: with a larger low word the stated error would not hold.
/// Several vectors go through every stage together, because one alone only waits for itself.
template <int kCount>
HWY_INLINE void exp_dd(const ExpTable& table, Pair (&x)[kCount]) {
  Reduced reduced[kCount];
  for (int n = 0; n < kCount; ++n) reduced[n] = reduce(x[n]);
  for (int n = 0; n < kCount; ++n) x[n] = exp_tail(reduced[n].remainder);
  for (int degree = 4; degree >= 0; --degree) {
    for (int n = 0; n < kCount; ++n) x[n] = horner(reduced[n].remainder, x[n], degree);
  }
  for (int n = 0; n < kCount; ++n) x[n] = scale_by_power(table, x[n], reduced[n].biased);
}
HWY_INLINE Pair exp_dd(const ExpTable& table, Pair x) {
  Pair one[1] = {x};
  exp_dd(table, one);
  return one[0];
}

/// |tanh| of a nonnegative number y = |s / cap| (Lemma 9): (1 - E) / (1 + E), E = exp(-2 y).
HWY_INLINE Pair tanh_of_magnitude(const ExpTable& table, Pair y) {
  const Mask large = hn::Gt(y.hi, broadcast(345));  // exp(-690) is far below the stated error
  const Vec minus_two = broadcast(-2);
  const Pair e = exp_dd(table, {hn::IfThenElse(large, broadcast(-690), hn::Mul(minus_two, y.hi)),
                                hn::IfThenZeroElse(large, hn::Mul(minus_two, y.lo))});
  const Vec one = broadcast(1);
  const Pair minus = two_sum(one, hn::Neg(e.hi));
  const Pair plus = two_sum(one, e.hi);
  return divide(two_sum(minus.hi, hn::Sub(minus.lo, e.lo)),
                fast_two_sum(plus.hi, hn::Add(plus.lo, e.lo)));
}

}  // namespace HWY_NAMESPACE
}  // namespace oracle
}  // namespace ringproof
HWY_AFTER_NAMESPACE();

#endif  // per target
