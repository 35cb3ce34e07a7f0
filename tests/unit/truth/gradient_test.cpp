// Properties of the backward pass: what does not depend on SIMD target, poison, selection or
// grouping; rows and keys at the edge of the definition; and what is exact must be exact.
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "tests/support/catch.hpp"
#include "tests/unit/truth/families.hpp"
#include "tests/unit/truth/gradient_rows.hpp"

namespace ringproof::test {
namespace {

using namespace oracle;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool same_bits(const Certified& a, const Certified& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}
bool same_bits(const std::vector<Certified>& a, const std::vector<Certified>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0);
}
bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

bool same_row(const RowGradients& a, const RowGradients& b) {
  if (a.not_applicable != b.not_applicable || a.failed != b.failed) return false;
  if (!a.not_applicable.empty() || a.failed) return true;
  return a.D == b.D && a.D_radius == b.D_radius && a.dp_radius == b.dp_radius &&
         a.ds_radius == b.ds_radius && same_bits(a.dp, b.dp) && same_bits(a.abs_dp, b.abs_dp) &&
         same_bits(a.factor, b.factor) && same_bits(a.ds, b.ds) && same_bits(a.p, b.p) &&
         same_bits(a.dbias, b.dbias) && same_bits(a.dq, b.dq) && same_bits(a.dsink, b.dsink);
}

bool same_sums(const Problem& problem, const GradientSums& a, const GradientSums& b) {
  for (std::int64_t j = 0; j < problem.keys; ++j) {
    if (a.seen(j) != b.seen(j) || a.not_applicable(j) != b.not_applicable(j)) return false;
    for (std::int64_t d = 0; d < problem.head_dim; ++d) {
      if (!same_bits(a.dk(j, d), b.dk(j, d))) return false;
    }
    for (std::int64_t c = 0; c < problem.value_dim; ++c) {
      if (!same_bits(a.dv(j, c), b.dv(j, c))) return false;
    }
  }
  return true;
}

void check_same(const Problem& problem, const Backward& a, const Backward& b) {
  REQUIRE(a.gradients.size() == b.gradients.size());
  for (std::size_t n = 0; n < a.gradients.size(); ++n) {
    CHECK(same_row(a.gradients[n], b.gradients[n]));
  }
  for (std::size_t n = 0; n < a.sums.size(); ++n) {
    CHECK(same_sums(problem, a.sums[n], b.sums[n]));
  }
}

/// Problems that together use everything.
template <class F>
void for_each_sample(F&& f) {
  std::mt19937_64 random(6);
  for (int n = 0; n < kFamilies; ++n) {
    const auto family = static_cast<Family>(n);
    Shape shape = random_shape(random);
    if (n % 7 == 0) shape.keys = 600 + static_cast<std::int64_t>(random() % 100);  // several blocks
    const auto seed = static_cast<std::uint64_t>(n + 1);
    const bool isolated = n % 3 == 1;
    if (isolated) {  // its given answers come from intervals, which are slow
      shape.keys = std::min<std::int64_t>(shape.keys, 30);
      shape.head_dim = std::min<std::int64_t>(shape.head_dim, 8);
      shape.value_dim = std::min<std::int64_t>(shape.value_dim, 8);
    }
    INFO(describe(family, shape, seed) << (isolated ? ", isolated" : ""));
    OwnedProblem owned = make_problem(family, shape, seed);
    const Upstream upstream = make_upstream(family, shape, seed, owned, isolated);
    f(owned, upstream, n % 2 == 0 ? Precision::fast : Precision::tight);
  }
}

Shape small_shape() {
  Shape shape;
  shape.queries = 20;
  shape.keys = 70;
  return shape;
}

TEST_CASE("every SIMD target gives the same gradients, bit for bit") {
  for_each_sample([](const OwnedProblem& owned, const Upstream& upstream, Precision precision) {
    const Problem& problem = owned.problem;
    const Backward best = backward(problem, upstream, precision, HeadTruth::kRows, 48, false);
    for (const std::string& target : simd_targets()) {
      INFO(target);
      force_simd_target(target);
      const Backward found = backward(problem, upstream, precision, HeadTruth::kRows, 48, false);
      force_simd_target("");
      check_same(problem, best, found);
    }
  });
}

TEST_CASE("the gradient of a query has the same bits whatever rows are computed with it") {
  for_each_sample([](const OwnedProblem& owned, const Upstream& upstream, Precision precision) {
    const Problem& problem = owned.problem;
    const Backward alone = backward(problem, upstream, precision, 1, 48, false);
    for (const std::int64_t at_once : {3, 16}) {
      const Backward found = backward(problem, upstream, precision, at_once, 48, false);
      for (std::size_t n = 0; n < alone.gradients.size(); ++n) {
        CHECK(same_row(alone.gradients[n], found.gradients[n]));
      }
    }
  });
}

TEST_CASE("however rows are grouped, the sums over them enclose the same numbers") {
  for_each_sample([](const OwnedProblem& owned, const Upstream& upstream, Precision precision) {
    const Problem& problem = owned.problem;
    const Backward one = backward(problem, upstream, precision, HeadTruth::kRows, 1 << 20, false);
    const Backward many = backward(problem, upstream, precision, 5, 7, false);
    for (std::size_t n = 0; n < one.sums.size(); ++n) {
      for (std::int64_t j = 0; j < problem.keys; ++j) {
        REQUIRE(one.sums[n].seen(j) == many.sums[n].seen(j));
        for (std::int64_t d = 0; d < problem.head_dim; ++d) {
          const Certified a = one.sums[n].dk(j, d), b = many.sums[n].dk(j, d);
          const double apart = std::abs((a.hi - b.hi) + (a.lo - b.lo));
          CHECK(!(apart > (a.radius + b.radius) * (1 + 0x1p-50)));
        }
      }
    }
  });
}

TEST_CASE("fixed groups merged in order give the same bits from any number of threads") {
  Shape shape = small_shape();
  shape.queries = 70;
  shape.causal = true;
  OwnedProblem owned = make_problem(Family::randn, shape, 21);
  const Upstream upstream = make_upstream(Family::randn, shape, 21, owned);
  const HeadTruth forward(owned.problem, 0, 0, Precision::fast);
  const HeadGradients head(owned.problem, upstream, forward);
  const auto sums_with = [&](int threads) {
    constexpr std::int64_t kGroups = 5, kRowsPerGroup = 14;
    std::vector<GradientSums> groups;
    for (std::int64_t g = 0; g < kGroups; ++g) groups.emplace_back(owned.problem);
    std::vector<std::thread> pool;
    for (int t = 0; t < threads; ++t) {
      pool.emplace_back([&, t] {
        for (std::int64_t g = t; g < kGroups; g += threads) {
          std::vector<HeadTruth::RowId> ids;
          for (std::int64_t r = 0; r < kRowsPerGroup; ++r)
            ids.push_back({0, g * kRowsPerGroup + r});
          std::vector<RowTruth> rows(ids.size());
          std::vector<RowGradients> gradients(ids.size());
          head.rows(ids, rows.data(), gradients.data(), &groups[static_cast<std::size_t>(g)]);
        }
      });
    }
    for (std::thread& thread : pool) thread.join();
    GradientSums all(owned.problem);
    for (const GradientSums& group : groups) all.merge(group);
    return all;
  };
  const GradientSums expected = sums_with(1);
  for (const int threads : {2, 3, 5}) {
    CHECK(same_sums(owned.problem, expected, sums_with(threads)));
  }
}

TEST_CASE("a selection of keys has the bits of all keys, and rows do without sums") {
  Shape shape = small_shape();
  shape.causal = true;
  OwnedProblem owned = make_problem(Family::randn, shape, 5);
  const Upstream upstream = make_upstream(Family::randn, shape, 5, owned);
  const HeadTruth forward(owned.problem, 0, 0, Precision::fast);
  const HeadGradients head(owned.problem, upstream, forward);
  std::vector<std::uint8_t> wanted(70, 0);
  for (const std::size_t j : {0U, 3U, 4U, 33U, 69U}) wanted[j] = 1;
  GradientSums all(owned.problem), some(owned.problem, wanted);
  std::vector<HeadTruth::RowId> ids;
  for (std::int64_t i = 0; i < 16; ++i) ids.push_back({0, i});
  std::vector<RowTruth> rows(16);
  std::vector<RowGradients> with_all(16), with_some(16), with_none(16);
  head.rows(ids, rows.data(), with_all.data(), &all);
  head.rows(ids, rows.data(), with_some.data(), &some);
  head.rows(ids, rows.data(), with_none.data(), nullptr);
  for (std::size_t n = 0; n < 16; ++n) {
    CHECK(same_row(with_all[n], with_some[n]));
    CHECK(same_row(with_all[n], with_none[n]));
  }
  for (std::int64_t j = 0; j < 70; ++j) {
    REQUIRE(some.wanted(j) == (wanted[static_cast<std::size_t>(j)] != 0));
    CHECK(some.seen(j) == all.seen(j));
    for (std::int64_t d = 0; some.wanted(j) && d < shape.head_dim; ++d) {
      CHECK(same_bits(some.dk(j, d), all.dk(j, d)));
    }
  }
}

TEST_CASE("NaN in keys that nobody sees leaves the gradients alone, and theirs are zero") {
  std::mt19937_64 random(18);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Shape shape = random_shape(random);
    shape.poison = true;
    shape.poison_value = 0;
    OwnedProblem clean = make_problem(Family::randn, shape, seed);
    shape.poison_value = std::numeric_limits<double>::quiet_NaN();
    OwnedProblem poisoned = make_problem(Family::randn, shape, seed);
    INFO(describe(Family::randn, shape, seed));
    const Upstream upstream = make_upstream(Family::randn, shape, seed, clean);
    const Backward a = backward(clean.problem, upstream, Precision::fast, 16, 48, false);
    const Backward b = backward(poisoned.problem, upstream, Precision::fast, 16, 48, false);
    check_same(clean.problem, a, b);
    for (std::int64_t j = 0; j < shape.keys; ++j) {
      if (b.sums[0].seen(j)) continue;
      for (std::int64_t d = 0; d < shape.head_dim; ++d) {
        CHECK(same_bits(b.sums[0].dk(j, d), {0, 0, 0}));
      }
    }
  }
}

