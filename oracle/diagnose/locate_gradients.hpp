// Where gradients are refused: dq by query, dk and dv by key, as locate.hpp does for out. Sums over
// whole heads (dsinks, a broadcast dbias) have no place beyond the head that the report names.
#pragma once

#include <vector>

#include "oracle/diagnose/gradient_field.hpp"
#include "oracle/diagnose/histogram.hpp"

namespace ringproof::oracle {

struct GradientLocation {
  AnswerKind kind = AnswerKind::dq;
  std::int64_t refused = 0, judged = 0;                // elements
  std::int64_t places_refused = 0, places_judged = 0;  // queries, or keys
  std::vector<Finding> findings;  // the narrowest first; empty: everywhere alike
};

/// One for each field in which something is refused.
std::vector<GradientLocation> locate_gradients(const Case&, const Contract&,
                                               const std::vector<GradientField>&);

}  // namespace ringproof::oracle
