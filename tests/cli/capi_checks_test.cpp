// The C interface refuses what a caller can get wrong, by field, and hands on what it was given.
// That it compiles as C99 is capi_test.c's.
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "oracle/ringproof.h"
#include "tests/support/catch.hpp"

namespace {

/// One head of two queries and three keys whose scores are all zero: the answer is the mean of V.
struct Call {
  std::array<float, 4> q{}, out{3, 30, 3, 30};
  std::array<float, 6> k{}, v{1, 10, 3, 30, 5, 50};
  std::array<float, 2> lse{std::log(3.0f), std::log(3.0f)};
  std::array<std::int64_t, 4> q_shape{1, 1, 2, 2}, k_shape{1, 1, 3, 2};
  std::array<std::int64_t, 3> lse_shape{1, 1, 2};
  ringproof_problem problem{};
  ringproof_answer answer{};
  ringproof_options options{};
  ringproof_result result{};
  std::string message;

  Call(const Call&) = delete;  // the views point into it
  Call& operator=(const Call&) = delete;
  Call() {
    ringproof_problem_init(&problem);
    ringproof_answer_init(&answer);
    ringproof_options_init(&options);
    ringproof_result_init(&result);
    problem.q = ringproof_view(q.data(), RINGPROOF_F32, 4, q_shape.data());
    problem.k = ringproof_view(k.data(), RINGPROOF_F32, 4, k_shape.data());
    problem.v = ringproof_view(v.data(), RINGPROOF_F32, 4, k_shape.data());
    answer.out = ringproof_view(out.data(), RINGPROOF_F32, 4, q_shape.data());
    answer.lse = ringproof_view(lse.data(), RINGPROOF_F32, 3, lse_shape.data());
  }
  int check() {
    std::array<char, 4096> text{};
    const int status =
        ringproof_check(&problem, &answer, "fp32", &options, &result, text.data(), text.size());
    message = text.data();
    return status;
  }
  /// True if the call is refused as bad input with these words in the message.
  bool refused(const std::string& words) {
    const int status = check();
    INFO(message);
    CHECK(status == RINGPROOF_BAD_INPUT);
    CHECK(message.find(words) != std::string::npos);
    return status == RINGPROOF_BAD_INPUT && message.find(words) != std::string::npos;
  }
};

}  // namespace

TEST_CASE("a right answer passes by the C interface and a wrong one is refused") {
  Call call;
  REQUIRE(call.check() == RINGPROOF_OK);
  CHECK(call.result.verdict == RINGPROOF_PASS);
  CHECK(call.result.out.verdict == RINGPROOF_PASS);
  call.out[1] = 31;
  REQUIRE(call.check() == RINGPROOF_OK);
  CHECK(call.result.verdict == RINGPROOF_FAIL);
  CHECK(call.result.out.verdict == RINGPROOF_FAIL);
  CHECK(call.result.lse.verdict == RINGPROOF_PASS);
}

TEST_CASE("structs that were never initialised and null pointers are bad input") {
  Call call;
  call.options.struct_size = 4;
  CHECK(call.refused("options: struct_size is 4"));
  call.problem.struct_size = 0;
  CHECK(call.refused("problem: struct_size is 0"));
  Call other;
  CHECK(ringproof_check(nullptr, &other.answer, "fp32", nullptr, &other.result, nullptr, 0) ==
        RINGPROOF_BAD_INPUT);
  CHECK(ringproof_check(&other.problem, nullptr, "fp32", nullptr, &other.result, nullptr, 0) ==
        RINGPROOF_BAD_INPUT);
  CHECK(ringproof_check(&other.problem, &other.answer, nullptr, nullptr, &other.result, nullptr,
                        0) == RINGPROOF_BAD_INPUT);
}

TEST_CASE("tensors of impossible types and sizes are bad input") {
  Call call;
  call.problem.q.dtype.lanes = 2;
  CHECK(call.refused("lanes 2"));
  call.problem.q.dtype.lanes = 1;
  for (const int axes : {-1, 5}) {
    call.problem.q.ndim = axes;
    CHECK(call.refused("0 to 4 axes"));
  }
  call.problem.q.ndim = 4;
  call.k_shape[2] = -3;
  CHECK(call.refused("impossible size -3"));
  const std::array<std::int64_t, 4> huge{std::int64_t{1} << 40, std::int64_t{1} << 40, 3, 2};
  call.problem.k.shape = huge.data();
  CHECK(call.refused("axis 1 has the impossible size"));  // as many elements as no tensor has
}

