// Finite differences of the exact loss (loss.hpp).
#include "tests/suite/loss.hpp"

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>

#include "oracle/case/assemble.hpp"
#include "oracle/judge/certified_rows.hpp"
#include "oracle/truth/truth.hpp"
#include "tests/suite/layout.hpp"

namespace ringproof::suite {
namespace {

using Wide = boost::multiprecision::cpp_bin_float_quad;

/// Small, because the remainder of a difference shrinks with its square, and large enough for the
/// truth's radius, 1e-27 of the answer, to stay small when it is divided by it.
constexpr double kStep = 0x1p-30;
constexpr const char* kInputs[] = {"q", "k", "v", "bias", "sinks", "dout", "dlse"};

struct Value {
  Wide middle = 0;
  double radius = 0;
  void add(const oracle::Certified& term, double factor) {
    middle += Wide(factor) * (Wide(term.hi) + Wide(term.lo));
    radius += std::abs(factor) * term.radius;
  }
};

/// The exact loss of a draft in binary64.
Value exact_loss(const Draft& draft) {
  const Laid laid(draft, {}, Fill::nan, {});
  const oracle::Case one = oracle::assemble_case(
      problem_source(*laid.problem()), oracle::Source{"answer", {}}, problem_spec(*laid.problem()));
  const oracle::Problem& problem = one.problem;
  Value loss;
  std::vector<oracle::RowTruth> row(1);
  for (Index b = 0; b < problem.batches; ++b) {
    for (Index kv_head = 0; kv_head < problem.kv_heads; ++kv_head) {
      const oracle::HeadTruth head(problem, b, kv_head, oracle::Precision::tight);
      for (Index h = kv_head * problem.group(); h < (kv_head + 1) * problem.group(); ++h) {
        for (Index i = 0; i < problem.queries; ++i) {
          const oracle::HeadTruth::RowId id{h, i};
          head.rows({&id, 1}, row.data());
          oracle::certify(problem, row[0]);
          if (row[0].empty()) continue;
          const auto n = static_cast<std::size_t>((b * problem.heads + h) * problem.queries + i);
          for (std::size_t c = 0; c < row[0].out.size(); ++c) {
            loss.add(row[0].out[c], draft.table("dout").values[n * row[0].out.size() + c]);
          }
          if (draft.has("dlse")) loss.add(row[0].lse, draft.table("dlse").values[n]);
        }
      }
    }
  }
  return loss;
}

}  // namespace

Loss::Loss(const Draft& draft) : draft_(draft) {
  for (const char* name : kInputs) {
    if (draft_.has(name)) draft_.table(name).dtype = oracle::DType::f64;
  }
}

Slope Loss::slope(const std::string& table, std::size_t n) {
  double& x = draft_.table(table).values[n];
  const double here = x;
  if (!std::isfinite(here)) return {};
  Value slopes[2];  // over one step and over two: their difference bounds the remainder
  for (int k = 0; k < 2; ++k) {
    const double step = (k + 1) * kStep;
    x = here + step;
    const Value up = exact_loss(draft_);
    x = here - step;
    const Value down = exact_loss(draft_);
    slopes[k] = {(up.middle - down.middle) / (2 * step), (up.radius + down.radius) / (2 * step)};
  }
  x = here;
  const Wide radius =
      abs(slopes[0].middle - slopes[1].middle) + slopes[0].radius + slopes[1].radius;
  const auto low = static_cast<double>(Wide(slopes[0].middle - radius));
  const auto high = static_cast<double>(Wide(slopes[0].middle + radius));
  return {std::nextafter(low, -HUGE_VAL), std::nextafter(high, HUGE_VAL)};
}

void drop_low_digits(Draft& draft) {
  for (const char* name : kInputs) {
    if (!draft.has(name)) continue;
    for (double& x : draft.table(name).values) {
      if (std::isfinite(x)) x = std::ldexp(std::trunc(std::ldexp(x, 16)), -16);
    }
  }
}

}  // namespace ringproof::suite
