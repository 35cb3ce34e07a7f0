// A mistake as a mathematical function: which problem it solves (Setting), and what it makes of
// each row of it (Mutant). The lists are in classes_*.cpp, one line or a few for a mistake, so that
// they can be read as tables; whether a mistake explains an answer is diagnose.hpp.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "oracle/case/case_file.hpp"
#include "oracle/diagnose/mutated_head.hpp"
#include "oracle/diagnose/partial_rows.hpp"
#include "oracle/judge/row_walk.hpp"

namespace ringproof::oracle {

/// What a kernel with the mistake may return in one element.
struct Expected {
  enum class Kind { ball, nan, not_finite, anything };
  Kind kind = Kind::ball;
  Certified exact;   // of a ball
  double bound = 0;  // e_b of (36), before the output is rounded

  static Expected value(double exact, double error = 0) {
    return {Kind::ball, {exact, 0, 0}, error};
  }
  static Expected of_kind(Kind kind) { return {kind, {}, 0}; }
};

struct ExpectedRow {
  std::vector<Expected> out;  // [Dv]
  /// Natural logarithms. The kernel is one of the alternatives, the same in every row; the words
  /// say which one it was ("" if there is no choice).
  struct Lse {
    const char* words;
    Expected value;
  };
  std::vector<Lse> lse;

  void set_out(const Expected& value) { out.assign(out.size(), value); }
};

/// Everything known about one row of the changed problem.
struct RowMaterial {
  const HeadChange& change;
  const MutatedHead& head;
  const Contract& contract;
  std::int64_t n;  // row of the head
  std::int64_t i;  // query
  const RowTruth& truth;
  const RowBound& bound;
  const std::vector<Part>& parts;  // empty unless the setting cuts rows
  const double* values;            // as in bound_row
  std::int64_t stride;
};

/// What the kernel with the mistake computes, in the words of docs/explain.md.
struct Mutant {
  std::string id;     // of the class in the catalogue
  std::string words;  // which form of it
  std::string also;   // ids under which the same function may be filed
  /// Changes what the row would be without the mistake; empty: the setting is all of it.
  std::function<void(const RowMaterial&, ExpectedRow&)> expect;
  /// The mistake is that something was never written: it explains by leaving that open.
  bool open = false;
};

/// A changed problem and how a kernel cuts its keys.
struct Setting {
  std::function<void(HeadChange&)> change;            // empty: the problem as it is
  std::function<void(Contract&)> contract;            // empty: the contract as it is
  std::function<Row(const Row&)> out_from, lse_from;  // rows whose answers are stored here instead
  /// Part of the key at place j for query i on `rank`, negative: none. Empty: rows are not cut.
  std::function<std::int64_t(std::int64_t rank, std::int64_t i, std::int64_t j)> part;
  std::int64_t parts = 0;
  bool sink_apart = false;  // the sink is a part of its own, behind the others
  std::function<std::int64_t(std::int64_t b, std::int64_t i)> rank;  // owner of a query; empty: 0

  /// True if rows have the truth and the bounds of the problem itself, before a mutant's last step.
  bool leaves_problem() const { return !change && !contract; }
};

/// Mistakes that share a setting, so that it is evaluated once for all of them.
struct Family {
  Setting setting;
  std::vector<Mutant> mutants;
};

/// What the lists are made for: sizes, ranks and semantics decide which mistakes are different from
/// the truth at all.
struct Subject {
  const Case& input;
  const Contract& contract;
  std::int64_t ranks;          // of the spec, else of the contract; 1: no ring
  std::optional<double> gain;  // answer over truth in the worst element of out, a guess at a factor

  const Problem& problem() const { return input.problem; }
};

using Families = std::vector<Family>;
void add_mask_classes(const Subject&, Families&);
void add_score_classes(const Subject&, Families&);
void add_bias_classes(const Subject&, Families&);
void add_head_classes(const Subject&, Families&);
void add_answer_classes(const Subject&, Families&);
void add_place_classes(const Subject&, Families&);
void add_key_classes(const Subject&, Families&);
void add_softmax_classes(const Subject&, Families&);
void add_ring_classes(const Subject&, Families&);

}  // namespace ringproof::oracle
