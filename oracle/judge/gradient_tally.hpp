// What the judge counts while it goes through gradients: one tally a tensor.
#pragma once

#include <array>
#include <cstdint>

#include "oracle/case/case_file.hpp"
#include "oracle/judge/tally.hpp"

namespace ringproof::oracle {

/// dq, dk, dv, dbias, dsinks.
struct GradientTally {
  std::array<TensorTally, 5> tensors;
  std::int64_t escalated_rows = 0, escalated_keys = 0;
  unsigned bits = 0;

  TensorTally& operator[](AnswerKind kind) { return tensors[index(kind)]; }
  const TensorTally& operator[](AnswerKind kind) const { return tensors[index(kind)]; }
  void merge(const GradientTally&);

 private:
  static std::size_t index(AnswerKind kind) {
    return static_cast<std::size_t>(kind) - static_cast<std::size_t>(AnswerKind::dq);
  }
};

}  // namespace ringproof::oracle