TEST_CASE("huge numbers that a mask hides cost the gradients no precision") {
  Shape shape = small_shape();
  shape.mask = true;
  const auto gradients_with = [&](double hidden) {
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
    const Upstream upstream = make_upstream(Family::randn, shape, 12, owned);
    return backward(owned.problem, upstream, Precision::fast, 16, 48, false);
  };
  const OwnedProblem shaped = make_problem(Family::randn, shape, 12);
  check_same(shaped.problem, gradients_with(0), gradients_with(0x1p100));
}

TEST_CASE("what is not finite excludes its row and the keys that the row sees, nothing else") {
  const auto excluded_by = [](const char* which, bool by_interval) {
    Shape shape = small_shape();
    shape.causal = true;
    OwnedProblem owned = make_problem(Family::randn, shape, 2);
    Problem& p = owned.problem;
    Upstream upstream = make_upstream(Family::randn, shape, 2, owned, true);
    if (!std::string(which).starts_with("given")) upstream.given = {};
    const auto spoil = [](const Tensor& t, std::int64_t n, double value) {
      encode(t.dtype, value, const_cast<std::byte*>(t.address(0, 0, n, 0)));
    };
    if (std::string(which) == "q") spoil(p.q, 4, std::nan(""));
    if (std::string(which) == "dout") spoil(upstream.dout, 4, kInfinity);
    if (std::string(which) == "dlse") spoil(upstream.dlse, 4, kInfinity);
    if (std::string(which) == "given out") spoil(upstream.given.out, 4, kInfinity);
    if (std::string(which) == "given lse") spoil(upstream.given.lse, 4, std::nan(""));
    // Row 4 of 20 sees keys 0 to 54 of 70.
    std::string reason;
    long keys = 0;
    if (by_interval) {
      std::vector<std::int64_t> all;
      for (std::int64_t j = 0; j < 70; ++j) all.push_back(j);
      for (const auto& key : interval_key_gradients(p, upstream, 0, 0, all, 128)) {
        keys += key.not_applicable.empty() ? 0 : 1;
      }
    } else {
      const Backward found = backward(p, upstream, Precision::fast, 16, 48);
      for (std::size_t n = 0; n < 20; ++n) {
        if (n != 4) CHECK(found.gradients[n].not_applicable.empty());
      }
      reason = found.gradients[4].not_applicable;
      for (std::int64_t j = 0; j < 70; ++j) keys += found.sums[0].not_applicable(j) ? 1 : 0;
    }
    CHECK(keys == (std::string(which) == "nothing" ? 0 : 55));
    return reason;
  };
  for (const bool by_interval : {false, true}) {
    excluded_by("nothing", by_interval);
    CHECK((excluded_by("q", by_interval) == "the query is not finite" || by_interval));
    CHECK((excluded_by("dout", by_interval) == "dout is not finite" || by_interval));
    CHECK((excluded_by("dlse", by_interval) == "dlse is not finite" || by_interval));
    CHECK((excluded_by("given out", by_interval) == "the given out is not finite" || by_interval));
    CHECK((excluded_by("given lse", by_interval) == "the given lse is not finite" || by_interval));
  }
}

