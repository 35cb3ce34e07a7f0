// Attention and its gradients written a second time, on binary floating-point numbers of 60 decimal
// digits (digits60.hpp): the answers must fall inside the radius of the double-double rows, and
// finite differences of the second forward pass confirm the gradients of both.
#include <cmath>

#include "tests/support/catch.hpp"
#include "tests/unit/truth/digits60.hpp"
#include "tests/unit/truth/families.hpp"
#include "tests/unit/truth/gradient_rows.hpp"

namespace ringproof::test {
namespace {

using namespace oracle;

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

bool holds(const Certified& certified, const Digits60& value) {
  const Digits60 distance = abs(Digits60(value - certified.hi - certified.lo));
  return distance <=
         Digits60(certified.radius) + abs(value) * Digits60("1e-52") + Digits60("1e-320");
}

/// Families whose scores keep 60 digits meaningful.
constexpr Family kTame[] = {Family::randn,           Family::equal_scores,
                            Family::value_ones,      Family::ascending,
                            Family::descending,      Family::sharp,
                            Family::dominant_key,    Family::unequal_mass,
                            Family::repeated_maxima, Family::huge_scores_tiny_gaps,
                            Family::dot_cancels,     Family::value_cancels,
                            Family::exponent_spread};

TEST_CASE("an independent dense softmax of 60 digits falls inside the radius") {
  std::mt19937_64 random(31);
  long elements = 0, rows = 0;
  for (std::uint64_t seed = 1; seed <= 52; ++seed) {
    const Family family = kTame[seed % std::size(kTame)];
    Shape shape = random_shape(random);
    shape.head_dim = std::min<std::int64_t>(shape.head_dim, 20);
    shape.keys = std::min<std::int64_t>(shape.keys, 60);
    shape.queries = std::min<std::int64_t>(shape.queries, 4);
    shape.finite_mask_bias = shape.poison = false;
    INFO(describe(family, shape, seed));
    const OwnedProblem owned = make_problem(family, shape, seed);
    const Problem& p = owned.problem;
    const Numbers60 numbers(p);
    for (std::int64_t b = 0; b < p.batches; ++b) {
      for (std::int64_t h = 0; h < p.heads; ++h) {
        const HeadTruth head(p, b, p.kv_head(h),
                             seed % 2 == 0 ? Precision::fast : Precision::tight);
        for (std::int64_t i = 0; i < p.queries; ++i) {
          const HeadTruth::RowId id{h, i};
          RowTruth row;
          head.rows({&id, 1}, &row);
          const std::optional<Answer60> expected = answer60(numbers, b, h, i);
          if (!expected || !std::isfinite(row.lse.radius)) continue;
          ++rows;
          CHECK(holds(row.lse, expected->lse));
          for (std::size_t c = 0; c < row.out.size(); ++c) {
            CHECK(holds(row.out[c], expected->out[c]));
            ++elements;
          }
        }
      }
    }
  }
  CHECK(rows > 150);
  CHECK(elements > 1500);
}

/// Every gradient of a problem, from double-double where that certifies, else from intervals.
void check_gradients(const OwnedProblem& owned, const Upstream& upstream, Precision precision,
                     long& elements) {
  const Problem& p = owned.problem;
  const Gradients60 expected = gradients60(Numbers60(p), upstream);
  const Backward found = backward(p, upstream, precision, HeadTruth::kRows, 32);
  const auto check = [&](const Certified& certified, const Digits60& value) {
    if (!std::isfinite(certified.radius)) return;
    CHECK(holds(certified, value));
    ++elements;
  };
  std::vector<CertifiedSum> dsinks(size(p.heads));
  for (std::size_t n = 0; n < found.rows.size(); ++n) {
    const RowTruth& row = found.rows[n];
    const RowGradients& gradients = found.gradients[n];
    REQUIRE(gradients.not_applicable.empty());
    const std::size_t query = size((row.b * p.heads + row.h) * p.queries + row.i);
    for (std::size_t d = 0; d < gradients.dq.size(); ++d) {
      check(gradients.dq[d], expected.dq[query * gradients.dq.size() + d]);
    }
    for (std::size_t j = 0; j < gradients.dbias.size(); ++j) {
      check(gradients.dbias[j], expected.dbias[query * size(p.keys) + size(row.keys.first) + j]);
    }
    dsinks[size(row.h)].add(gradients.dsink);
  }
  for (std::size_t h = 0; p.sinks && h < dsinks.size(); ++h) {
    check(dsinks[h].value(), expected.dsinks[h]);
  }
  for (std::int64_t key = 0; key < p.batches * p.kv_heads * p.keys; ++key) {
    const GradientSums& sums = found.sums[size(key / p.keys)];
    for (std::int64_t d = 0; d < p.head_dim; ++d) {
      check(sums.dk(key % p.keys, d), expected.dk[size(key * p.head_dim + d)]);
    }
    for (std::int64_t c = 0; c < p.value_dim; ++c) {
      check(sums.dv(key % p.keys, c), expected.dv[size(key * p.value_dim + c)]);
    }
  }
}

Shape tame_shape(std::mt19937_64& random) {
  Shape shape = random_shape(random);
  shape.head_dim = std::min<std::int64_t>(shape.head_dim, 8);
  shape.value_dim = std::min<std::int64_t>(shape.value_dim, 8);
  shape.keys = std::min<std::int64_t>(shape.keys, 40);
  shape.queries = std::min<std::int64_t>(shape.queries, 4);
  shape.finite_mask_bias = shape.poison = false;
  return shape;
}

TEST_CASE("an independent backward pass of 60 digits falls inside the radius") {
  std::mt19937_64 random(37);
  long elements = 0;
  for (std::uint64_t seed = 1; seed <= 52; ++seed) {
    const Family family = kTame[seed % std::size(kTame)];
    const Shape shape = tame_shape(random);
    INFO(describe(family, shape, seed));
    OwnedProblem owned = make_problem(family, shape, seed);
    const Upstream upstream = make_upstream(family, shape, seed, owned);
    check_gradients(owned, upstream, seed % 2 == 0 ? Precision::fast : Precision::tight, elements);
  }
  CHECK(elements > 10000);
}

/// Central difference of the objective by one number, good to about 1e-28 of its size.
Digits60 difference(Numbers60& x, const Upstream& upstream, Digits60& number) {
  const Digits60 before = number, step("1e-18");
  number = before + step;
  const Digits60 above = objective60(x, upstream);
  number = before - step;
  const Digits60 below = objective60(x, upstream);
  number = before;
  return (above - below) / (2 * step);
}

TEST_CASE("finite differences of the forward pass are the gradients of the backward pass") {
  std::mt19937_64 random(41);
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    Shape shape = tame_shape(random);
    shape.keys = std::min<std::int64_t>(shape.keys, 12);
    shape.sinks = seed % 2 == 0;
    shape.bias = seed % 3 == 0;
    shape.softcap = seed % 4 == 0 ? 1.5 : 0;
    INFO(describe(Family::randn, shape, seed));
    OwnedProblem owned = make_problem(Family::randn, shape, seed);
    const Upstream upstream = make_upstream(Family::randn, shape, seed, owned);
    Numbers60 x(owned.problem);
    const Backward found =
        backward(owned.problem, upstream, Precision::fast, HeadTruth::kRows, 1 << 20);
    const auto check = [&](const Certified& gradient, Digits60& number) {
      const Digits60 slope = difference(x, upstream, number);
      CHECK(abs(Digits60(gradient.hi + Digits60(gradient.lo) - slope)) <=
            gradient.radius + Digits60("1e-22"));
    };
    const RowTruth& row = found.rows.back();
    const RowGradients& gradients = found.gradients.back();
    if (!gradients.failed && !gradients.dq.empty())
      check(gradients.dq[0], x.q[x.q.size() - gradients.dq.size()]);
    for (std::size_t j = 0; j < gradients.dbias.size(); j += 3) {
      const std::size_t at = x.bias.size() - size(owned.problem.keys) + size(row.keys.first) + j;
      if (isfinite(x.bias[at])) check(gradients.dbias[j], x.bias[at]);
    }
    const std::int64_t last = shape.keys - 1;
    check(found.sums.back().dk(last, 0), x.k[x.k.size() - size(shape.head_dim)]);
    check(found.sums.back().dv(last, 0), x.v[x.v.size() - size(shape.value_dim)]);
    if (!x.sinks.empty()) {
      CertifiedSum sum;
      for (std::size_t n = 0; n < found.rows.size(); ++n) {
        // The objective leaves out rows that see no key.
        if (found.rows[n].h == 0 && found.rows[n].visible > 0) sum.add(found.gradients[n].dsink);
      }
      check(sum.value(), x.sinks[0]);
    }
  }
}

}  // namespace
}  // namespace ringproof::test
