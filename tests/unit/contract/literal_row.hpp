// The quantities of the literal reading of docs/contract.md, under the letters of that page.
#pragma once

#include <functional>
#include <vector>

#include "tests/unit/contract/literal.hpp"

namespace ringproof::test::literal {

using namespace ringproof::oracle;
using Real = long double;
using List = std::vector<Real>;

struct Runs {
  Real n, C;
  List r;
  bool at_zero;
  Real dealt;  // R if a run may be dealt out to R ranks, else 0
};

struct Key {
  Real s, a, dot, capped, bias, alibi, eps, p, Del, x, mu, muL, C, CL, A, B, cast, z, Al;
  bool sink;
  std::int64_t place;  // in the key range
};

Real hat(Real u);  // contract.md (1)
Real ceil_div(Real a, Real b);
Real sum_hat(const std::vector<double>& us);
Real S(const Runs& x, Real b);
Real Gamma(const Accumulator& a, const Runs& x);

struct Literal {
  const Contract& c;
  const Problem& problem;
  const RowTruth& row;
  const double* values;
  std::int64_t stride;
  Literal(const Contract& contract, const Problem& of, const RowTruth& truth, const double* v,
          std::int64_t v_stride)
      : c(contract), problem(of), row(truth), values(v), stride(v_stride) {}

  std::vector<Key> keys;
  Runs runs, part;
  Real us, R, T, Tp, n, M, Mp, Mm, L, W, tc, fc, tau, ex, nd, Gpv, Gl;
  Real nal = 0, nrs = 0, tau_d = 0, kappa = 0, G_v = 0, G_1 = 0, H = 0, G2_v = 0, G2_1 = 0, Pt = 0;
  Real leak = 0, leak_growth = 0, lmax_rest = 0;
  bool temperature, ones = false;
  Merge merge = Merge::none;
  LiteralBound result;

  Real v(const Key& k, std::size_t column) const {
    return k.sink ? 0
                  : static_cast<Real>(values[k.place * stride + static_cast<std::int64_t>(column)]);
  }
  Real total(const std::function<Real(const Key&)>& f) const {
    Real sum = 0;
    for (const Key& k : keys) sum += f(k);
    return sum;
  }
  Real maximum(const std::function<Real(const Key&)>& f) const {
    Real m = -HUGE_VALL;
    for (const Key& k : keys) m = std::max(m, f(k));
    return m;
  }

  void collect();
  void scores();
  void layout();
  void blocks();
  void common_constants();
  void key_constants(Real na, bool scaled);
  Real summed_eta() const;
  void merge_constants();
  void absolute_terms();
  Real tail(Real m, Real lmax, Real LL, Real uL) const;
  void lse();
  Real G2(std::size_t column) const;
  Real T1(std::size_t column) const;
  Real T1R(std::size_t column) const;
  Real T1F() const;
  Real T0(std::size_t column, Real e) const;
  void run();
};

}  // namespace ringproof::test::literal
