// What is held of a head, from which boxes of wrong gradients are made, against the rows and the
// contract that it was taken from.
#include <algorithm>
#include <cmath>

#include "oracle/diagnose/gradient_mutant.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/diagnose/boxes.hpp"
#include "tests/unit/judge/answered_case.hpp"

namespace ringproof::adversary {

namespace {

using oracle::Contract;
using oracle::GradientMutant;
using oracle::GradientPairs;

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

/// Of numbers rounded up in binary32.
bool within(double held, double exact) {
  return held >= exact && (held <= exact * (1 + 0x1p-23) + 0x1p-149 || exact > 0x1p127);
}

/// A drawn head and what is held of it.
struct Held {
  Contract contract;
  Head head;
  JudgedHead judged;
  bool isolated;
  std::optional<GradientPairs> pairs;

  Held(const ContractCase& one, std::uint64_t seed)
      : contract(oracle::read_contract(one.kernel, oracle::Spec{})) {
    std::mt19937_64 random(seed);
    head = draw_head(one, contract, random);
    judged = judged_head(head);
    isolated = contract.backward.mode == oracle::BackwardMode::isolated;
    // Less than the truth promises anything of.
    std::vector<double>& all = isolated ? judged.gradients[0].p : judged.truth[0].p;
    const auto first = std::find_if(all.begin(), all.end(), [](double p) { return p > 0; });
    if (first != all.end()) *first = 0x1p-1010;
    pairs = pairs_of(contract, head, judged);
  }
  double rounding() const { return 0x1p-53 * static_cast<double>(head.value_dim + 1); }
};

void check_head(const Held& held, const oracle::GradientShape& shape) {
  const Head& head = held.head;
  const GradientPairs& pairs = *held.pairs;
  CHECK(pairs.k == head.keys);
  CHECK(pairs.v == head.values);
  CHECK(pairs.largest_key == largest_of(head.keys));
  CHECK(pairs.largest_upstream == largest_of(head.dout));
  double largest_query = 0;
  for (const auto& row : held.judged.gradients) {
    largest_query = std::max(largest_query, largest_of(row.q));
  }
  CHECK(pairs.largest_query == largest_query);
  for (std::int64_t j = 0; j < head.total_keys; ++j) {
    double sum = 0, sizes = 0;
    for (std::int64_t c = 0; c < head.value_dim; ++c) {
      sum += head.values[size(j * head.value_dim + c)];
      sizes += std::fabs(head.values[size(j * head.value_dim + c)]);
    }
    CHECK(pairs.value_sum[size(j)] == sum);
    CHECK(pairs.value_abs_sum[size(j)] == sizes);
    const double budget = shape.relative_query()[j];
    CHECK(std::fabs(std::expm1(pairs.key[size(j)].budget_query) - budget) <= 0x1p-40 * budget);
  }
}

/// D of ones: the sum of what the row puts out, from the given out where there is one; its ED knows
/// how far products with ones may be off.
void check_ones(const Held& held, std::size_t r, const oracle::RowGradientParts& parts,
                const oracle::OnesParts& ones) {
  const oracle::RowTruth& truth = held.judged.truth[r];
  double D = 0, sizes = 0, radius = 0, product = 0;
  for (std::size_t c = 0; c < size(held.head.value_dim); ++c) {
    const std::size_t place = r * size(held.head.value_dim) + c;
    const double out = held.isolated ? held.head.given_out[place] : truth.out[c].hi;
    D += out;
    sizes += std::fabs(out);
    if (!held.isolated) radius += std::fabs(truth.out[c].lo) + truth.out[c].radius;
  }
  radius += held.rounding() * sizes;
  CHECK(std::fabs(ones.D - D) <= 0x1p-50 * sizes);
  CHECK(ones.D_radius >= radius * (1 - 0x1p-40));
  CHECK(ones.D_radius <= radius * (1 + 0x1p-40));
  for (const std::int64_t n : parts.index) {
    product = std::max(product, held.pairs->value_abs_sum[size(truth.keys.first + n)]);
  }
  CHECK(ones.delta_error >= ones.D_radius + held.rounding() * product);
}

void check_pairs(const Held& held, std::size_t r, const oracle::RowGradientParts& parts,
                 const oracle::PairOfHead* of_row) {
  const oracle::RowTruth& truth = held.judged.truth[r];
  const oracle::RowGradients& gradients = held.judged.gradients[r];
  for (std::size_t n = 0; n < parts.index.size(); ++n) {
    const std::size_t place = size(parts.index[n]);
    const oracle::PairOfHead& pair = of_row[size(truth.keys.first) + place];
    const double p = held.isolated ? gradients.p[place] : truth.p[place];
    CHECK(pair.p == std::max(p, 0x1p-980));
    // The difference to a smaller probability is an error.
    const double lost = p < 0x1p-980 ? 0x1p-980 : 0;
    CHECK(pair.dp == gradients.dp[place]);
    CHECK(within(pair.abs_dp, gradients.abs_dp[place]));
    CHECK(within(pair.in_ds, (parts.grown[n] + lost) / pair.p));
    CHECK(within(pair.in_query, (parts.grown_query[n] + lost) / pair.p));
    CHECK(within(pair.in_value, (parts.grown_value[n] + lost) / pair.p));
  }
}

}  // namespace

TEST_CASE("rows whose keys begin later are held at the places of their keys") {
  test::CaseBuilder builder = test::random_case(oracle::DType::f32, {.queries = 9, .keys = 9});
  builder.set("dout",
              test::make_tensor(oracle::DType::f32, {1, 2, 9, 3}, [](std::int64_t) { return 1; }));
  builder.spec = R"({"version": 1, "causal": "top_left", "window": [2, -1]})";
  const oracle::Case input = builder.assemble();
  const Contract contract = oracle::read_contract("bf16-flash", input.problem.spec);
  const GradientPairs pairs = oracle::gradient_pairs(input, contract, 0, 0);
  REQUIRE(pairs.not_evaluated.empty());
  for (const oracle::HeadPairs& head : pairs.heads) {
    for (std::int64_t i = 0; i < 9; ++i) {
      for (std::int64_t j = 0; j < 9; ++j) {
        const bool seen = head.pairs[static_cast<std::size_t>(i * 9 + j)].p > 0;
        CHECK(seen == (j <= i && j >= i - 2));
      }
    }
  }
  GradientMutant form;
  form.rule.ones_for_dout = form.rule.ones_for_dout_in_D = true;
  const oracle::WrongGradients right = wrong_gradients(pairs, {});
  const oracle::WrongGradients ones = wrong_gradients(pairs, form);
  for (std::size_t n = 0; n < right.dq.size(); ++n) {
    CHECK(std::fabs(ones.bound_q[n] - right.bound_q[n]) <= 0x1p-12 * right.bound_q[n]);
  }
}

TEST_CASE("a head with a row that may overflow is not held, and says why") {
  test::CaseBuilder builder = test::random_case(oracle::DType::f16, {.queries = 3, .keys = 4});
  builder.set("dout", test::make_tensor(oracle::DType::f16, {1, 2, 3, 3},
                                        [](std::int64_t n) { return n == 12 ? 65504 : 1; }));
  builder.set("v", test::make_tensor(oracle::DType::f16, {1, 1, 4, 3},
                                     [](std::int64_t n) { return n < 6 ? 100 : -100; }));
  const oracle::Case input = builder.assemble();
  const auto held = [&](const char* contract) {
    return oracle::gradient_pairs(input, oracle::read_contract(contract, input.problem.spec), 0, 0)
        .not_evaluated.empty();
  };
  CHECK(held("fp32"));
  CHECK_FALSE(held("fp16-flash"));
}

TEST_CASE("what is held of a head is what its rows and its contract say") {
  std::uint64_t seed = 0;
  for (const ContractCase& one : backward_cases()) {
    const Held held(one, ++seed);
    if (!held.pairs) continue;
    INFO(one.name);
    const Head& head = held.head;
    const oracle::Problem& problem = held.judged.owned.problem;
    const oracle::BackwardHead arrays(problem, head.keys.data(), head.head_dim, head.values.data(),
                                      head.value_dim);
    const oracle::GradientShape shape(held.contract, problem, 0, 0);
    const oracle::ValueSums sums(problem, arrays);
    check_head(held, shape);
    for (std::size_t r = 0; r < held.judged.truth.size(); ++r) {
      const oracle::RowTruth& truth = held.judged.truth[r];
      const oracle::RowGradients& gradients = held.judged.gradients[r];
      oracle::RowGradientBound bound;
      oracle::RowGradientParts parts(shape, sums);
      bound_row_backward(held.contract, problem, held.judged.given, arrays, truth, gradients, bound,
                         nullptr, nullptr, &parts);
      const oracle::HeadPairs& of = held.pairs->heads[r / size(head.queries)];
      const std::size_t i = r % size(head.queries);
      CHECK(of.rows[i].D == gradients.D);
      CHECK(of.rows[i].dlse == gradients.dlse);
      if (truth.empty() || !parts.bounded) continue;
      check_ones(held, r, parts, of.rows[i].ones);
      check_pairs(held, r, parts, of.pairs.data() + i * size(problem.keys));
    }
  }
}

}  // namespace ringproof::adversary
