// Properties of single rows: what does not depend on company, SIMD target, thread or poison; rows
// at the edge of the definition; and what is exact must be exact.
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "oracle/case/error.hpp"
#include "oracle/truth/truth.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/truth/families.hpp"

namespace ringproof::test {
namespace {

using namespace oracle;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.empty()) return b.empty();  // memcmp must not see a null pointer
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}
bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }
bool same_bits(const Certified& a, const Certified& b) {
  return same_bits(a.hi, b.hi) && same_bits(a.lo, b.lo) && same_bits(a.radius, b.radius);
}

/// Everything a verdict is made of, bit for bit. Rows that must escalate only have to agree on
/// that.
bool same_row(const RowTruth& a, const RowTruth& b) {
  if (a.not_applicable != b.not_applicable || a.out.size() != b.out.size()) return false;
  if (!a.not_applicable.empty()) return true;
  if (!same_bits(a.lse, b.lse)) return false;
  for (std::size_t c = 0; c < a.out.size(); ++c) {
    if (!same_bits(a.out[c], b.out[c])) return false;
  }
  if (!a.empty() && !std::isfinite(a.lse.radius)) return true;
  return same_bits(a.dot, b.dot) && same_bits(a.abs_dot, b.abs_dot) &&
         same_bits(a.capped, b.capped) && same_bits(a.bias, b.bias) &&
         same_bits(a.alibi, b.alibi) && same_bits(a.score, b.score) &&
         same_bits(a.score_radius, b.score_radius) && same_bits(a.log_p, b.log_p) &&
         same_bits(a.p, b.p) && same_bits(a.log_p_sink, b.log_p_sink) &&
         same_bits(a.max_score, b.max_score);
}

/// All rows of a problem, `at_once` in one call, in the order of (b, h, i).
std::vector<RowTruth> all_rows(const Problem& problem, Precision precision, int at_once) {
  std::vector<RowTruth> rows;
  for (std::int64_t b = 0; b < problem.batches; ++b) {
    for (std::int64_t kv = 0; kv < problem.kv_heads; ++kv) {
      const HeadTruth head(problem, b, kv, precision);
      std::vector<HeadTruth::RowId> ids;
      for (std::int64_t h = kv * problem.group(); h < (kv + 1) * problem.group(); ++h) {
        for (std::int64_t i = 0; i < problem.queries; ++i) ids.push_back({h, i});
      }
      for (std::size_t n = 0; n < ids.size(); n += static_cast<std::size_t>(at_once)) {
        const std::size_t count = std::min(static_cast<std::size_t>(at_once), ids.size() - n);
        rows.resize(rows.size() + count);
        head.rows(std::span(ids).subspan(n, count), &rows[rows.size() - count]);
      }
    }
  }
  return rows;
}

void check_same(const std::vector<RowTruth>& a, const std::vector<RowTruth>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t n = 0; n < a.size(); ++n) CHECK(same_row(a[n], b[n]));
}

/// A few problems that together use everything.
template <class F>
void for_each_sample(F&& f) {
  std::mt19937_64 random(5);
  for (int n = 0; n < 3 * kFamilies; ++n) {
    const auto family = static_cast<Family>(n % kFamilies);
    Shape shape = random_shape(random);
    if (n % 5 == 0) shape.keys = 600 + static_cast<std::int64_t>(random() % 200);  // several blocks
    const auto seed = static_cast<std::uint64_t>(n + 1);
    INFO(describe(family, shape, seed));
    f(make_problem(family, shape, seed), n % 2 == 0 ? Precision::fast : Precision::tight);
  }
}

Shape small_shape() {
  Shape shape;
  shape.queries = 3;
  shape.keys = 70;
  return shape;
}

TEST_CASE("a row has the same bits whatever rows are computed with it") {
  for_each_sample([](const OwnedProblem& owned, Precision precision) {
    const auto alone = all_rows(owned.problem, precision, 1);
    check_same(alone, all_rows(owned.problem, precision, 3));
    check_same(alone, all_rows(owned.problem, precision, HeadTruth::kRows));
  });
}

