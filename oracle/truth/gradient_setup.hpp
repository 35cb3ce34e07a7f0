// What both paths to the gradients of a row need before any arithmetic: its upstream gradients, the
// given output and LSE in isolated mode, and whether all of them are finite.
#pragma once

#include "oracle/truth/backward.hpp"
#include "oracle/truth/row_setup.hpp"

namespace ringproof::oracle {

/// One row's upstream numbers that RowGradients does not keep.
struct GradientInputs {
  std::vector<double> out_given;  // [Dv] isolated only
  double lse_given = 0;           // isolated: as stored, in the base of the spec
};

/// Fills not_applicable, dlse, dout and q of `gradients`, sizes its arrays with zeros, and fills
/// `inputs`. Precondition: `row` has been computed. Returns false if the row is complete: not
/// applicable, or there is nothing visible whose gradient could differ from zero.
bool begin_gradients(const Problem&, const Upstream&, const RowTruth& row, RowGradients& gradients,
                     GradientInputs& inputs);

}  // namespace ringproof::oracle