TEST_CASE("a query that sees nothing has zero gradients, and its dout does not matter") {
  Shape shape = small_shape();
  OwnedProblem owned = make_problem(Family::randn, shape, 4);
  owned.problem.key_length = {0};
  index_keys(owned.problem);
  const Upstream upstream = make_upstream(Family::randn, shape, 4, owned);
  encode(upstream.dout.dtype, std::nan(""),
         const_cast<std::byte*>(upstream.dout.address(0, 0, 3, 0)));
  const Backward found = backward(owned.problem, upstream, Precision::fast, 16, 48);
  for (const RowGradients& row : found.gradients) {
    CHECK(row.not_applicable.empty());
    for (const Certified& element : row.dq) CHECK(same_bits(element, {0, 0, 0}));
  }
  for (std::int64_t j = 0; j < shape.keys; ++j) CHECK(!found.sums[0].seen(j));
}

TEST_CASE("a query that sees only its sink hands dlse to it") {
  Shape shape = small_shape();
  shape.sinks = true;
  OwnedProblem owned = make_problem(Family::randn, shape, 4);
  owned.problem.key_length = {0};
  index_keys(owned.problem);
  Upstream upstream = make_upstream(Family::randn, shape, 4, owned, true);
  const std::vector<double> dlse(20, 0.75);
  upstream.dlse = owned.tensor(DType::f32, {1, 1, 20, 1}, dlse);
  const Backward isolated = backward(owned.problem, upstream, Precision::fast, 16, 48);
  for (const RowGradients& row : isolated.gradients) {
    // exp(sink - given lse) dlse, as out is zero.
    const double expected = 0.75 * std::exp(owned.problem.sinks.at(0, 0, 0, 0) - row.lse_given);
    CHECK(std::abs(row.dsink.hi - expected) <= 0x1p-45);
    CHECK(row.dsink.radius <= 0x1p-100);
  }
  upstream.given = {};
  for (const RowGradients& row :
       backward(owned.problem, upstream, Precision::fast, 16, 48).gradients) {
    CHECK(same_bits(row.dsink, {0.75, 0, 0}));
    CHECK(row.p_sink == 1);
  }
}

