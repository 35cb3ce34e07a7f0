// What a foreign kernel supports, found out by asking: one small problem for each feature.
#pragma once

#include "tests/suite/trial.hpp"

namespace ringproof::suite {

/// Fills the trial's sizes and support. An output that comes back as it was filled counts as not
/// supported; a crash does not: the laws will report it. False if not even the plain problem is
/// supported.
bool probe(Trial&);

}  // namespace ringproof::suite