TEST_CASE("every SIMD target gives the same bits") {
  REQUIRE(simd_targets().size() >= 1);
  for_each_sample([](const OwnedProblem& owned, Precision precision) {
    const auto best = all_rows(owned.problem, precision, HeadTruth::kRows);
    for (const std::string& target : simd_targets()) {
      INFO(target);
      force_simd_target(target);
      CHECK(simd_target() == target);
      const auto rows = all_rows(owned.problem, precision, HeadTruth::kRows);
      force_simd_target("");
      check_same(best, rows);
    }
  });
  CHECK_THROWS(force_simd_target("ABACUS"));
}

TEST_CASE("threads that share a head get the same bits") {
  const OwnedProblem owned =
      make_problem(Family::randn, random_shape(*std::make_unique<std::mt19937_64>(3)), 3);
  const auto expected = all_rows(owned.problem, Precision::fast, HeadTruth::kRows);
  std::vector<std::vector<RowTruth>> found(4);
  std::vector<std::thread> threads;
  for (auto& rows : found) {
    threads.emplace_back([&] {
      for (int n = 0; n < 3; ++n) rows = all_rows(owned.problem, Precision::fast, HeadTruth::kRows);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& rows : found) check_same(expected, rows);
}

TEST_CASE("NaN in keys that nobody sees counts as zero, to the last bit") {
  std::mt19937_64 random(17);
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Shape shape = random_shape(random);
    shape.poison = true;
    shape.poison_value = 0;
    const OwnedProblem clean = make_problem(Family::randn, shape, seed);
    shape.poison_value = std::numeric_limits<double>::quiet_NaN();
    const OwnedProblem poisoned = make_problem(Family::randn, shape, seed);
    INFO(describe(Family::randn, shape, seed));
    check_same(all_rows(clean.problem, Precision::fast, HeadTruth::kRows),
               all_rows(poisoned.problem, Precision::fast, HeadTruth::kRows));
  }
}

TEST_CASE("a huge value behind the last key costs no precision") {
  Shape shape = small_shape();
  shape.key_lengths = true;
  const auto rows_with = [&](double padding) {
    OwnedProblem owned = make_problem(Family::randn, shape, 12);
    owned.problem.key_length = {50};
    index_keys(owned.problem);
    for (std::int64_t j = 50; j < shape.keys; ++j) {
      for (std::int64_t c = 0; c < shape.value_dim; ++c) {
        encode(DType::f32, padding, const_cast<std::byte*>(owned.problem.v.address(0, 0, j, c)));
      }
    }
    return all_rows(owned.problem, Precision::fast, 3);
  };
  check_same(rows_with(0), rows_with(0x1p100));
}

TEST_CASE("a huge value that a mask hides costs no precision") {
  Shape shape = small_shape();
  shape.mask = true;
  const auto rows_with = [&](double hidden) {
    OwnedProblem owned = make_problem(Family::randn, shape, 12);
    for (std::int64_t j = 0; j < shape.keys; ++j) {
      for (std::int64_t i = 0; i < shape.queries; ++i) {
        auto* may_attend = const_cast<std::byte*>(owned.problem.mask.address(0, 0, i, j));
        *may_attend = static_cast<std::byte>(j % 3 != 0);
      }
      if (j % 3 != 0) continue;
      for (const Tensor* tensor : {&owned.problem.k, &owned.problem.v}) {
        for (std::int64_t c = 0; c < tensor->shape[3]; ++c) {
          encode(DType::f32, hidden, const_cast<std::byte*>(tensor->address(0, 0, j, c)));
        }
      }
    }
    return all_rows(owned.problem, Precision::fast, 3);
  };
  // Not the same bits: the tile may be summed in another way, but with no larger radius.
  const auto clean = rows_with(0), other = rows_with(0x1p100);
  for (std::size_t n = 0; n < clean.size(); ++n) {
    CHECK(other[n].lse.radius <= clean[n].lse.radius);
    CHECK(std::abs(other[n].lse.hi - clean[n].lse.hi) <= 0x1p-52);
    for (std::size_t c = 0; c < clean[n].out.size(); ++c) {
      CHECK(other[n].out[c].radius <= clean[n].out[c].radius);
      CHECK(std::abs(other[n].out[c].hi - clean[n].out[c].hi) <= 0x1p-52);
    }
  }
}

TEST_CASE("sizes beyond the proof are refused") {
  Shape shape = small_shape();
  shape.queries = shape.keys = 1;
  shape.q_type = shape.kv_type = DType::f8_e4m3;
  shape.head_dim = (1 << 19) + 1;
  const OwnedProblem owned = make_problem(Family::equal_scores, shape, 1);
  CHECK_THROWS_AS(HeadTruth(owned.problem, 0, 0, Precision::fast), BadInput);
}

TEST_CASE("a row that sees a number that is not finite says so") {
  const auto reason_of = [](const char* which) {
    Shape shape = small_shape();
    shape.bias = shape.alibi = shape.sinks = true;
    OwnedProblem owned = make_problem(Family::randn, shape, 2);
    Problem& p = owned.problem;
    const auto spoil = [](const Tensor& t, std::int64_t h, std::int64_t n, std::int64_t d,
                          double value) {
      encode(t.dtype, value, const_cast<std::byte*>(t.address(0, h, n, d)));
    };
    const std::string name = which;
    if (name == "q") spoil(p.q, 0, 1, 4, kInfinity);
    if (name == "k") spoil(p.k, 0, 5, 0, std::nan(""));
    if (name == "v") spoil(p.v, 0, 5, 1, -kInfinity);
    if (name == "bias") spoil(p.bias, 0, 1, 5, kInfinity);
    if (name == "slope") spoil(p.alibi_slopes, 0, 0, 0, std::nan(""));
    if (name == "sink") spoil(p.sinks, 0, 0, 0, std::nan(""));
    if (name == "k" || name == "v") spoil(p.bias, 0, 1, 5, 0);  // the key must be visible
    RowTruth by_interval;
    interval_row(p, 0, 0, 1, 128, by_interval);
    RowTruth row;
    const HeadTruth::RowId id{0, 1};
    HeadTruth(p, 0, 0, Precision::fast).rows({&id, 1}, &row);
    CHECK(row.not_applicable == by_interval.not_applicable);
    return row.not_applicable;
  };
  CHECK(reason_of("nothing").empty());
  CHECK(reason_of("q") == "the query is not finite");
  CHECK(reason_of("k") == "k or v of key 5 is not finite");
  CHECK(reason_of("v") == "k or v of key 5 is not finite");
  CHECK(reason_of("bias") == "the bias of key 5 is not finite");
  CHECK(reason_of("slope") == "the ALiBi slope is not finite");
  CHECK(reason_of("sink") == "the sink is not finite");
}

TEST_CASE("a row that sees nothing is empty, or its sink") {
  Shape shape = small_shape();
  shape.sinks = true;
  OwnedProblem owned = make_problem(Family::randn, shape, 4);
  owned.problem.key_length = {0};
  index_keys(owned.problem);
  const double sink = owned.problem.sinks.at(0, 0, 0, 0);
  for (const RowTruth& row : all_rows(owned.problem, Precision::fast, 2)) {
    CHECK(row.visible == 0);
    CHECK(!row.empty());
    CHECK(same_bits(row.lse, {sink, 0, 0}));
    CHECK(row.log_p_sink == 0);
    for (const Certified& element : row.out) CHECK(same_bits(element, {}));
  }
  owned.problem.sinks = {};
  for (const RowTruth& row : all_rows(owned.problem, Precision::fast, 2)) {
    CHECK(row.empty());
    CHECK(row.lse.hi == -kInfinity);
    for (const Certified& element : row.out) CHECK(same_bits(element, {}));
  }
}

TEST_CASE("a sink of minus infinity weighs nothing, one far above the scores everything") {
  Shape shape = small_shape();
  const OwnedProblem without = make_problem(Family::randn, shape, 6);
  const auto with_sink = [&](double sink) {
    OwnedProblem owned = make_problem(Family::randn, shape, 6);
    owned.problem.sinks = owned.tensor(DType::f64, {1, 1, 1, 1}, {sink});
    return all_rows(owned.problem, Precision::fast, 3);
  };
  check_same(all_rows(without.problem, Precision::fast, 3), with_sink(-kInfinity));
  for (const RowTruth& row : with_sink(1e4)) {
    CHECK(row.lse.hi == 1e4);
    CHECK(row.lse.radius < 1e-26);
    for (const Certified& element : row.out) CHECK(std::abs(element.hi) <= element.radius);
  }
  for (const RowTruth& row : with_sink(-1e4)) {
    CHECK(std::isfinite(row.lse.radius));
    CHECK(row.log_p_sink < -9e3);
  }
}

TEST_CASE("a query of zeros has exact scores and a column of zeros an exact answer") {
  Shape shape = small_shape();
  for (const Precision precision : {Precision::fast, Precision::tight}) {
    for (const RowTruth& row :
         all_rows(make_problem(Family::query_zero, shape, 8).problem, precision, 3)) {
      CHECK(row.score_radius == 0);
      for (const double magnitude : row.abs_dot) CHECK(magnitude == 0);
      for (const double score : row.score) CHECK(score == 0);
    }
    for (const RowTruth& row :
         all_rows(make_problem(Family::value_zero, shape, 8).problem, precision, 3)) {
      CHECK(same_bits(row.out[0], {}));
      CHECK(row.out[1].radius > 0);
    }
  }
}

TEST_CASE("what double-double cannot hold goes to intervals, whole") {
  Shape shape = small_shape();
  shape.q_type = shape.kv_type = DType::f64;
  shape.factors = true;  // binary64 times binary32 is no binary64 number
  for (const RowTruth& row :
       all_rows(make_problem(Family::randn, shape, 9).problem, Precision::fast, 3)) {
    CHECK(row.lse.radius == kInfinity);
    for (const Certified& element : row.out) CHECK(element.radius == kInfinity);
  }
  shape.factors = false;
  shape.alibi = true;
  OwnedProblem far = make_problem(Family::randn, shape, 9);
  far.problem.position_q.assign(3, (1LL << 62) + 1);  // distances that no binary64 number holds
  far.problem.position_k.assign(70, -(1LL << 62) - 3);
  index_keys(far.problem);
  for (const RowTruth& row : all_rows(far.problem, Precision::fast, 3)) {
    CHECK(row.lse.radius == kInfinity);
    RowTruth exact;
    interval_row(far.problem, 0, row.h, row.i, 128, exact);
    CHECK(std::isfinite(exact.lse.radius));
    CHECK(exact.alibi[0] == -far.problem.alibi_slopes.at(0, 0, 0, 0) * 0x1p63);
  }
}

TEST_CASE("interval rows get narrower with every step of the ladder") {
  Shape narrow = small_shape();
  narrow.keys = 12;
  narrow.head_dim = narrow.value_dim = 4;
  const OwnedProblem owned = make_problem(Family::huge_scores_tiny_gaps, narrow, 3);
  double before = kInfinity;
  for (const unsigned bits : {100U, 200U, 400U, 1000U, 2000U, 4000U, 8000U, 100000U}) {
    RowTruth row;
    interval_row(owned.problem, 0, 0, 1, bits, row);
    CHECK(row.out[0].radius <= before);
    before = row.out[0].radius;
  }
  CHECK(before < 1e-30);
}

}  // namespace
}  // namespace ringproof::test
