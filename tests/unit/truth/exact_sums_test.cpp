// Sums that the truth takes to be exact: dot products of few bits (Lemma 6b) or in parts (Lemma
// 6c), and weights cut into slices (Lemma 15b), just inside their conditions and just outside,
// against interval arithmetic.
#include <cmath>
#include <cstdio>

#include "oracle/truth/dot_parts.hpp"
#include "oracle/truth/truth.hpp"
#include "oracle/truth/unit_of.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/truth/families.hpp"

namespace ringproof::test {
namespace {

using namespace oracle;

Shape one_row(std::int64_t keys, std::int64_t dim) {
  Shape shape;
  shape.queries = 1;
  shape.keys = keys;
  shape.head_dim = shape.value_dim = dim;
  shape.q_type = shape.kv_type = DType::f64;
  shape.scale = 1;
  return shape;
}

using Values = std::vector<double>;

/// One row of given numbers, [D], [keys, D] and [keys, Dv].
OwnedProblem problem_of(const Shape& shape, const Values& q, const Values& k, const Values& v) {
  OwnedProblem owned = make_problem(Family::randn, shape, 1);
  Problem& problem = owned.problem;
  problem.q = owned.tensor(shape.q_type, {1, 1, 1, shape.head_dim}, q);
  problem.k = owned.tensor(shape.kv_type, {1, 1, shape.keys, shape.head_dim}, k);
  problem.v = owned.tensor(shape.kv_type, {1, 1, shape.keys, shape.value_dim}, v);
  return owned;
}

RowTruth row_of(const Problem& problem, Precision precision = Precision::fast) {
  RowTruth row;
  const HeadTruth::RowId id{0, 0};
  HeadTruth(problem, 0, 0, precision).rows({&id, 1}, &row);
  return row;
}

/// The largest error of the row as a share of its radius.
double share(const Problem& problem, const RowTruth& row) {
  RowTruth exact;
  interval_row(problem, 0, 0, 0, 512, exact);
  double largest = 0;
  const auto judge = [&](const Certified& outer, const Certified& inner) {
    const double error =
        std::abs((outer.hi - inner.hi) + (outer.lo - inner.lo)) * (1 - 0x1p-50) - inner.radius;
    if (error > 0) largest = std::max(largest, error / outer.radius);
  };
  judge(row.lse, exact.lse);
  for (std::size_t c = 0; c < row.out.size(); ++c) judge(row.out[c], exact.out[c]);
  return largest;
}

TEST_CASE("the lowest bit of a number is found, subnormal numbers included") {
  CHECK(unit_of(1) == 0);
  CHECK(unit_of(-12) == 2);
  CHECK(unit_of(0x1.8p-1000) == -1001);
  CHECK(unit_of(1 + 0x1p-52) == -52);
  CHECK(unit_of(0x1p-1074) == -1074);
  CHECK(unit_of(0x1p-1022 + 0x1p-1070) == -1070);
  CHECK(unit_of(0x1p1023) == 1023);
  CHECK(unit_of(-0.0) == kUnitOfZero);
}

TEST_CASE("a dot product of 53 bits is exact, one of 54 is not taken for it") {
  Shape shape = one_row(1, 2);
  shape.scale = 0x1p-52;
  for (const Precision precision : {Precision::fast, Precision::tight}) {
    for (const double large : {0x1p51, 0x1p52 - 1, 0x1p52, 0x1p53 - 1, 0x1p53, 0x1p53 + 2}) {
      const OwnedProblem owned = problem_of(shape, {large, 1}, {1, 1}, {1, 1});
      INFO(large);
      const RowTruth row = row_of(owned.problem, precision);
      CHECK(share(owned.problem, row) <= 1);
      // The exact sum leaves no part of a score's error beyond rounding to its high word.
      CHECK(row.abs_dot[0] >= (large + 1) * shape.scale);
    }
  }
}

TEST_CASE("a number is cut towards zero at a power of two") {
  std::mt19937_64 random(6);
  for (int n = 0; n < 20000; ++n) {
    const double x = std::ldexp(normal(random), static_cast<int>(random() % 30));
    const double part = cut_at(x, 0x1p-10);
    CHECK(part == std::trunc(x * 0x1p10) * 0x1p-10);
    CHECK(cut_at(part, 0x1p-10) == part);
  }
}

/// A number of binary32 of at most 2^exponent: all bits set, or random ones.
double full(std::mt19937_64& random, int exponent, bool all_bits) {
  const double some = std::floor(0x1p23 * (1 + static_cast<double>(random() >> 11) * 0x1p-53));
  return std::ldexp(all_bits ? 0x1p24 - 1 : some, exponent - 24);
}

TEST_CASE("dot products in parts stay inside the radius of products at the edge of exactness") {
  std::mt19937_64 random(21);
  double largest = 0;
  for (int n = 0; n < 160; ++n) {
    Shape shape = one_row(40, 8 + 8 * static_cast<std::int64_t>(random() % 16));
    shape.q_type = shape.kv_type = DType::f32;
    const bool all_bits = n % 2 == 0, one_sign = n % 4 < 2;
    // Large numbers of one sign make the largest sums, a few small ones the lowest bits: those of
    // the last places, or beyond. More small ones would leave the subtile to other sums.
    const int far_q = static_cast<int>(random() % 16), far_k = static_cast<int>(random() % 16);
    const auto draw = [&](std::int64_t count, int far, unsigned few) {
      Values values;
      for (std::int64_t t = 0; t < count; ++t) {
        const double x = full(random, random() % few == 0 ? -far : 0, all_bits);
        values.push_back(one_sign || random() % 2 == 0 ? x : -x);
      }
      return values;
    };
    const Values q = draw(shape.head_dim, far_q, 16);
    const Values k = draw(shape.head_dim * shape.keys, far_k, 256);
    const Values v(static_cast<std::size_t>(shape.keys * shape.value_dim), 1.0);
    shape.scale = std::ldexp(1.0, n % 5 - 3);
    const OwnedProblem owned = problem_of(shape, q, k, v);
    INFO(n << ": D = " << shape.head_dim << ", " << far_q << ", " << far_k);
    const double error = share(owned.problem, row_of(owned.problem));
    CHECK(error <= 1);
    largest = std::max(largest, error);
  }
  std::printf("dot products in parts: largest error %.3f of the radius\n", largest);
}

TEST_CASE("a query that leaves a rest nearly everywhere is not cut") {
  std::mt19937_64 random(22);
  for (int n = 0; n < 12; ++n) {
    Shape shape = one_row(40, 32);
    shape.q_type = shape.kv_type = DType::f32;
    Values q, k;
    for (std::int64_t t = 0; t < shape.head_dim; ++t) {
      q.push_back(full(random, t == 0 ? 0 : -20, false));
    }
    for (std::int64_t t = 0; t < shape.head_dim * shape.keys; ++t) {
      k.push_back(full(random, 0, false));
    }
    const Values v(static_cast<std::size_t>(shape.keys * shape.value_dim), 1.0);
    const OwnedProblem owned = problem_of(shape, q, k, v);
    CHECK(share(owned.problem, row_of(owned.problem)) <= 1);
  }
}

TEST_CASE("products that underflow are not taken for exact") {
  Shape shape = one_row(2, 2);
  shape.scale = 0x1p1000;
  for (const double small : {0x1p-1022, 0x1.8p-1022, 0x1p-1060, 0x1.4p-1070}) {
    for (const double factor : {1.0, 0x1p-1, 0x1p-14, 0x1.8p-20}) {
      const OwnedProblem owned =
          problem_of(shape, {small, small}, {factor, 1, 1, factor}, {1, 2, 3, 4});
      INFO(small << " " << factor);
      const RowTruth row = row_of(owned.problem);
      if (std::isfinite(row.lse.radius)) CHECK(share(owned.problem, row) <= 1);
    }
  }
}

TEST_CASE("a magnitude is an upper bound also where its scale makes it underflow") {
  Shape shape = one_row(2, 1);
  for (const double scale : {0x1p-2, -0x1p-7, 0x1p-40}) {
    shape.scale = scale;
    const OwnedProblem owned = problem_of(shape, {0x1p-1000}, {0x1p-73, 0}, {1, 2});
    CHECK(row_of(owned.problem).abs_dot[0] > 0);
    const OwnedProblem zero = problem_of(shape, {1}, {1, 0}, {1, 2});
    CHECK(row_of(zero.problem).abs_dot[1] == 0);
  }
}

TEST_CASE("an exact row keeps its bits beside one that is not") {
  Shape shape = one_row(40, 8);
  shape.queries = 2;
  OwnedProblem owned = make_problem(Family::randn, shape, 3);
  std::mt19937_64 random(4);
  const auto integers = [&](std::int64_t count) {
    Values values;
    for (std::int64_t n = 0; n < count; ++n) {
      values.push_back(static_cast<double>(static_cast<int>(random() % 17) - 8) / 8);
    }
    return values;
  };
  Values q = integers(16);
  for (std::size_t t = 8; t < 16; ++t) q[t] = normal(random);  // the second row has 53 bits
  owned.problem.q = owned.tensor(DType::f64, {1, 1, 2, 8}, q);
  owned.problem.k = owned.tensor(DType::f64, {1, 1, 40, 8}, integers(320));
  const HeadTruth head(owned.problem, 0, 0, Precision::fast);
  const HeadTruth::RowId ids[] = {{0, 0}, {0, 1}};
  RowTruth together[2], alone;
  head.rows(ids, together);
  head.rows({ids, 1}, &alone);
  CHECK(alone.lse.hi == together[0].lse.hi);
  CHECK(alone.lse.lo == together[0].lse.lo);
  CHECK(alone.lse.radius == together[0].lse.radius);
  CHECK(alone.dot == together[0].dot);
  CHECK(alone.score_radius == together[0].score_radius);
  CHECK(together[0].lse.radius < together[1].lse.radius);
}

TEST_CASE("sliced weights stay inside their radius up to the widest V that is sliced") {
  std::mt19937_64 random(11);
  double largest = 0;
  for (int digits = 1; digits <= 40; ++digits) {  // slices are given up on the way
    for (int kind = 0; kind < 4; ++kind) {
      Shape shape = one_row(130, 3);
      Values q(3, 1.0), k, v;
      for (std::int64_t j = 0; j < shape.keys; ++j) {
        // Equal scores make the largest sums; random ones fill every bit of the weights.
        for (int t = 0; t < 3; ++t) k.push_back(kind % 2 == 0 ? 0 : -std::abs(normal(random)) / 9);
        for (int t = 0; t < 3; ++t) {
          const double most = std::ldexp(1.0, digits) - 1;
          const double any = std::floor(most * static_cast<double>(random() >> 11) * 0x1p-53);
          v.push_back(kind < 2 ? most - t : (random() % 2 == 0 ? any : -any));
        }
      }
      const OwnedProblem owned = problem_of(shape, q, k, v);
      INFO(digits << " digits, kind " << kind);
      const double error = share(owned.problem, row_of(owned.problem));
      CHECK(error <= 1);
      largest = std::max(largest, error);
    }
  }
  std::printf("sliced weights: largest error %.3f of the radius\n", largest);
}

}  // namespace
}  // namespace ringproof::test
