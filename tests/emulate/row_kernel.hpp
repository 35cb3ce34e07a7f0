// One query row of an emulated kernel: scores, online or two-pass softmax of every partial, merge.
#pragma once

#include <limits>
#include <vector>

#include "oracle/case/problem.hpp"
#include "tests/emulate/functions.hpp"
#include "tests/emulate/sums.hpp"

namespace ringproof::emulate {

/// A partial result: the state (m, l, acc) of a softmax over some of the keys. m is a score in the
/// kernel's own units. After a two-pass softmax acc is divided already.
template <class Real>
struct State {
  Real m = -std::numeric_limits<Real>::infinity();
  Real l = 0;
  std::vector<Real> acc;  // [Dv]
  bool started = false;
  // Of a two-pass softmax: probabilities before and after the cast, in the order of its keys.
  std::vector<Real> p, p_cast;
  Real p_sink = 0;
};

template <class Real>
struct RowAnswer {
  std::vector<Real> out;  // [Dv] before the rounding of the output
  Real lse = -std::numeric_limits<Real>::infinity();
  bool empty = true;
};

/// Where key j of a row belongs: its partial in merge order, its place in that partial's tile grid.
struct KeyPlace {
  std::int64_t key = 0, place = 0;
};
struct PartialKeys {
  std::vector<KeyPlace> keys;  // ascending places
  std::int64_t rows = 0;       // rows of the partial, invisible ones too
};

/// Scores of one row in the kernel's units, and the factors between those units and the exponent.
template <class Real>
struct RowScores {
  std::vector<Real> score;   // [Nk]; only entries of visible keys are set
  std::vector<Real> capped;  // [Nk] after the softcap, before any bias; empty without one
  Real to_exponent = 1;      // fused: exp2(fma(score, to_exponent, -m * to_exponent))
  Real to_natural = 1;       // score * to_natural is in natural units
  bool has_sink = false;
  Real sink = 0;        // natural units
  Real sink_score = 0;  // kernel's units, for the maximum
};

/// The online softmax of one row.
template <class Real>
class RowSoftmax {
 public:
  /// `values` row j is values + j * width.
  RowSoftmax(const Numerics& numerics, Functions<Real>& functions, const RowScores<Real>& scores,
             const Real* values, std::int64_t width)  // [Nk, Dv]
      : numerics_(numerics),
        functions_(functions),
        scores_(scores),
        values_(values),
        width_(width) {}

  State<Real> online(const PartialKeys&, bool with_sink, bool sink_first, State<Real> state);
  State<Real> two_pass(const PartialKeys&, bool with_sink);
  Real natural(Real m) const { return m * scores_.to_natural; }
  /// m in units of ln 2, one rounding.
  Real base_two(Real m) const {
    return static_cast<Real>(static_cast<long double>(m) * scores_.to_natural *
                             1.4426950408889634074L);
  }
  /// exp(m_before - m_after).
  Real rescale(Real before, Real after);

 private:
  Real weight(std::int64_t j, Real m);
  Real sink_weight(Real m);
  void raise(State<Real>&, Real candidate);
  void absorb(State<Real>&, const std::vector<KeyPlace>& block);
  void absorb_sink(State<Real>&);
  std::vector<std::vector<KeyPlace>> blocks_of(const PartialKeys&);
  void add_values(std::vector<Real>& acc, const std::vector<KeyPlace>& keys,
                  const std::vector<Real>& p);

  const Numerics& numerics_;
  Functions<Real>& functions_;
  const RowScores<Real>& scores_;
  const Real* values_;  // [Nk, Dv]
  std::int64_t width_;
  Products<Real> terms_;
};

/// Merges partial states in the order given and finishes: out and natural LSE.
template <class Real>
RowAnswer<Real> merge_states(const Numerics&, Functions<Real>&, RowSoftmax<Real>&,
                             std::vector<State<Real>>);
/// acc / l and the LSE of a single state.
template <class Real>
RowAnswer<Real> finish_state(const Numerics&, Functions<Real>&, const RowSoftmax<Real>&,
                             const State<Real>&);

}  // namespace ringproof::emulate
