// What a foreign kernel supports, found out by asking: one small problem for each feature.
#pragma once

#include <optional>

#include "tests/suite/trial.hpp"

namespace ringproof::suite {

/// What is said where the plain problem is not answered, and nothing more was asked.
inline constexpr const char* kNotPlain =
    "SKIPPED   the kernel does not support plain attention of any head dimension\n";

struct Probed {
  bool plain = false;  // is the plain problem answered?
  std::optional<Failure>
      death{};         // a kernel that never answers, or the first problem that it hung on
  Features unknown{};  // not asked, or not answered, because of this death
  explicit operator bool() const { return plain; }
};

/// Fills the trial's sizes and support. An output that comes back as it was filled counts as not
/// supported; a crash does not, where other problems are answered: the laws will report it. After
/// the first problem without an end nothing more is asked, and no law runs that needs what was not
/// asked.
Probed probe(Trial&);

}  // namespace ringproof::suite
