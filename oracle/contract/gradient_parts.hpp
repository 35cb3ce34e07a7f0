// What (29)-(33) of docs/contract.md are evaluated from on one row, handed out: for who bounds the
// gradients of a kernel that makes one mistake and conforms otherwise (oracle/diagnose). Not here:
// the bounds themselves (backward_bound.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/contract/backward_bound.hpp"
#include "oracle/contract/gradient_formulas.hpp"

namespace ringproof::oracle {

/// The sink of a row, whose addend of dsinks is -P (D - dL). (33)
struct SinkParts {
  double p = 0, log_p = 0;
  double lost = 0;         // g
  double probability = 0;  // X_s + Lam': log budget of P alone
  double after = 0;        // us + cs + Gs: log budget of everything behind it
  double underflow = 0;    // e^(Gs + cs) eta
};
/// The row's addend of (33) for a D - dL of size `delta` that errs by `delta_error`.
double sink_gradient_error(const SinkParts&, double delta, double delta_error);

/// What a kernel makes of the row if it takes ones for dO. (27a)-(27)
struct OnesParts {
  double D = 0, D_radius = 0;  // sum of the row's outputs
  double delta_error = 0;      // ED of that D, before the rounding of D - dL
  double dp_underflow = 0;     // as GradientBudget::dp_underflow
};

/// Sums over the columns of each value: what dO . v is for ones. [Nk] each
struct ValueSums {
  std::vector<double> sum, abs_sum;
  ValueSums(const Problem&, const BackwardHead&);
};

/// Filled by bound_row_backward() of a row that its assumptions hold for.
struct RowGradientParts {
  RowGradientParts(const GradientShape& shape_of_head, const ValueSums& sums_of_values)
      : shape(&shape_of_head), values(&sums_of_values) {}
  const GradientShape* shape;  // every key wanted
  const ValueSums* values;

  bool bounded = true;              // false: nothing is known of this row, and only `index` holds
  std::vector<std::int64_t> index;  // [visible] places in the row's key range
  std::vector<double> grown, grown_query,
      grown_value;                   // [visible] p expm1 of Y, Y', XV + Lam' + GV
  std::vector<double> factor_error;  // [visible] Ef
  double lost_ds = 0, lost_dv = 0;   // the largest g and gV of the row
  GradientBudget budget;
  double query_underflow = 0;  // N of dq
  SinkParts sink;
  OnesParts ones;
};

}  // namespace ringproof::oracle
