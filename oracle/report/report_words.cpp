#include "oracle/report/report_words.hpp"

#include <fmt/format.h>

#include <cmath>

namespace ringproof::oracle {

namespace {

std::string share(std::string_view what, const Vacuity& vacuity) {
  if (vacuity.differ == 0) return fmt::format("{} is the truth", what);
  return fmt::format(
      "{} {:.3g} %", what,
      100.0 * static_cast<double>(vacuity.pass) / static_cast<double>(vacuity.differ));
}

}  // namespace

std::string place(const Row& row, std::int64_t column) {
  std::string text = fmt::format("[b {}, h {}, i {}", row.b, row.h, row.i);
  if (column >= 0) text += fmt::format(", c {}", column);
  return text + "]";
}

std::string place(AnswerKind kind, const Row& row, std::int64_t column) {
  switch (kind) {
    case AnswerKind::lse:
      return place(row, -1);
    case AnswerKind::dk:
    case AnswerKind::dv:
      return fmt::format("[b {}, h {}, j {}, c {}]", row.b, row.h, row.i, column);
    case AnswerKind::dbias:
      return fmt::format("[b {}, h {}, i {}, j {}]", row.b, row.h, row.i, column);
    case AnswerKind::dsinks:
      return fmt::format("[h {}]", row.h);
    default:
      return place(row, column);
  }
}

std::string number(DType type, double x) {
  return type == DType::f64 ? fmt::format("{}", x) : fmt::format("{}", static_cast<float>(x));
}

std::string figure(double x) { return fmt::format("{:.2g}", x); }

std::string box_text(const AnswerReport& answer, const Box& box) {
  if (std::isnan(box.low)) return "NaN";
  // The LSE's ends are binary64 numbers whatever type the answer is stored in.
  const auto end = [&](double x) {
    return answer.kind == AnswerKind::lse ? fmt::format("{:.12g}", x)
                                          : number(answer.judged_type, x);
  };
  return fmt::format("[{}, {}]", end(box.low), end(box.high));
}

std::string_view rows_word(AnswerKind kind) {
  switch (kind) {
    case AnswerKind::dk:
    case AnswerKind::dv:
      return "keys";
    case AnswerKind::dsinks:
      return "heads";
    default:
      return "rows";
  }
}

std::string counts_text(const AnswerReport& answer) {
  const TensorTally& tally = answer.tally;
  std::string text = fmt::format("{} elements in {} {} ({})", tally.elements, tally.rows,
                                 rows_word(answer.kind), name(answer.judged_type));
  if (tally.failed > 0) text += fmt::format(", {} refused", tally.failed);
  if (tally.functional_failed > 0) {
    text += fmt::format(", {} rows refused by their functional", tally.functional_failed);
  }
  if (tally.undecided + tally.functional_undecided > 0) {
    text += fmt::format(", {} undecided", tally.undecided + tally.functional_undecided);
  }
  if (tally.unbounded > 0) text += fmt::format(", {} without a bound", tally.unbounded);
  if (tally.unconstrained > 0) {
    text += fmt::format(", {} empty rows that may hold anything", tally.unconstrained);
  }
  return text;
}

std::string gradient_power_text(const TensorTally& tally) {
  const std::string gain = std::isfinite(tally.gain)
                               ? fmt::format("refuses gain errors from {}", figure(tally.gain))
                               : std::string("refuses no gain error");
  return fmt::format("{}; would pass on elements: {}, {}", gain, share("zeros", tally.zeros),
                     share("twice", tally.twice));
}

std::vector<std::string> power_phrases(const Report& report) {
  std::vector<std::string> phrases;
  const PowerTally& power = report.power;
  const AnswerReport* out = report.find(AnswerKind::out);
  const AnswerReport* lse = report.find(AnswerKind::lse);
  const bool has_out = out != nullptr && out->tally.elements > 0;
  if (has_out) {
    phrases.push_back(std::isfinite(power.gain)
                          ? fmt::format("refuses gain errors from {}", figure(power.gain))
                          : "refuses no gain error");
  }
  if (lse != nullptr && lse->tally.elements > 0) {
    phrases.push_back(power.missing_mass_lse < 1 ? fmt::format("missing mass from {} by lse",
                                                               figure(power.missing_mass_lse))
                                                 : "no missing mass by lse");
  }
  if (!has_out) return phrases;
  phrases.push_back(power.missing_block > 0
                        ? fmt::format("missing blocks of {} keys (mass up to {}) by out",
                                      power.missing_block, figure(power.missing_mass_out))
                        : "no missing block by out");
  phrases.push_back(fmt::format("would pass on elements: {}, {}, {}",
                                share("zeros", out->tally.zeros), share("mean(V)", out->tally.mean),
                                share("twice", out->tally.twice)));
  return phrases;
}

namespace {

std::string lean_text(const Suspicion& found, double bound) {
  return fmt::format("lean {}, likely up to {} ({:.3g} of it)", figure(found.lean), figure(bound),
                     std::abs(found.lean) / bound);
}

constexpr const char* kLeanByThemselves = "these inputs lean by themselves, no aggregate test";

}  // namespace

std::string probabilistic_text(const ProbabilisticReport& report) {
  const std::string failure = fmt::format("; failure {}", figure(report.failure));
  if (!report.not_evaluated.empty()) return "not evaluated: " + report.not_evaluated;
  const Suspicion& found = report.found;
  std::string text = fmt::format("{} of {} elements beyond e_prob", found.suspect, found.elements);
  if (found.worst_element) {
    text += fmt::format(" (worst {}: {:.3g} of it)",
                        place(found.worst_element->row, found.worst_element->column),
                        found.worst_element->error_over_bound);
  }
  if (report.lean_refuted) {
    text += std::string("; ") + kLeanByThemselves;
  } else if (found.rows > 0) {
    text += "; " + lean_text(found, report.lean_bound);
  }
  return text + failure;
}

std::vector<std::string> gradient_lean_phrases(const ProbabilisticReport& report) {
  if (!report.gradients_not_evaluated.empty()) {
    return {"gradients not evaluated: " + report.gradients_not_evaluated};
  }
  std::vector<std::string> phrases;
  for (const GradientLean& one : report.gradients) {
    const std::string kind(name(one.kind));
    if (one.found.elements == 0) {
      phrases.push_back(kind + ": no element is compared");
    } else {
      phrases.push_back(kind + ": " +
                        (one.refuted ? kLeanByThemselves : lean_text(one.found, one.bound)));
    }
  }
  return phrases;
}

std::string rows_text(const Report& report) {
  std::string text = fmt::format("{} of {}", report.rows_judged, report.rows_total);
  if (report.escalated > 0) {
    text += fmt::format("; {} escalated to interval arithmetic, up to {} bits", report.escalated,
                        report.bits);
  }
  if (report.keys_total > 0) {
    text += fmt::format("; {} of {} keys", report.keys_judged, report.keys_total);
  }
  if (report.escalated_keys > 0) {
    text +=
        fmt::format("; {} of them escalated, up to {} bits", report.escalated_keys, report.bits);
  }
  return text;
}

}  // namespace ringproof::oracle
