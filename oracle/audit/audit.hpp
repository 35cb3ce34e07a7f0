// Judging a test: which known mistakes does a tolerance rule accept on given inputs, and by what
// margin? A mistake is answered for by its exact function, stored in the answer's type: what an
// otherwise perfect kernel would return. Beside the catalogue stand answers that no kernel should
// get away with: zeros, the mean of V, its first row, nine tenths of the answer.
//
//   const Rule& rule = public_rules().front();
//   const GeneratedCase inputs = rule_inputs(rule, 1);
//   const AuditReport report = audit(inputs.as_case(), contract, rule, {});
#pragma once

#include <string>
#include <vector>

#include "oracle/audit/rule.hpp"
#include "oracle/contract/contract.hpp"
#include "oracle/generate/generated_case.hpp"

namespace ringproof::oracle {

/// What the rule says of one wrong answer.
struct RuleFinding {
  std::string id, words;
  double ratio = 0;        // measured over allowed, the largest of all conditions
  bool accepted = false;   // ratio at most 1
  std::string refused_by;  // the tensor of that condition
};

struct AuditReport {
  std::string rule;
  std::int64_t rows = 0, rows_total = 0;
  RuleFinding exact;                  // the exact answer itself, rounded: a sound rule accepts it
  std::vector<RuleFinding> made_up;   // zeros, mean of V, V[0], 0.9 of the answer
  std::vector<RuleFinding> findings;  // forms that change an answer, in the order of the catalogue
};

struct AuditOptions {
  int forms_per_class = 2;  // the likeliest first
  std::int64_t rows = 64;   // of each head, evenly spread; all if there are fewer
  int threads = 0;
};

/// The problem on which a suite applies its rule, drawn from a seed; with a shorter sequence if
/// `shorter` is more than 1.
GeneratedCase rule_inputs(const Rule&, std::uint64_t seed, std::int64_t shorter = 1);

/// The same for mistakes of the backward pass, where the rule compares gradients and the case has
/// dout. All rows are compared. Adds to the findings of the report.
void audit_gradients(const Case&, const Contract&, const Rule&, const AuditOptions&, AuditReport&);

AuditReport audit(const Case&, const Contract&, const Rule&, const AuditOptions&);

/// By class: what is accepted and how near the nearest refusal came; one line each.
std::string to_text(const AuditReport&);

/// The table of docs/audits.md: all public rules on their own inputs.
std::string audit_table(const AuditOptions&);

}  // namespace ringproof::oracle
