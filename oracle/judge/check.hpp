// Judging a case: every answer tensor present against its contract.
//
//   Case c = read_case("answer.safetensors");
//   Contract contract = read_contract("bf16-flash", c.problem.spec);
//   Report report = check(c, contract, {});
//   std::puts(std::string(word(report.verdict)).c_str());
//
// FAIL proves that no kernel of the contract returns this answer; PASS proves that every judged
// element is within its derived bound, and says what the judged rows would have refused
// (docs/verdicts.md).
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "oracle/case/case_file.hpp"
#include "oracle/contract/contract.hpp"
#include "oracle/judge/tally.hpp"
#include "oracle/judge/team.hpp"
#include "oracle/judge/verdict.hpp"

namespace ringproof::oracle {

struct CheckOptions {
  std::vector<AnswerKind> only;      // judge these; empty: all that are present
  std::vector<AnswerKind> require;   // absent ones are bad input
  std::optional<std::int64_t> rows;  // so many sampled query rows; sampled keys for dk and dv
  bool edges_first = false;      // `rows` counts rows in the order of edge_rows.hpp, not a sample
  std::optional<double> budget;  // in place of `rows`: seconds, spent on rows in that order
  std::uint64_t seed = 0;
  std::optional<double> power;  // a gain error of at most this must be detectable
  unsigned bits = 0;            // interval arithmetic of so many binary digits for every row
  bool probabilistic = false;   // also the level of docs/contract.md, section 15
  WalkOptions walk;
  const Team* team = nullptr;  // judges the case together; check() is collective then
};

/// The aggregate test of one gradient, (41).
struct GradientLean {
  AnswerKind kind = AnswerKind::dq;
  Suspicion found{};
  double bound = 0;      // of |found.lean|
  bool refuted = false;  // the inputs themselves lean: the test is off

  bool suspect() const { return !refuted && std::abs(found.lean) > bound; }
};

/// What the probabilistic level says about out and, element by element taken together, about dq, dk
/// and dv.
struct ProbabilisticReport {
  std::vector<GradientLean> gradients{};  // those that are judged
  std::string gradients_not_evaluated{};  // why there are none, or empty
  std::string not_evaluated{};            // why it says nothing about out, or empty
  double failure = 0;                     // of a false SUSPECT, in all and under the model
  Suspicion found{};
  double lean_bound = 0;      // of |found.lean|
  bool lean_refuted = false;  // the inputs themselves lean: the aggregate test is off

  bool suspect() const {
    return found.suspect > 0 || (!lean_refuted && std::abs(found.lean) > lean_bound);
  }
};

constexpr bool is_gradient(AnswerKind kind) {
  return kind != AnswerKind::out && kind != AnswerKind::lse;
}

struct AnswerReport {
  AnswerKind kind = AnswerKind::out;
  Verdict verdict = Verdict::pass;
  std::string reason{};  // why it is neither PASS nor FAIL
  DType judged_type = DType::f32;
  TensorTally tally{};
};

struct Report {
  std::string case_name{};
  Verdict verdict = Verdict::skipped;
  std::string reason{};  // of SKIPPED, or of a demanded power that is missing
  std::string contract_name{}, contract_hash{};
  std::vector<AnswerReport> answers{};  // in AnswerKind order
  PowerTally power{};
  std::int64_t rows_judged = 0, rows_total = 0;
  std::int64_t keys_judged = 0, keys_total = 0;  // of dk and dv; 0 where neither is judged
  std::int64_t escalated = 0, escalated_keys = 0;
  unsigned bits = 0;  // most digits an escalated row needed
  std::optional<ProbabilisticReport> probabilistic{};

  const AnswerReport* find(AnswerKind) const;
};

/// True if the options leave an answer of the case to judge that has elements.
bool has_answer(const Case&, const CheckOptions&);

/// Throws BadInput for a required answer that is absent and for inputs the contract cannot load.
/// The report is the same for every number of threads and of members of a team, and every SIMD
/// target's verdicts agree.
Report check(const Case&, const Contract&, const CheckOptions&);

}  // namespace ringproof::oracle
