// Judging a test: which known mistakes does a tolerance rule accept on given inputs, and by what
// margin? A mistake is answered for by its exact function, stored in the answer's type: what an
// otherwise perfect kernel would return. Beside the catalogue stand answers that no kernel should
// get away with: zeros, the mean of V, its first row, nine tenths of the answer.
//
//   const Rule& rule = public_rules().front();
//   const GeneratedCase inputs = rule_inputs(rule, 1);
//   const AuditReport report = audit(inputs.as_case(), contract, rule, {});
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "oracle/audit/rule.hpp"
#include "oracle/contract/contract.hpp"
#include "oracle/generate/generated_case.hpp"

namespace ringproof::oracle {

/// What the rule says of one answer. One tensor is enough to refuse; to accept takes all of them,
/// so that an answer is left open where a compared tensor was not computed.
struct RuleFinding {
  std::string id, words;
  double ratio = 0;                        // measured over allowed, largest of what was computed
  std::string refused_by{};                // the tensor of that condition
  std::vector<AnswerKind> not_computed{};  // compared by the rule
  std::optional<double> times{};           // made up: so many times the exact answer

  bool refused() const { return !(ratio <= 1); }
  bool accepted() const { return !refused() && not_computed.empty(); }
  bool open() const { return !refused() && !not_computed.empty(); }
};

struct AuditReport {
  std::string rule;
  std::int64_t rows = 0, rows_total = 0;
  RuleFinding exact;                 // the exact answer itself, rounded: a sound rule accepts it
  std::vector<RuleFinding> made_up;  // zeros, mean of V, V[0], 0.9 of the answer
  // Forms that change an answer, in the order of the catalogue. What a mistake of the forward pass
  // makes of gradients depends on the backward pass beside it, and is not computed.
  std::vector<RuleFinding> findings;
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
/// dout. All rows are compared. Takes the report of audit() and adds the findings, whose out and
/// lse are those of the exact answer, and the gradients of the exact answer and its multiples.
void audit_gradients(const Case&, const Contract&, const Rule&, const AuditOptions&, AuditReport&);

AuditReport audit(const Case&, const Contract&, const Rule&, const AuditOptions&);

/// By class: what is accepted and how near the nearest refusal came; one line each.
std::string to_text(const AuditReport&);

/// The table of docs/audits.md: all public rules on their own inputs.
std::string audit_table(const AuditOptions&);

}  // namespace ringproof::oracle
