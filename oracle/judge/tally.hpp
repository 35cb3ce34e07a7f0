// What the judge counts while it goes through the rows: elements, the worst of them, and the power.
// A tally of one row and a tally of a whole tensor are the same thing; merging is order-keeping and
// has no rounding, so reports do not depend on how rows were shared out.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "oracle/judge/accept.hpp"
#include "oracle/judge/row_walk.hpp"

namespace ringproof::oracle {

/// One judged element, as reports show it.
struct Element {
  Row row;
  std::int64_t column = 0;  // c of out; 0 for the LSE
  double answer = 0, exact = 0;
  Box accepted;  // the wide box (35); NaN ends where NaN is demanded
  double error_over_bound = 0;
  Decision decision = Decision::pass;
};

/// What is decided about an answer; the box stays empty, most elements are never shown.
Element judged_element(const Row&, std::int64_t column, double answer, const Certified& exact,
                       double bound, const OutputRule&);

/// The functional test T1F of one row: |sum_c sgn(o_c) (out_c - o_c)| against its bound (26).
struct Functional {
  Row row;
  double value = 0, bound = 0;
  Decision decision = Decision::pass;
  double error_over_bound() const {
    if (value == 0) return 0;
    return bound > 0 ? value / bound : std::numeric_limits<double>::infinity();
  }
};

/// Elements where a made-up answer differs from the truth, and where it would nevertheless be
/// accepted.
struct Vacuity {
  std::int64_t differ = 0, pass = 0;
  bool functional_refuses = false;
  /// It differs somewhere, and nothing that was judged would have refused it.
  bool accepted_everywhere() const { return differ > 0 && pass == differ && !functional_refuses; }
};

/// One answer tensor.
struct TensorTally {
  std::int64_t rows = 0, elements = 0;                           // judged
  std::int64_t failed = 0, undecided = 0;                        // elements
  std::int64_t functional_failed = 0, functional_undecided = 0;  // rows
  std::int64_t not_applicable = 0;                               // rows whose assumptions fail
  std::int64_t unconstrained = 0;  // empty rows for which anything is right
  std::int64_t unbounded = 0;      // elements whose bound is infinite
  std::string why_not_applicable;  // of the first such row
  std::optional<Element> worst_element;
  std::optional<Functional> worst_functional;
  Vacuity zeros, mean, twice;
  /// Gradients: the smallest gain error that some element certainly refuses (out: see PowerTally).
  double gain = std::numeric_limits<double>::infinity();

  void add(const Element&);
  void add(const Functional&);
  /// Judges an answer and adds it; its box is only computed if it becomes the worst one so far.
  void judge(const Row&, std::int64_t column, double answer, const Certified& exact, double bound,
             const OutputRule&);
  void merge(const TensorTally&);
};

/// Section 10 of docs/contract.md: what the best judged row would have refused.
struct PowerTally {
  double gain = std::numeric_limits<double>::infinity();
  double missing_mass_lse = 1, missing_mass_out = 1;
  std::int64_t missing_block = 0;
  void merge(const PowerTally&);
};

/// What the probabilistic level compares: elements of out, and the lean of all of them together,
/// Z = sum sgn(o) (out - o), with the parts of its bound. (39), (40)
struct Suspicion {
  std::int64_t rows = 0;                   // in the lean
  std::int64_t elements = 0, suspect = 0;  // compared; beyond e_prob
  std::optional<Element> worst_element{};  // accepted: within e_prob
  double lean = 0;
  double remainder = 0;               // what adversarial roundings may add to the lean
  double variance = 0;                // of the listed ones
  double drift = 0, drift_scale = 0;  // precondition (c)

  void add(const Element&);
  void merge(const Suspicion&);
};

struct Tally {
  TensorTally out, lse;
  PowerTally power;
  Suspicion suspicion;
  std::int64_t escalated = 0;  // rows the fast path could not decide
  unsigned bits = 0;           // most binary digits any row needed; 0: the fast path was enough
  void merge(const Tally&);
};

}  // namespace ringproof::oracle
