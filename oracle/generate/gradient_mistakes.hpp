// Mistakes of the backward pass as other gradients: another upstream gradient, or another place for
// the right numbers. Who looks at them decides what that proves (gradient_kills.hpp, oracle/audit).
#pragma once

#include <functional>
#include <string>

#include "oracle/generate/certified_kills.hpp"
#include "oracle/generate/gradient_balls.hpp"

namespace ringproof::oracle {

/// What a mistake makes of dq, dk and dv; nullptr: what is right.
struct WrongGradients {
  const std::vector<GradientBall>*dq, *dk, *dv;
};
using VisitGradients =
    std::function<void(const std::string& id, const std::string& words, const WrongGradients&)>;

/// Calls visit for every wanted mistake. `truth` is gradient_balls() of the same problem.
void visit_gradient_mistakes(const Case&, const Contract&, const GradientBalls& truth,
                             const WantsForm& wants, const VisitGradients& visit);

}  // namespace ringproof::oracle
