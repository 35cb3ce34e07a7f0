// Upstream gradients for the families of families.hpp, and answers a kernel might have given.
#include <algorithm>
#include <cmath>

#include "tests/unit/truth/families.hpp"

namespace ringproof::test {

using namespace oracle;

namespace {

using Values = std::vector<double>;

/// The truth with a kernel's error, rounded. What a row that sees nothing holds does not matter.
GivenForward given_forward(const Shape& shape, std::mt19937_64& random, OwnedProblem& owned) {
  const double base = owned.problem.spec.lse_base == LseBase::two ? 1.4426950408889634 : 1.0;
  Values out, lse;
  for (std::int64_t b = 0; b < shape.batches; ++b) {
    for (std::int64_t h = 0; h < shape.heads; ++h) {
      for (std::int64_t i = 0; i < shape.queries; ++i) {
        RowTruth row;
        interval_row(owned.problem, b, h, i, 128, row);
        const bool known = row.not_applicable.empty() && std::isfinite(row.lse.hi);
        lse.push_back(known ? row.lse.hi * base + 0x1p-9 * normal(random) : 0);
        for (std::size_t c = 0; c < static_cast<std::size_t>(shape.value_dim); ++c) {
          const bool finite = known && std::isfinite(row.out[c].hi);
          out.push_back(finite ? row.out[c].hi * (1 + 0x1p-10 * normal(random)) : 0);
        }
      }
    }
  }
  return {
      owned.tensor(shape.q_type, {shape.batches, shape.heads, shape.queries, shape.value_dim}, out),
      owned.tensor(DType::f32, {shape.batches, shape.heads, shape.queries, 1}, lse),
      owned.problem.spec.lse_base.value_or(LseBase::e)};
}

}  // namespace

Upstream make_upstream(Family family, const Shape& shape, std::uint64_t seed, OwnedProblem& owned,
                       bool given) {
  std::mt19937_64 random(seed + 1000003);
  const std::int64_t rows = shape.batches * shape.heads * shape.queries;
  const double size = family == Family::huge ? 1e4 : family == Family::tiny ? 0x1p-12 : 1;
  Values dout(static_cast<std::size_t>(rows * shape.value_dim));
  Values dlse(static_cast<std::size_t>(rows));
  for (double& value : dlse) value = normal(random) * size;
  for (double& value : dout) {
    value = normal(random) * size;
    if (family == Family::random_bits) value = random_finite(random, shape.q_type);
    if (family == Family::exponent_spread) {
      value = std::ldexp(value, static_cast<int>(random() % 24) - 12);
    }
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    if (random() % 5 != 0) continue;
    std::fill_n(dout.begin() + row * shape.value_dim, shape.value_dim, 0.0);
    if (random() % 2 == 0) dlse[static_cast<std::size_t>(row)] = 0;
  }
  Upstream upstream;
  upstream.dout = owned.tensor(shape.q_type,
                               {shape.batches, shape.heads, shape.queries, shape.value_dim}, dout);
  if (random() % 3 != 0) {
    upstream.dlse = owned.tensor(DType::f32, {shape.batches, shape.heads, shape.queries, 1}, dlse);
  }
  if (given) upstream.given = given_forward(shape, random, owned);
  return upstream;
}

}  // namespace ringproof::test
