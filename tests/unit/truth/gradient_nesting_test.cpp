// The promise of the backward pass: for every input family and every part of the score rule the
// exact gradients, as narrow intervals, lie inside the double-double numbers and their radius.
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "tests/support/catch.hpp"
#include "tests/unit/truth/families.hpp"
#include "tests/unit/truth/gradient_rows.hpp"

namespace ringproof::test {
namespace {

using namespace oracle;

long elements_a_family() {
  const char* wanted = std::getenv("RINGPROOF_TRUTH_ELEMENTS");
  return wanted != nullptr ? std::atol(wanted) : 1200;
}

struct Tally {
  long elements = 0, outside = 0, rows = 0, failed = 0;
  double largest_share = 0;  // of the radius that the true error takes

  void judge(const Certified& outer, const Certified& inner) {
    if (std::isinf(inner.radius)) return;
    ++elements;
    const double share = share_of_radius(outer, inner);
    largest_share = std::max(largest_share, share);
    if (!(share <= 1)) ++outside;
  }

  /// Upper bound of |a - b| over all b of the interval `inner`, as a share of a's radius.
  static double share_of_radius(const Certified& outer, const Certified& inner) {
    const long double difference = (static_cast<long double>(outer.hi) - inner.hi) +
                                   (static_cast<long double>(outer.lo) - inner.lo);
    const double error = static_cast<double>(std::abs(difference)) + inner.radius;
    if (error == 0) return 0;
    return outer.radius > 0 ? error / outer.radius : std::numeric_limits<double>::infinity();
  }
};

bool close(double a, double b, double relative, double absolute) {
  return a == b || std::abs(a - b) <= relative * std::max(std::abs(a), std::abs(b)) + absolute;
}

/// Bits at which the intervals are about as narrow as a pair of binary64 numbers can say.
unsigned bits_for(Family family) {
  return family == Family::random_bits || family == Family::huge ? 2048 : 256;
}

void compare_row(const Problem& problem, const Upstream& upstream, const RowTruth& row,
                 const RowGradients& found, unsigned bits, Tally& tally) {
  ++tally.rows;
  RowTruth forward;
  RowGradients exact;
  interval_row_gradients(problem, upstream, row.b, row.h, row.i, bits, forward, exact, nullptr);
  if (found.failed) {
    ++tally.failed;
    return;
  }
  if (exact.failed) return;
  REQUIRE(found.not_applicable == exact.not_applicable);
  if (!found.not_applicable.empty()) return;
  for (std::size_t d = 0; d < found.dq.size(); ++d) tally.judge(found.dq[d], exact.dq[d]);
  tally.judge(found.dsink, exact.dsink);
  CHECK(std::abs(found.D - exact.D) + exact.D_radius <= found.D_radius * (1 + 0x1p-40));
  REQUIRE(found.dp.size() == exact.dp.size());
  REQUIRE(found.dbias.size() == exact.dbias.size());
  REQUIRE(found.p.size() == exact.p.size());
  CHECK(close(found.p_sink, exact.p_sink, 0x1p-40, 0x1p-990));
  CHECK(found.dlse == exact.dlse);
  CHECK(close(found.lse_given, exact.lse_given, 0x1p-52, 0));
  for (std::size_t j = 0; j < found.dp.size(); ++j) {
    // The rounded exact number is within half a unit of the exact one.
    const double dp = found.dp_radius + exact.dp_radius, ds = found.ds_radius + exact.ds_radius;
    CHECK(close(found.dp[j], exact.dp[j], 0x1p-52, dp));
    CHECK(close(found.ds[j], exact.ds[j], 0x1p-52, ds));
    CHECK(found.abs_dp[j] >= exact.abs_dp[j] * (1 - 0x1p-50));
    CHECK(found.abs_dp[j] <= exact.abs_dp[j] * (1 + 0x1p-25) + 0x1p-1000);
    if (!found.factor.empty()) CHECK(close(found.factor[j], exact.factor[j], 0, 0x1p-45));
    if (!found.p.empty()) CHECK(close(found.p[j], exact.p[j], 0x1p-40, 0x1p-990));
    if (!found.dbias.empty()) tally.judge(found.dbias[j], exact.dbias[j]);
  }
}

void compare_keys(const Problem& problem, const Upstream& upstream, std::int64_t b, std::int64_t kv,
                  const GradientSums& sums, unsigned bits, Tally& tally) {
  std::vector<std::int64_t> keys;
  for (std::int64_t j = 0; j < problem.keys; ++j) keys.push_back(j);
  const auto exact = interval_key_gradients(problem, upstream, b, kv, keys, bits);
  for (std::int64_t j = 0; j < problem.keys; ++j) {
    const KeyGradients& key = exact[static_cast<std::size_t>(j)];
    REQUIRE(sums.not_applicable(j) == !key.not_applicable.empty());
    if (sums.not_applicable(j)) continue;
    for (std::int64_t d = 0; d < problem.head_dim; ++d) {
      const Certified found = sums.dk(j, d);
      tally.judge(found, key.dk[static_cast<std::size_t>(d)]);
      if (!sums.seen(j)) CHECK((found.hi == 0 && found.lo == 0 && found.radius == 0));
    }
    for (std::int64_t c = 0; c < problem.value_dim; ++c) {
      const Certified found = sums.dv(j, c);
      tally.judge(found, key.dv[static_cast<std::size_t>(c)]);
      if (!sums.seen(j)) CHECK((found.hi == 0 && found.lo == 0 && found.radius == 0));
    }
  }
}

void compare(const Problem& problem, const Upstream& upstream, Precision precision, unsigned bits,
             Tally& tally) {
  const Backward found = backward(problem, upstream, precision, HeadTruth::kRows, 48);
  const Backward raw = backward(problem, upstream, precision, HeadTruth::kRows, 48, false);
  for (std::size_t n = 0; n < raw.rows.size(); ++n) {
    compare_row(problem, upstream, raw.rows[n], raw.gradients[n], bits, tally);
  }
  for (std::int64_t b = 0; b < problem.batches; ++b) {
    for (std::int64_t kv = 0; kv < problem.kv_heads; ++kv) {
      const auto& sums = found.sums[static_cast<std::size_t>(b * problem.kv_heads + kv)];
      compare_keys(problem, upstream, b, kv, sums, bits, tally);
    }
  }
}

TEST_CASE("the interval of every gradient lies inside double-double plus and minus its radius") {
  for (int f = 0; f < kFamilies; ++f) {
    const auto family = static_cast<Family>(f);
    Tally tally;
    std::mt19937_64 random(4048 + static_cast<std::uint64_t>(f));
    for (std::uint64_t seed = 1; tally.elements < elements_a_family() && seed <= 400; ++seed) {
      Shape shape = random_shape(random);
      if (elements_a_family() < 10000) {  // intervals are slow: several small problems
        shape.head_dim = std::min<std::int64_t>(shape.head_dim, 8);
        shape.value_dim = std::min<std::int64_t>(shape.value_dim, 8);
        shape.keys = std::min<std::int64_t>(shape.keys, 30);
        shape.queries = std::min<std::int64_t>(shape.queries, 5);
      }
      OwnedProblem owned = make_problem(family, shape, seed);
      if (seed % 2 == 0) owned.problem.spec.lse_base = LseBase::two;
      const bool isolated = seed % 3 == 0;
      const Upstream upstream = make_upstream(family, shape, seed, owned, isolated);
      INFO(describe(family, shape, seed) << (isolated ? ", isolated" : ""));
      const long before = tally.outside;
      compare(owned.problem, upstream, seed % 4 < 2 ? Precision::fast : Precision::tight,
              bits_for(family), tally);
      CHECK(tally.outside == before);
    }
    std::printf(
        "%-24s %8ld gradients, %ld outside, largest error %.3f of the radius, %ld of %ld "
        "rows to intervals\n",
        std::string(name(family)).c_str(), tally.elements, tally.outside, tally.largest_share,
        tally.failed, tally.rows);
  }
}

}  // namespace
}  // namespace ringproof::test
