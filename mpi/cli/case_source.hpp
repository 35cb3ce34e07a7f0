// A rank's numbers straight from a case file: the same members as MemorySource (rank_problem.hpp).
// The file is mapped, so what a rank does not ask for is never read.
#pragma once

#include "mpi/rank_problem.hpp"
#include "reference/cli/case_problem.hpp"

namespace ringproof::mpi {

template <class Real>
struct CaseSource {
  const oracle::Case& views;

  Real q(Index b, Index h, Index i, Index d) const {
    return dequantise(views.problem.q, views.problem.q_scale, b, h, i, d);
  }
  Real k(Index b, Index h, Index j, Index d) const {
    return dequantise(views.problem.k, views.problem.k_scale, b, h, j, d);
  }
  Real v(Index b, Index h, Index j, Index c) const {
    return dequantise(views.problem.v, views.problem.v_scale, b, h, j, c);
  }
  Real dout(Index b, Index h, Index i, Index c) const {
    return views.dout ? static_cast<Real>(views.dout.at(b, h, i, c)) : Real{0};
  }
  Real dlse(Index b, Index h, Index i) const {
    return views.dlse ? static_cast<Real>(views.dlse.at(b, h, i, 0)) : Real{0};
  }
  Real bias(Index b, Index h, Index i, Index j) const {
    return static_cast<Real>(views.problem.bias.at(b, h, i, j));
  }
  std::uint8_t mask(Index b, Index h, Index i, Index j) const {
    return views.problem.mask.at(b, h, i, j) != 0;
  }
  const std::array<Index, 4>* bias_stride() const {
    return views.problem.bias ? &views.problem.bias.stride : nullptr;
  }
  const std::array<Index, 4>* mask_stride() const {
    return views.problem.mask ? &views.problem.mask.stride : nullptr;
  }

 private:
  static Real dequantise(const oracle::Tensor& tensor, const oracle::Factors& factors, Index b,
                         Index h, Index n, Index d) {
    const Real stored = static_cast<Real>(tensor.at(b, h, n, d));
    return factors.tensor ? stored * static_cast<Real>(factors.at(b, h, n, d)) : stored;
  }
};

}  // namespace ringproof::mpi
