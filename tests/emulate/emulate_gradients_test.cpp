// No conforming backward pass exceeds the bounds of its contract: the zoo of presets and variants,
// with real roundings. RINGPROOF_EMULATE_COUNT and RINGPROOF_EMULATE_SEED lengthen and move the
// run.
#include <cmath>
#include <cstdlib>
#include <iostream>

#include "oracle/contract/probabilistic.hpp"
#include "oracle/judge/check.hpp"
#include "tests/emulate/gradient_ratios.hpp"
#include "tests/support/catch.hpp"

namespace ringproof::emulate {
namespace {

std::int64_t from_environment(const char* name, std::int64_t fallback) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoll(text) : fallback;
}

TEST_CASE("no conforming gradient exceeds its bound", "[emulate]") {
  const auto first = static_cast<std::uint64_t>(from_environment("RINGPROOF_EMULATE_SEED", 1));
  const std::int64_t count =
      from_environment("RINGPROOF_EMULATE_COUNT", static_cast<std::int64_t>(zoo().size()));
  std::map<std::string, double> worst;
  std::int64_t elements = 0, drawn = 0, not_applicable = 0;
  for (std::int64_t n = 0; n < count; ++n) {
    Draw draw = draw_case(first + static_cast<std::uint64_t>(n));
    if (!draw_gradients(draw)) continue;
    const GradientRatios ratios = gradient_ratios(draw);
    if (!ratios.complaint.empty()) FAIL_CHECK(ratios.complaint << "; " << draw.description());
    for (const auto& [what, ratio] : ratios.worst) worst[what] = std::max(worst[what], ratio);
    elements += ratios.elements;
    not_applicable += ratios.not_applicable;
    ++drawn;
  }
  std::cout << drawn << " cases of seeds " << first << " to "
            << first + static_cast<std::uint64_t>(count) - 1 << ", " << elements << " elements, "
            << not_applicable << " rows not applicable; largest error over bound:";
  for (const auto& [what, ratio] : worst) std::cout << ' ' << what << ' ' << ratio;
  std::cout << '\n';
  CHECK(drawn > count / 3);
}

TEST_CASE("no conforming gradient leans further than casts to nearest are likely to", "[emulate]") {
  using oracle::AnswerKind;
  const auto first = static_cast<std::uint64_t>(from_environment("RINGPROOF_EMULATE_SEED", 1));
  const std::int64_t count =
      from_environment("RINGPROOF_EMULATE_COUNT", static_cast<std::int64_t>(zoo().size()));
  oracle::CheckOptions options;
  options.probabilistic = true;
  options.only = {AnswerKind::dq, AnswerKind::dk, AnswerKind::dv};
  std::int64_t leans = 0;
  double largest = 0;
  for (std::int64_t n = 0; n < count; ++n) {
    Draw draw = draw_case(first + static_cast<std::uint64_t>(n));
    if (!oracle::no_gradient_level(draw.contract()).empty() || !draw_gradients(draw)) continue;
    const oracle::Report report = oracle::check(draw.as_case(), draw.contract(), options);
    for (const oracle::GradientLean& one : report.probabilistic->gradients) {
      if (one.suspect()) FAIL_CHECK(draw.description());
      if (one.refuted || one.found.elements == 0) continue;
      largest = std::max(largest, std::abs(one.found.lean) / one.bound);
      ++leans;
    }
  }
  std::cout << leans << " leans, largest over bound " << largest << '\n';
  CHECK(leans > count / 5);
}

}  // namespace
}  // namespace ringproof::emulate
