// The self-test passes here, and refuses when the floating-point environment is not the proofs'
// one.
#include <cfenv>

#include "oracle/truth/truth.hpp"
#include "tests/support/catch.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace ringproof::test {
namespace {

TEST_CASE("the arithmetic self-test accepts this process on every SIMD target") {
  for (const std::string& target : oracle::simd_targets()) {
    INFO(target);
    oracle::force_simd_target(target);
    CHECK_NOTHROW(oracle::arithmetic_self_test());
  }
  oracle::force_simd_target("");
}

/// What the self-test says in the changed environment; empty if it accepts it.
template <class Change, class Restore>
std::string refusal(Change change, Restore restore) {
  std::string text;
  change();
  try {
    oracle::arithmetic_self_test();
  } catch (const std::runtime_error& error) {
    text = error.what();
  }
  restore();
  return text;
}

TEST_CASE("the arithmetic self-test refuses every other rounding mode") {
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    const std::string text =
        refusal([&] { std::fesetround(mode); }, [] { std::fesetround(FE_TONEAREST); });
    CHECK(text.find("rounding mode") != std::string::npos);
  }
  CHECK_NOTHROW(oracle::arithmetic_self_test());
}

#if defined(__SSE2__)
TEST_CASE("the arithmetic self-test refuses flush to zero and denormals read as zero") {
  const unsigned usual = _mm_getcsr();
  const auto restore = [&] { _mm_setcsr(usual); };
  CHECK(refusal([&] { _mm_setcsr(usual | 0x8000U); }, restore).find("flushed") !=
        std::string::npos);
  CHECK(refusal([&] { _mm_setcsr(usual | 0x0040U); }, restore).find("read as zero") !=
        std::string::npos);
  CHECK_NOTHROW(oracle::arithmetic_self_test());
}
#endif

}  // namespace
}  // namespace ringproof::test
