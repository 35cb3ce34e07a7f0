// The interval of every element lies inside the double-double answer plus and minus its radius: on
// every input family, storage type and part of the score rule, in both variants.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "oracle/truth/truth.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/truth/families.hpp"

namespace ringproof::test {
namespace {

using namespace oracle;

/// Elements a family: RINGPROOF_TRUTH_ELEMENTS, or a number that fits into continuous integration.
long elements_a_family() {
  const char* wanted = std::getenv("RINGPROOF_TRUTH_ELEMENTS");
  return wanted != nullptr ? std::atol(wanted) : 600;
}

/// RINGPROOF_TRUTH_FAMILY: only the families whose name holds it.
bool wanted(Family family) {
  const char* part = std::getenv("RINGPROOF_TRUTH_FAMILY");
  return part == nullptr || std::string(name(family)).find(part) != std::string::npos;
}

struct Tally {
  long elements = 0, outside = 0, rows = 0, escalated = 0;
  double largest_share = 0;  // of the radius that the true error takes
};

/// Upper bound of |a - b| over all b of the interval `inner`, as a share of a's radius.
double share_of_radius(const Certified& outer, const Certified& inner) {
  const long double difference = (static_cast<long double>(outer.hi) - inner.hi) +
                                 (static_cast<long double>(outer.lo) - inner.lo);
  const double error = static_cast<double>(std::abs(difference)) + inner.radius;
  if (error == 0) return 0;
  return outer.radius > 0 ? error / outer.radius : std::numeric_limits<double>::infinity();
}

bool close(double a, double b, double relative, double absolute) {
  if (a == b) return true;
  if (!std::isfinite(a) || !std::isfinite(b)) return false;
  return std::abs(a - b) <= relative * std::max(std::abs(a), std::abs(b)) + absolute;
}

/// The arrays from which the contract derives its bound.
void check_arrays(const RowTruth& row, const RowTruth& exact, bool softcap) {
  REQUIRE(row.keys.first == exact.keys.first);
  REQUIRE(row.keys.last == exact.keys.last);
  REQUIRE(row.visible == exact.visible);
  for (std::size_t n = 0; n < row.score.size(); ++n) {
    const double radius = row.score_radius + exact.score_radius;
    CHECK(close(row.score[n], exact.score[n], 0x1p-52, radius));
    CHECK(close(row.dot[n], exact.dot[n], 0x1p-52, 0x1p-80 * exact.abs_dot[n]));
    CHECK(row.abs_dot[n] >= exact.abs_dot[n] * (1 - 0x1p-50));
    CHECK(row.abs_dot[n] <= exact.abs_dot[n] * (1 + 0x1p-25) + 0x1p-1000);
    if (softcap) CHECK(close(row.capped[n], exact.capped[n], 0x1p-40, 0x1p-80));
    if (!row.alibi.empty()) CHECK(row.alibi[n] == exact.alibi[n]);
    if (!row.bias.empty()) CHECK(row.bias[n] == exact.bias[n]);
    CHECK(close(row.log_p[n], exact.log_p[n], 0x1p-50, 0x1p-40));
    CHECK(close(row.p[n], exact.p[n], 0x1p-40, 0x1p-1074));
  }
  CHECK(close(row.log_p_sink, exact.log_p_sink, 0x1p-50, 0x1p-40));
}

/// The row by intervals, as narrow as it takes to judge `row`.
RowTruth narrow_interval(const Problem& problem, const RowTruth& row) {
  RowTruth exact;
  for (unsigned bits = 256; bits <= 8192; bits *= 2) {
    interval_row(problem, row.b, row.h, row.i, bits, exact);
    // The middle of an interval is kept to about 2^-106 of its size, whatever the number of bits.
    if (!(exact.lse.radius > 0x1p-104 * (1 + std::abs(exact.lse.hi)))) break;
  }
  return exact;
}

void compare(const Problem& problem, const RowTruth& row, Tally& tally) {
  ++tally.rows;
  const bool escalates =
      row.not_applicable.empty() && !row.empty() && !std::isfinite(row.lse.radius);
  if (escalates) {
    ++tally.escalated;
    for (const Certified& element : row.out) CHECK(!std::isfinite(element.radius));
    return;
  }
  const RowTruth exact = narrow_interval(problem, row);
  REQUIRE(row.not_applicable == exact.not_applicable);
  if (!row.not_applicable.empty()) return;
  if (row.empty()) {
    CHECK(row.lse.hi == -std::numeric_limits<double>::infinity());
    return;
  }
  const auto judge = [&](const Certified& outer, const Certified& inner) {
    ++tally.elements;
    const double share = share_of_radius(outer, inner);
    tally.largest_share = std::max(tally.largest_share, share);
    if (!(share <= 1)) ++tally.outside;
  };
  judge(row.lse, exact.lse);
  for (std::size_t c = 0; c < row.out.size(); ++c) judge(row.out[c], exact.out[c]);
  check_arrays(row, exact, problem.spec.softcap > 0);
}

void compare_problem(const Problem& problem, Precision precision, Tally& tally) {
  for (std::int64_t b = 0; b < problem.batches; ++b) {
    for (std::int64_t kv = 0; kv < problem.kv_heads; ++kv) {
      const HeadTruth head(problem, b, kv, precision);
      std::vector<HeadTruth::RowId> ids;
      for (std::int64_t h = kv * problem.group(); h < (kv + 1) * problem.group(); ++h) {
        for (std::int64_t i = 0; i < problem.queries; ++i) ids.push_back({h, i});
      }
      for (std::size_t n = 0; n < ids.size(); n += HeadTruth::kRows) {
        const std::size_t count = std::min<std::size_t>(HeadTruth::kRows, ids.size() - n);
        std::vector<RowTruth> rows(count);
        head.rows(std::span(ids).subspan(n, count), rows.data());
        for (const RowTruth& row : rows) compare(problem, row, tally);
      }
    }
  }
}

TEST_CASE("the interval of every element lies inside double-double plus and minus its radius") {
  for (int f = 0; f < kFamilies; ++f) {
    const auto family = static_cast<Family>(f);
    if (!wanted(family)) continue;
    Tally tally;
    std::mt19937_64 random(2024 + static_cast<std::uint64_t>(f));
    for (std::uint64_t seed = 1; tally.elements < elements_a_family(); ++seed) {
      const Shape shape = random_shape(random);
      INFO(describe(family, shape, seed));
      const OwnedProblem owned = make_problem(family, shape, seed);
      const Precision precision = seed % 2 == 0 ? Precision::fast : Precision::tight;
      const long before = tally.outside;
      compare_problem(owned.problem, precision, tally);
      CHECK(tally.outside == before);
      if (seed > 40 && tally.elements * 20 < tally.rows)
        break;  // a family nearly all of whose rows escalate
    }
    std::printf(
        "%-24s %8ld elements, %ld outside, largest error %.3f of the radius, %ld of %ld rows to "
        "intervals\n",
        std::string(name(family)).c_str(), tally.elements, tally.outside, tally.largest_share,
        tally.escalated, tally.rows);
  }
}

}  // namespace
}  // namespace ringproof::test
