// "My kernel or my contract?": which contracts would accept an answer, the tightest of them, and
// the single field of the declared contract that decides.
//
//   const Fit result = fit(input, "bf16-flash", options);
//   if (result.tightest) puts(result.tightest->contract.c_str());
//
// Two searches. Field by field: what is the smallest change of one field of the declared contract
// that accepts an answer it refuses. And over the presets and their variants: which names accept
// everything, ordered by how much their bounds allow. docs/explain.md says by which principle one
// field is called the deciding one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "oracle/judge/check.hpp"

namespace ringproof::oracle {

/// One change of one field (or of the few that only make sense together).
struct FieldChange {
  std::string field;       // "softmax.exp_rel"
  std::string value;       // as JSON
  double widens = 1;       // all bounds over the declared ones, see ContractSearch::widening
  bool elsewhere = false;  // a contract that the project ships declares as much
  bool renames = false;    // declares another base of the LSE: nothing is less accurate than before
};

/// What it takes for one answer to be accepted.
struct AnswerFit {
  AnswerKind kind = AnswerKind::out;
  Verdict declared = Verdict::pass;
  std::vector<FieldChange> deciding;  // each of them alone is enough; the deciding one first
};

struct FittedContract {
  std::string contract;  // its name
  std::string hash;
  double allows = 1;  // geometric mean of its bounds over those of the declared contract
  std::vector<FieldChange> differs;  // from the declared contract
};

struct Fit {
  Report declared;                        // under the declared contract
  std::vector<AnswerFit> answers;         // those it refuses
  std::vector<FittedContract> accepting;  // the tightest names that accept everything, in order
  std::int64_t tried = 0;                 // contracts judged
};

/// True if a looser contract accepts every answer; `elsewhere`: one whose changes a contract that
/// the project ships declares. That is no proof of the right function: a mistake that changes as
/// little passes, too.
bool loosened(const Fit&, bool elsewhere = false);

/// True if every refused answer is right as soon as its contract names what it is: the LSE in the
/// base in which the kernel returns it.
bool renamed(const Fit&);

/// `declared`: a name or the JSON text of an object. A case without an answer to judge is not
/// fitted. Throws BadInput as check() does.
Fit fit(const Case&, const std::string& declared, const CheckOptions&);

}  // namespace ringproof::oracle
