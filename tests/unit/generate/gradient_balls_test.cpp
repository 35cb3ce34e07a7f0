// Balls of gradients: the exact gradients with the bounds of the contract, every element at its
// place; of what is not known, nothing is said.
#include "oracle/generate/gradient_balls.hpp"

#include <cmath>

#include "tests/unit/judge/gradient_case.hpp"

using namespace ringproof::oracle;
using namespace ringproof::test;

namespace {

using Index = std::int64_t;
constexpr Index kBatches = 2, kHeads = 4, kKvHeads = 2, kQueries = 19, kKeys = 6, kDim = 4,
                kValues = 3;

CaseBuilder balls_case(DType type) {
  CaseBuilder builder = random_case(type, {.batches = kBatches,
                                           .heads = kHeads,
                                           .kv_heads = kKvHeads,
                                           .queries = kQueries,
                                           .keys = kKeys,
                                           .head_dim = kDim,
                                           .value_dim = kValues});
  add_upstream(builder, type);
  return builder;
}

GradientBalls balls_of(const Case& input, const Contract& contract) {
  return gradient_balls(input.problem, {input.dout, input.dlse, {}}, contract);
}

/// Bounds of dk and dv of one KV head, and of dq of its rows, row by row.
struct HeadBoundsByHand {
  std::vector<double> dq, dk, dv;

  HeadBoundsByHand(const Case& input, const Contract& contract, Index b, Index kv) {
    const Problem& p = input.problem;
    const HeadTruth forward(p, b, kv, Precision::fast);
    const Upstream upstream{input.dout, input.dlse, {}};
    const HeadGradients backward(p, upstream, forward);
    const BackwardHead head(p, backward.keys(), backward.keys_stride(), forward.values(),
                            forward.values_stride());
    const GradientShape shape(contract, p, b, kv);
    GradientBoundSums sums(shape);
    for (Index h = kv * p.group(); h < (kv + 1) * p.group(); ++h) {
      for (Index i = 0; i < p.queries; ++i) {
        const HeadTruth::RowId id{h, i};
        RowTruth row;
        RowGradients gradients;
        backward.rows({&id, 1}, &row, &gradients, nullptr);
        RowGradientBound bound;
        bound_row_backward(contract, p, {}, head, row, gradients, bound, &sums);
        dq.insert(dq.end(), bound.dq.begin(), bound.dq.end());
      }
    }
    sums.finish();
    for (Index j = 0; j < p.keys; ++j) {
      for (Index d = 0; d < p.head_dim; ++d) dk.push_back(sums.dk(j, d));
      for (Index c = 0; c < p.value_dim; ++c) dv.push_back(sums.dv(j, c));
    }
  }
};

double largest_of(const Tensor& tensor, Index b, Index h, Index first, Index last) {
  double largest = 0;
  for (Index i = first; i < last; ++i) {
    for (Index d = 0; d < kDim; ++d) largest = std::max(largest, std::abs(tensor.at(b, h, i, d)));
  }
  return largest;
}

bool all_open(const std::vector<GradientBall>& balls, Index first, Index count) {
  return std::all_of(balls.begin() + first, balls.begin() + first + count,
                     [](const GradientBall& ball) { return std::isinf(ball.bound); });
}
bool none_open(const std::vector<GradientBall>& balls, Index first, Index count) {
  return std::none_of(balls.begin() + first, balls.begin() + first + count,
                      [](const GradientBall& ball) { return std::isinf(ball.bound); });
}

}  // namespace

