// "My kernel or my contract?": which contracts would accept an answer, the tightest of them, and
// the single field of the declared contract that decides.
//
//   const Fit result = fit(input, "bf16-flash", options);
//   if (result.tightest) puts(result.tightest->contract.c_str());
//
// Two searches. Field by field: what is the smallest change of one field of the declared contract
// that accepts the answers it refuses, each answer by itself. And over the presets and their
// variants: which names accept everything, ordered by how much their bounds allow.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "oracle/judge/check.hpp"

namespace ringproof::oracle {

/// One change of one field (or of the few that only make sense together).
struct FieldChange {
  std::string field;  // "softmax.exp_rel"
  std::string value;  // as JSON
};

/// What it takes for one answer to be accepted.
struct AnswerFit {
  AnswerKind kind = AnswerKind::out;
  Verdict declared = Verdict::pass;
  std::vector<FieldChange> deciding;  // each of them alone is enough; the least first
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
  std::vector<FittedContract> accepting;  // names that accept everything, tightest first
  std::int64_t tried = 0;                 // contracts judged
};

/// `declared`: a name or the JSON text of an object. Throws BadInput as check() does.
Fit fit(const Case&, const std::string& declared, const CheckOptions&);

}  // namespace ringproof::oracle
