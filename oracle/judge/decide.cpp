#include "oracle/judge/decide.hpp"

namespace ringproof::oracle {

namespace {

/// What would pass everywhere although it is wrong; empty if nothing would.
std::string vacuous(const AnswerReport& answer) {
  const TensorTally& tally = answer.tally;
  if (tally.zeros.accepted_everywhere()) return "zeros";
  if (tally.mean.accepted_everywhere()) return "the mean of V";
  if (tally.twice.accepted_everywhere()) return "twice the answer";
  return "";
}

}  // namespace

void decide(AnswerReport& answer) {
  const TensorTally& tally = answer.tally;
  if (tally.failed > 0 || tally.functional_failed > 0) {
    answer.verdict = Verdict::fail;
    return;
  }
  answer.verdict = Verdict::undecided;
  if (tally.undecided > 0 || tally.functional_undecided > 0) {
    answer.reason = "precision ended before every element was decided";
  } else if (tally.elements == 0 && tally.not_applicable > 0) {
    answer.reason = "not applicable on any row: " + tally.why_not_applicable;
  } else if (tally.elements == 0 && tally.unbounded > 0) {
    answer.reason = "no power: every bound is infinite";
  } else if (tally.elements == 0) {
    answer.reason = "nothing is demanded of these rows";
  } else if (const std::string what = vacuous(answer); !what.empty()) {
    answer.reason = "no power: " + what + " would pass on every judged element";
  } else {
    answer.verdict = Verdict::pass;
  }
}

void suspect(const ProbabilisticReport& probabilistic, AnswerReport& answer) {
  if (answer.verdict == Verdict::fail) return;
  const bool of_elements = answer.kind == AnswerKind::out && probabilistic.found.suspect > 0;
  bool leans = answer.kind == AnswerKind::out && probabilistic.suspect();
  for (const GradientLean& one : probabilistic.gradients) {
    leans = leans || (one.kind == answer.kind && one.suspect());
  }
  if (!leans) return;
  answer.verdict = Verdict::suspect;
  answer.reason =
      of_elements ? "elements beyond what roundings to nearest are likely to do"
                  : "all elements together lean further than roundings to nearest are likely to";
}

bool has_power(const Report& report, double demanded) {
  bool gain_judged = false;
  for (const AnswerReport& answer : report.answers) {
    if (answer.kind == AnswerKind::lse) continue;
    gain_judged = true;
    const bool out = answer.kind == AnswerKind::out;
    if (!((out ? report.power.gain : answer.tally.gain) <= demanded)) return false;
  }
  return gain_judged;
}

}  // namespace ringproof::oracle
