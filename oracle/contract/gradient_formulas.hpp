// T2 for one pair of query and key: (27a)-(33) of docs/contract.md, each formula one inline
// function on numbers, so that the loops that call it can be vectorised. What does not depend on
// the key is hoisted into GradientBudget. Nothing here knows about arrays.
#pragma once

#include <algorithm>
#include <cmath>

namespace ringproof::oracle {

/// Hoisted parts for one row.
struct GradientBudget {
  // dP = dO.v
  double dp_dot = 0;       // e^Sd expm1(Gd)
  double dp_relative = 0;  // expm1(Sd)
  double dp_underflow =
      0;                 // e^Sd { e^Gd eta_dp (2 dv + what is read as zero) + n_store eta_store }
  double dp_radius = 0;  // of the truth
  // f, the derivative of the softcap
  double cap = 0;             // 0: none
  double cap_square = 0;      // e^{4 hat(u_sm)}
  double cap_relative = 0;    // expm1(4 hat(u_sm))
  double cap_difference = 0;  // expm1(hat(u_sm))
  double cap_underflow = 0;   // 2 e^{hat u_sm} eta_dp
  // t = dP - D + dL
  double delta = 0;                                                // D - dL
  double delta_error = 0;                                          // ED
  double delta_radius = 0;                                         // of the truth
  double delta_before = 0, delta_growth = 0, delta_underflow = 0;  // ED before the rounding of
                                                                   // D - dL; expm1(us), eta_D
  // dS = P t f
  double common = 0;           // Lam'
  double product = 0;          // Th
  double grow_product = 1;     // e^Th
  double underflow = 0;        // eta_dp
  double cast_underflow = 0;   // eta_S, for the cast and every store of dS
  double scale_underflow = 0;  // n_g max(eta_dp, eta_g)
  // dq
  double after_query = 0;       // A_q
  double grow_after_query = 1;  // e^A_q
  double scale = 0;             // |sigma|
  double scale_or_one = 1;      // max(1, |sigma|)
  double grow_common = 1;       // e^Lam'
};

/// EP: error of dP. (27a)
inline double product_error(const GradientBudget& c, double dp, double abs_dp) {
  return c.dp_dot * abs_dp + c.dp_relative * (std::fabs(dp) + c.dp_radius) + c.dp_underflow;
}

/// ED of a D - dL whose parts err by `before`: one more rounding. (27a)
inline double rounded_delta_error(const GradientBudget& c, double delta, double before) {
  return before + c.delta_growth * (std::fabs(delta) + before) + c.delta_underflow;
}

/// Ef: error of 1 - y^2 for a softcapped score cap y that errs by `error`. (29)
inline double factor_error(const GradientBudget& c, double capped, double error) {
  if (c.cap == 0) return 0;
  const double y = std::fabs(capped) / c.cap, z = error / c.cap;
  return c.cap_square * (2 * y * z + z * z) + c.cap_relative * y * y + c.cap_difference +
         c.cap_underflow;
}

/// One pair: what (29)-(33) need of it.
struct GradientPair {
  double p;              // exact probability
  double t;              // |dP - D + dL|, the truth's radius included
  double f, f_error;     // |f| and Ef
  double product_error;  // EP
  double lost;           // g
  double grown;          // p expm1(Y)
};

inline double gradient_of_score(const GradientPair& x) { return x.p * x.t * x.f; }  // |dS|

/// ge: an absolute error of P^ in dS. (29)
inline double lost_gradient(const GradientBudget& c, const GradientPair& x) {
  return x.lost * c.grow_product * (x.t + x.product_error + c.delta_error) * (x.f + x.f_error);
}

/// ES: error of dS but for underflow. (29)
inline double score_gradient_error(const GradientBudget& c, const GradientPair& x) {
  const double of_t = x.product_error + c.delta_error;
  return x.grown * x.t * x.f + (x.p + x.grown) * (x.t * x.f_error + (x.f + x.f_error) * of_t) +
         lost_gradient(c, x);
}

/// es: underflow of dS, of the products before its cast in any order, and of the cast. (29)
inline double score_gradient_underflow(const GradientBudget& c, const GradientPair& x) {
  const double P = x.p + x.grown + x.lost, F = x.f + x.f_error;
  return c.cast_underflow + c.grow_product * (c.underflow * (1 + F) * (1 + P) + c.scale_underflow);
}

/// The factor of |k| in e of (32); `grown` is p expm1(Y').
inline double query_gradient_error(const GradientBudget& c, const GradientPair& x, double grown) {
  return grown * (x.t * x.f + x.f * c.delta_error) +
         (x.p + grown) * (x.t * x.f_error + x.f * x.product_error +
                          x.f_error * (x.product_error + c.delta_error)) +
         lost_gradient(c, x) * c.grow_after_query;
}

}  // namespace ringproof::oracle