TEST_CASE("choices of the spec are checked, and each has its meaning") {
  Call call;
  call.problem.causal = 3;
  CHECK(call.refused("causal is 3"));
  call.problem.causal = RINGPROOF_CAUSAL_NONE;
  call.problem.layout = -1;
  CHECK(call.refused("layout is -1"));
  call.problem.layout = RINGPROOF_BHND;
  call.problem.lse_base = RINGPROOF_LSE_BASE_E;
  REQUIRE(call.check() == RINGPROOF_OK);
  CHECK(call.result.lse.verdict == RINGPROOF_PASS);
}

TEST_CASE("a scale counts if the caller says that there is one") {
  Call call;  // scores below 2^-50, as good as equal ones
  call.q = {1, 2, 3, 4};
  call.k = {5, 6, 7, 8, 9, 10};
  call.problem.scale = 0x1p-60;
  call.problem.has_scale = 1;
  REQUIRE(call.check() == RINGPROOF_OK);
  CHECK(call.result.verdict == RINGPROOF_PASS);
  call.problem.has_scale = 0;
  REQUIRE(call.check() == RINGPROOF_OK);
  CHECK(call.result.verdict == RINGPROOF_FAIL);
}

TEST_CASE("options are checked, each by its name") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Call call;
  call.options.threads = 1025;
  CHECK(call.refused("threads"));
  call.options.threads = -1;
  CHECK(call.refused("threads"));
  call.options.threads = 0;
  call.options.rows = -1;
  CHECK(call.refused("rows"));
  call.options.rows = 0;
  call.options.power = nan;
  CHECK(call.refused("power"));
  call.options.power = 0;
  for (const int digits : {2, 63, 65537}) {
    call.options.precision = digits;
    CHECK(call.refused("precision"));
  }
  call.options.precision = 64;
  CHECK(call.check() == RINGPROOF_OK);
}

TEST_CASE("strides of the caller are used") {
  Call call;
  std::array<float, 6> transposed{1, 3, 5, 10, 30, 50};
  std::array<std::int64_t, 4> strides{6, 6, 1, 3};
  call.problem.v = ringproof_view(transposed.data(), RINGPROOF_F32, 4, call.k_shape.data());
  call.problem.v.strides = strides.data();
  REQUIRE(call.check() == RINGPROOF_OK);
  CHECK(call.result.verdict == RINGPROOF_PASS);
}

TEST_CASE("a message is cut to its buffer, and a shorter result is not written beyond its size") {
  Call call;
  std::array<char, 8> small;
  small.fill('x');
  REQUIRE(ringproof_check(&call.problem, &call.answer, "fp32", nullptr, &call.result, small.data(),
                          5) == RINGPROOF_OK);
  CHECK(std::string(small.data()) == "PASS");
  CHECK(small[5] == 'x');
  Call older;
  const auto size = static_cast<std::uint32_t>(offsetof(ringproof_result, dq));
  std::memset(&older.result, 0x5a, sizeof older.result);
  older.result.struct_size = size;
  REQUIRE(older.check() == RINGPROOF_OK);
  const auto* bytes = reinterpret_cast<const unsigned char*>(&older.result);
  bool untouched = true;
  for (std::size_t n = size; n < sizeof older.result; ++n)
    untouched = untouched && bytes[n] == 0x5a;
  CHECK(untouched);
}

TEST_CASE("intervals of the truth hold the answer between their two ends") {
  Call call;
  call.v[0] = 0.1f;
  std::vector<double> out_lo(4), out_hi(4), lse_lo(2), lse_hi(2);
  REQUIRE(ringproof_truth(&call.problem, nullptr, out_lo.data(), out_hi.data(), lse_lo.data(),
                          lse_hi.data(), nullptr, 0) == RINGPROOF_OK);
  CHECK(out_lo[0] < out_hi[0]);
  CHECK(out_hi[0] - out_lo[0] < 0x1p-40);
  CHECK(lse_lo[0] < lse_hi[0]);
  CHECK(lse_lo[0] <= std::log(3.0));
  CHECK(std::log(3.0) <= lse_hi[0]);
}