TEST_CASE("without upstream gradients all gradients are exactly zero") {
  Shape shape = small_shape();
  shape.bias = shape.sinks = true;
  shape.softcap = 2;
  const OwnedProblem owned = make_problem(Family::randn, shape, 9);
  const Backward found = backward(owned.problem, {}, Precision::fast, 16, 48, false);
  for (const RowGradients& row : found.gradients) {
    CHECK(!row.failed);
    for (const Certified& element : row.dq) CHECK(same_bits(element, {0, 0, 0}));
    for (const Certified& element : row.dbias) CHECK((element.hi == 0 && element.radius == 0));
    CHECK((row.dsink.hi == 0 && row.dsink.radius == 0));
  }
  for (std::int64_t j = 0; j < shape.keys; ++j) {
    CHECK(found.sums[0].dk(j, 0).radius == 0);
    CHECK(found.sums[0].dv(j, 0).radius == 0);
  }
}

TEST_CASE("intervals of too few digits say so, and leave the sums alone") {
  Shape shape = small_shape();
  shape.keys = 12;
  shape.q_type = shape.kv_type = DType::f64;
  OwnedProblem owned = make_problem(Family::repeated_maxima, shape, 3);
  owned.problem.spec.scale = 0x1.5555555555555p400;  // the last digits of a score decide all
  const Upstream upstream = make_upstream(Family::randn, shape, 3, owned);
  for (const unsigned bits : {128U, 2048U}) {
    RowTruth row;
    RowGradients gradients;
    GradientSums sums(owned.problem);
    interval_row_gradients(owned.problem, upstream, 0, 0, 1, bits, row, gradients, &sums);
    CHECK(gradients.not_applicable.empty());
    CHECK(gradients.failed == (bits == 128));
    CHECK(sums.seen(0) == (bits != 128));
  }
}

TEST_CASE("certified sums enclose and keep exact zeros") {
  CertifiedSum sum;
  CHECK(same_bits(sum.value(), {0, 0, 0}));
  sum.add({1, 0x1p-60, 0x1p-110});
  sum.add({0, 0, 0});
  CHECK(same_bits(sum.value(), {1, 0x1p-60, 0x1p-110}));
  sum.add({-1, 0, 0});
  CHECK(sum.value().hi == 0x1p-60);
  CHECK(sum.value().radius >= 0x1p-110);
  CHECK(sum.value().radius < 0x1p-101);
  CertifiedSum other;
  other.add({0, 0, kInfinity});
  sum.merge(other);
  CHECK(sum.value().radius == kInfinity);
}

}  // namespace
}  // namespace ringproof::test
