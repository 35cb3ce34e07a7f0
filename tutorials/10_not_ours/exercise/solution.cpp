// Exercise 10: put a kernel under the judge. The kernel below is somebody's, in C: fp32, values as
// wide as keys, and it can be causal, counted from the top left. Write what stands between it
// and the suite: a function that hands it the problems it has, and refuses all others. Everything
// between the marks is yours; the rest is the check, which asks the judge and not a tolerance.
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "oracle/ringproof.h"
#include "tutorials/support/check.hpp"

using ringproof::tutorials::Check;

/// q and out [heads, queries, d]; k and v [heads / group, keys, d]. Query i sees keys 0 to i if
/// `causal`.
void attention(const float* q, const float* k, const float* v, long heads, long group, long queries,
               long keys, long d, bool causal, float* out) {
  for (long row = 0; row < heads * queries; ++row) {
    const long i = row % queries, first = row / queries / group * keys;
    float m = -INFINITY, l = 0;
    for (long c = 0; c < d; ++c) out[row * d + c] = 0;
    for (long j = 0; j < keys && (!causal || j <= i); ++j) {
      float s = 0;
      for (long t = 0; t < d; ++t) s += q[row * d + t] * k[(first + j) * d + t];
      s *= 1 / std::sqrt(float(d));
      const float top = s > m ? s : m, alpha = std::exp(m - top), w = std::exp(s - top);
      l = alpha * l + w;
      for (long c = 0; c < d; ++c) {
        out[row * d + c] = alpha * out[row * d + c] + w * v[(first + j) * d + c];
      }
      m = top;
    }
    for (long c = 0; c < d; ++c) out[row * d + c] /= l;
  }
}

/// What `ringproof suite --so` calls: 0 if answer->out was written, anything else if the kernel
/// does not have this problem. Shapes are q [B, H, Nq, D], k [B, Hkv, Nk, D], v [B, Hkv, Nk, Dv].
/// ringproof_is_plain() (oracle/ringproof.h) knows every feature there is; it refuses causal
/// problems, which this kernel has.
int candidate(const ringproof_problem* problem, ringproof_answer* answer) {
  // [answer]
  //? // Your turn. Which problems are left without the causal mask? Batches are heads, too.
  //? (void)problem, (void)answer, (void)attention;
  //? return 1;
  ringproof_problem without_mask = *problem;
  const bool causal = problem->causal == RINGPROOF_CAUSAL_TOP_LEFT;
  if (causal) without_mask.causal = RINGPROOF_CAUSAL_NONE;
  if (!ringproof_is_plain(&without_mask, RINGPROOF_F32)) return 1;
  const int64_t *q = problem->q.shape, *k = problem->k.shape;
  if (problem->v.shape[3] != q[3] || answer->lse.data != nullptr) return 1;
  attention(static_cast<const float*>(problem->q.data), static_cast<const float*>(problem->k.data),
            static_cast<const float*>(problem->v.data), q[0] * q[1], q[1] / k[1], q[2], k[2], q[3],
            causal, static_cast<float*>(answer->out.data));
  return 0;
  // [/answer]
}

/// A problem with numbers, changed by the caller, and what became of it.
struct Asked {
  ringproof_problem problem;
  std::array<int64_t, 4> q_shape, k_shape, v_shape, out_shape;
  std::vector<float> q, k, v, out, lse;

  Asked(int64_t B, int64_t H, int64_t Hkv, int64_t Nq, int64_t Nk, int64_t D, int64_t Dv)
      : q_shape{B, H, Nq, D},
        k_shape{B, Hkv, Nk, D},
        v_shape{B, Hkv, Nk, Dv},
        out_shape{B, H, Nq, Dv} {
    const auto numbers = [](const std::array<int64_t, 4>& shape, int64_t step) {
      std::vector<float> result;
      for (int64_t n = 0; n < shape[0] * shape[1] * shape[2] * shape[3]; ++n) {
        result.push_back(float(n * step % 17 - 8) / 4);
      }
      return result;
    };
    q = numbers(q_shape, 5), k = numbers(k_shape, 7), v = numbers(v_shape, 3);
    out.assign(std::size_t(B * H * Nq * Dv), NAN);
    ringproof_problem_init(&problem);
    problem.q = ringproof_view(q.data(), RINGPROOF_F32, 4, q_shape.data());
    problem.k = ringproof_view(k.data(), RINGPROOF_F32, 4, k_shape.data());
    problem.v = ringproof_view(v.data(), RINGPROOF_F32, 4, v_shape.data());
  }
  Asked(const Asked&) = delete;

  /// "PASS" or another word of the judge, or "refused".
  std::string verdict() {
    ringproof_answer answer;
    ringproof_answer_init(&answer);
    answer.out = ringproof_view(out.data(), RINGPROOF_F32, 4, out_shape.data());
    if (candidate(&problem, &answer) != 0) return "refused";
    ringproof_result result;
    ringproof_result_init(&result);
    char message[4096];
    if (ringproof_check(&problem, &answer, "fp32", nullptr, &result, message, sizeof message) !=
        0) {
      return message;
    }
    return result.verdict == RINGPROOF_PASS ? "PASS" : message;
  }
};

int main() {
  Check check("10");
  const auto expect = [&](const std::string& what, Asked& asked, const std::string& verdict) {
    check.equal(what, asked.verdict(), verdict);
  };
  Asked plain(1, 1, 1, 5, 7, 8, 8), batches(2, 3, 3, 4, 6, 4, 4), grouped(2, 6, 2, 3, 5, 4, 4);
  expect("one head", plain, "PASS");
  expect("two batches of three heads", batches, "PASS");
  expect("six query heads on two heads of keys", grouped, "PASS");

  Asked causal(2, 4, 2, 9, 9, 4, 4), aligned(1, 1, 1, 3, 9, 4, 4), wide(1, 1, 1, 5, 7, 8, 4);
  causal.problem.causal = RINGPROOF_CAUSAL_TOP_LEFT;
  aligned.problem.causal = RINGPROOF_CAUSAL_BOTTOM_RIGHT;
  expect("causal, counted from the top left", causal, "PASS");
  expect("causal, counted from the bottom right", aligned, "refused");
  expect("values of another width", wide, "refused");

  Asked scaled(1, 1, 1, 5, 7, 8, 8), capped(1, 1, 1, 5, 7, 8, 8), window(1, 1, 1, 5, 7, 8, 8);
  scaled.problem.has_scale = 1, scaled.problem.scale = 1;
  capped.problem.softcap = 20;
  window.problem.causal = RINGPROOF_CAUSAL_TOP_LEFT, window.problem.window_left = 2;
  expect("a scale of its own", scaled, "refused");
  expect("a softcap", capped, "refused");
  expect("causal, with a window", window, "refused");

  Asked sixteen(1, 1, 1, 5, 7, 8, 8);
  sixteen.problem.q.dtype = {4, 16, 1};  // bfloat16
  expect("numbers of another type", sixteen, "refused");
  return check.finish();
}