TEST_CASE("balls of gradients hold the truth, with the bounds of the contract") {
  const CaseBuilder builder = balls_case(DType::f32);
  const Case input = builder.assemble();
  const Contract contract = read_contract("fp32", input.problem.spec);
  const GradientBalls balls = balls_of(input, contract);
  const GradientTensors truth =
      gradient_tensors(input.problem, {input.dout, input.dlse, {}}, 128, {});
  const auto holds = [](const std::vector<GradientBall>& all, const IntervalTensor& exact) {
    REQUIRE(all.size() == exact.lo.size());
    for (std::size_t n = 0; n < all.size(); ++n) {
      const double reach = all[n].exact.radius + std::ldexp(std::abs(all[n].exact.hi), -52);
      CHECK(all[n].exact.hi - reach <= exact.lo[n]);
      CHECK(all[n].exact.hi + reach >= exact.hi[n]);
      CHECK(all[n].exact.radius <= 0x1p-60);
    }
  };
  holds(balls.dq, truth.dq);
  holds(balls.dk, truth.dk);
  holds(balls.dv, truth.dv);
  const auto same = [](const std::vector<GradientBall>& all, Index first,
                       const std::vector<double>& bounds) {
    for (std::size_t n = 0; n < bounds.size(); ++n) {
      const double bound = all[static_cast<std::size_t>(first) + n].bound;
      CHECK(std::abs(bound - bounds[n]) <= std::ldexp(bounds[n], -40));
    }
  };
  const TruthTensors forward = truth_tensors(input.problem, LseBase::e, 128, {});
  for (Index b = 0; b < kBatches; ++b) {
    for (Index kv = 0; kv < kKvHeads; ++kv) {
      const HeadBoundsByHand bounds(input, contract, b, kv);
      const Index head = b * kKvHeads + kv;
      same(balls.dq, head * (kHeads / kKvHeads) * kQueries * kDim, bounds.dq);
      same(balls.dk, head * kKeys * kDim, bounds.dk);
      same(balls.dv, head * kKeys * kValues, bounds.dv);
      CHECK(balls.largest_key[static_cast<std::size_t>(head)] ==
            largest_of(input.problem.k, b, kv, 0, kKeys));
    }
    for (Index h = 0; h < kHeads; ++h) {
      for (Index i = 0; i < kQueries; ++i) {
        const Index row = (b * kHeads + h) * kQueries + i;
        const auto n = static_cast<std::size_t>(row);
        CHECK(balls.largest_query[n] == largest_of(input.problem.q, b, h, i, i + 1));
        double D = 0;
        for (Index c = 0; c < kValues; ++c) {
          const auto element = static_cast<std::size_t>(row * kValues + c);
          D += input.dout.at(b, h, i, c) * forward.out.lo[element];
        }
        CHECK(std::abs(balls.row_term[n] - D) <= 0x1p-40);
        CHECK(balls.row_term_radius[n] >= std::ldexp(std::abs(D), -53));
        CHECK(balls.row_term_radius[n] <= 0x1p-40);
      }
    }
  }
}

TEST_CASE("a row of which nothing is known leaves the balls of its keys open") {
  CaseBuilder builder = balls_case(DType::f16);
  const Index row = (1 * kHeads + 3) * kQueries + 2;  // of the last KV head of batch 1
  const Index keys = 3 * kKeys;                       // of that head
  const auto check_open = [&](const char* contract_name) {
    const Case input = builder.assemble();
    const GradientBalls balls = balls_of(input, read_contract(contract_name, input.problem.spec));
    CHECK(all_open(balls.dq, row * kDim, kDim));
    CHECK(none_open(balls.dq, 0, row * kDim));
    CHECK(none_open(balls.dq, (row + 1) * kDim, kDim));
    CHECK(all_open(balls.dk, keys * kDim, kKeys * kDim));
    CHECK(none_open(balls.dk, 0, keys * kDim));
    CHECK(all_open(balls.dv, keys * kValues, kKeys * kValues));
    CHECK(none_open(balls.dv, 0, keys * kValues));
  };
  CaseBuilder right = builder;
  set_value(builder, "q", row * kDim, HUGE_VAL);
  check_open("fp32");
  // A gradient of a score that does not fit the type that it is stored in.
  builder = right;
  for (Index n = 0; n < kKeys * kValues; ++n) {
    set_value(builder, "v", keys * kValues + n, n % 2 == 0 ? 100 : -100);
  }
  for (Index c = 0; c < kValues; ++c) {
    set_value(builder, "dout", row * kValues + c, c % 2 == 0 ? 65504 : -65504);
  }
  check_open("fp16-flash");
}

TEST_CASE("a row that no number of digits certifies is open, too") {
  // Two sums of 2^2040, 2^-1000 and -2^2040 that cancel, under a scale that makes the rest of them
  // too much in 256 digits.
  const double big = 0x1p1020, of_q[] = {big, 1, big}, of_k[] = {big, 0x1p-1000, -big};
  CaseBuilder builder;
  builder.set(
      "q", make_tensor(DType::f64, {1, 2, 1, 3}, [&](Index n) { return n < 3 ? of_q[n] : 0.0; }));
  builder.set("k", make_tensor(DType::f64, {1, 2, 2, 3}, [&](Index n) {
                return n < 6 ? (n < 3 ? of_k[n] : -of_k[n - 3]) : 0.0;
              }));
  builder.set("v", make_tensor(DType::f64, {1, 2, 2, 1}, [](Index n) { return n; }));
  builder.set("dout", make_tensor(DType::f64, {1, 2, 1, 1}, [](Index) { return 1; }));
  builder.spec = R"({"version": 1, "scale": 1e300})";
  const Case input = builder.assemble();
  const GradientBalls balls = balls_of(input, read_contract("fp64", input.problem.spec));
  CHECK(all_open(balls.dq, 0, 3));
  CHECK(all_open(balls.dk, 0, 6));
  CHECK(all_open(balls.dv, 0, 2));
  CHECK(none_open(balls.dq, 3, 3));
  CHECK(balls.row_term[0] == 0);
  CHECK(balls.row_term[1] != 0);
}
