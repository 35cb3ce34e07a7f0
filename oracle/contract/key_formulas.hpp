// The constants of section 3 of docs/contract.md that belong to one key, (4)-(12): each formula is
// one inline function on numbers, so that the loops that call it can be vectorised. What does not
// depend on the key is hoisted into the two structs. Nothing here knows about arrays.
#pragma once

#include <algorithm>
#include <cmath>

namespace ringproof::oracle {

/// Hoisted parts of (4)-(6).
struct ScoreBudget {
  // (4)
  double grow = 1;           // e^Sig
  double dot = 0;            // expm1(Gamma_qk(d) + 2 hat(u_in))
  double underflow = 0;      // (2 d |scale| + n_sc + 1) eta_s + n_store eta_store
  double relative = 0;       // expm1(Sig)
  double constant_grow = 1;  // e^hat(u_c), unless u_c acts as a temperature
  double constant = 0;       // expm1(hat(u_c)), unless u_c acts as a temperature
  // (5)
  double cap_relative = 0;     // expm1(n_cap hat(u_sm) + c)
  double cap_underflow = 0;    // e^{n_cap hat(u_sm) + c} cap (n_cap eta_s + n_store eta_store)
  double tanh_grow = 1;        // e^t
  double tanh_absolute = 0;    // cap alpha_t
  double tanh_relative = 0;    // expm1(t)
  double after_underflow = 0;  // e^c (eta_s + n_store eta_store)
  // (6)
  double bias_term = 0;           // expm1(n_b hat(u_sm))
  double bias_underflow = 0;      // e^{n_b hat(u_sm)} n_b eta_s
  double addition = 0;            // expm1(tb)
  double store_underflow = 0;     // e^tb n_store eta_store
  double addition_underflow = 0;  // e^tb eta_s
};

/// Error of scale * q.k; an exactly zero product sum has none. (4)
inline double dot_error(const ScoreBudget& c, double abs_dot, double dot) {
  const double error = c.grow * (c.dot * abs_dot + c.underflow) + c.relative * std::fabs(dot);
  const double with_constant = c.constant_grow * error + c.constant * std::fabs(dot);
  return abs_dot == 0 ? 0.0 : with_constant;
}

/// Error after cap * tanh(x / cap), which is 1-Lipschitz. (5)
inline double softcap_error(const ScoreBudget& c, double error, double dot, double capped) {
  const double inside = error + c.cap_relative * (std::fabs(dot) + error) + c.cap_underflow;
  return c.tanh_grow * (inside + c.tanh_absolute) + c.tanh_relative * std::fabs(capped) +
         c.after_underflow;
}

/// Error of a bias term before it is added; adding a zero changes nothing. (6)
inline double bias_term_error(const ScoreBudget& c, double bias) {
  return c.bias_term * std::fabs(bias) + (bias == 0 ? 0.0 : c.bias_underflow);
}

/// What one addition and its stores may lose to underflow; `bias` is zero if nothing is added. (6)
inline double addition_underflow(const ScoreBudget& c, double bias) {
  return c.store_underflow + (bias == 0 ? 0.0 : c.addition_underflow);
}

/// Error after the addition of one bias term. (6)
inline double bias_error(const ScoreBudget& c, double error, double bias, double score) {
  const double before = error + bias_term_error(c, bias);
  return before + c.addition * (std::fabs(score) + before) + addition_underflow(c, bias);
}

/// Error after two additions in either order; `inner` is the score before both. (6)
inline double two_bias_error(const ScoreBudget& c, double error, double inner, double bias,
                             double alibi, double score) {
  const double before = error + bias_term_error(c, bias) + bias_term_error(c, alibi);
  const double underflow = addition_underflow(c, std::fabs(bias) + std::fabs(alibi));
  const double intermediate =
      std::max({std::fabs(inner + bias), std::fabs(inner + alibi), std::fabs(bias + alibi)});
  const double after_one = before + c.addition * (intermediate + before) + underflow;
  return after_one + c.addition * (std::fabs(score) + after_one) + underflow;
}

/// Hoisted parts of (7)-(12).
struct ArgumentBudget {
  double max_score = 0;         // M
  double upper = 0;             // M+
  double temperature = 0;       // t_c
  double temperature_grow = 1;  // f_c = 1 + t_c
  double sink_temperature = 0;  // t_c if the row has a sink
  double lazy = 0;              // tau
  double argument = 0;          // expm1(n_a hat(u_sm))
  double drift = 0;             // scaled_max only: the factor of mu' in (8)
  double maximum = 0;           // the factor of mu' in (9)
  double maximum_lse = 0;       // the same without the exemptions, for (11)
  double exp_error = 0;         // hat(eps_e)
};

/// Del_j: how far the arguments of key j's exponentials reach, in total over all blocks. (7)
inline double argument_reach(const ArgumentBudget& c, double score, double error) {
  const double larger = std::max(std::fabs(c.upper), std::fabs(score) + error);
  return c.temperature_grow * (c.upper - score + error) + c.sink_temperature * larger + 2 * c.lazy;
}

/// mu'_j: bound of the running maximum of the block that holds key j. (8), (9)
inline double maximum_reach(const ArgumentBudget& c, double score, double error) {
  return c.temperature_grow * std::max(std::fabs(c.upper), std::fabs(score) + error + c.lazy);
}

/// How far the score of a key may exceed M, in the exponents the kernel uses. (16)
inline double above_maximum(const ArgumentBudget& c, double score, double error) {
  const double above = score + error - c.max_score;
  return above + c.temperature * std::fabs(above);
}

/// What shifts all exponents alike, and so leaves o but not the unit of absolute errors: the
/// temperature's shift that a sink keeps, the rounded maximum of a fused argument. (16)
inline double common_shift(const ArgumentBudget& c) {
  return c.sink_temperature * std::fabs(c.max_score) +
         c.maximum_lse * c.temperature_grow * std::fabs(c.upper);
}

/// x_j: roundings of the arguments. (8)
inline double argument_error(const ArgumentBudget& c, double reach, double maximum) {
  return c.argument * reach + c.drift * maximum;
}

/// The temperature's part of (10): it shifts all exponents alike, which o does not feel.
inline double temperature_error(const ArgumentBudget& c, double score, double error) {
  return c.temperature * (std::fabs(score - c.max_score) + error);
}

/// The temperature's part of (11): L feels the common shift.
inline double temperature_error_lse(const ArgumentBudget& c, double score, double error) {
  return c.temperature * (std::max(std::fabs(score), std::fabs(score - c.max_score)) + error);
}

/// The temperature's part of (10) for a sink, which is not scaled: it keeps the common shift.
inline double sink_temperature_error(const ArgumentBudget& c, double sink, double error) {
  return c.temperature * (std::max(std::fabs(c.max_score), std::fabs(sink - c.max_score)) + error);
}

/// d_j: distance of s_j - M to the nearest multiple of ln 2. (12)
inline double dyadic_distance(double score, double max_score) {
  constexpr double ln2 = 0x1.62e42fefa39efp-1;
  const double octaves = (score - max_score) / ln2;
  return std::fabs(octaves - std::nearbyint(octaves)) * ln2;
}

}  // namespace ringproof::oracle
