// Sums of gradients and joined probabilities by hand: which rows are neighbours, where a sum is
// cut, what its stores may hold.
#include "oracle/contract/gradient_shape.hpp"

#include <cmath>

#include "oracle/contract/probabilities.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/contract/row_fixture.hpp"

using namespace ringproof;
using namespace ringproof::oracle;

namespace {

/// A ring of two whose gradients are summed in blocks of four terms.
Contract ring_in_blocks() {
  Contract contract = read_contract("fp32-ring2", Spec{});
  Accumulator plain;
  plain.u = 0x1p-24;
  Accumulator& blocked = contract.backward.grad_acc;
  blocked = {};
  blocked.model = Accumulator::Model::blocked;
  blocked.block = 4;
  blocked.u = 0x1p-24;
  blocked.of = {plain};
  return contract;
}

/// What two partial sums add to a budget: one addition and two stores.
double of_partials(const Contract& c) {
  return hat(c.backward.ring.acc_u) +
         2 * hat(std::max(c.backward.ring.store_u, c.backward.group_store_u));
}

/// Equal up to the order in which the parts of a budget are added.
bool close(double a, double b) { return std::abs(a - b) <= 0x1p-50 * b; }

}  // namespace

TEST_CASE("rows of a ring are neighbours if their positions ascend, of one device always") {
  test::RowFixture fixture(12, 4, 1);
  const Contract ring = ring_in_blocks();
  Terms rows = Terms::contiguous(12);
  rows.cuts = 3;
  rows.dealt_to = 2;
  const GradientShape ascending(ring, fixture.problem, 0, 0);
  CHECK(close(ascending.budget_upstream()[0],
              gamma(ring.backward.grad_acc, rows) + of_partials(ring)));
  std::reverse(fixture.problem.position_q.begin(), fixture.problem.position_q.end());
  rows.runs.assign(12, 1);
  rows.first_at_zero = false;
  const GradientShape descending(ring, fixture.problem, 0, 0);
  CHECK(close(descending.budget_upstream()[0],
              gamma(ring.backward.grad_acc, rows) + of_partials(ring)));
  CHECK(descending.budget_upstream()[0] > ascending.budget_upstream()[0]);
  Contract device = ring;
  device.backward.ring.count = 1;
  const GradientShape alone(device, fixture.problem, 0, 0);
  CHECK(alone.budget_upstream()[0] < ascending.budget_upstream()[0]);
}

TEST_CASE("the sum of a sink is cut at the ranks of every batch entry") {
  test::RowFixture fixture(12, 4, 1);
  fixture.problem.batches = 3;
  const Contract ring = ring_in_blocks();
  Terms rows = Terms::contiguous(36);
  rows.runs = {12, 12, 12};
  rows.cuts = 3 * 3;
  rows.dealt_to = 2;
  const double budget = sink_gradient_sum(ring, fixture.problem).budget;
  CHECK(close(budget, gamma(ring.backward.grad_acc, rows) + of_partials(ring)));
  rows.cuts = 3;
  CHECK_FALSE(close(budget, gamma(ring.backward.grad_acc, rows) + of_partials(ring)));
}

TEST_CASE("a sum of gradients is at most what the types hold that it passes through") {
  const test::RowFixture fixture(4, 4, 1);
  const auto largest = [&](const char* contract) {
    return GradientShape(read_contract(contract, Spec{}), fixture.problem, 0, 0).largest_sum;
  };
  CHECK(largest("fp16-flash") == format_of(DType::f32).largest);
  CHECK(largest(R"({"base":"fp16-flash","backward":{"grad_store":["0x1p-11"]}})") == 65504);
  CHECK(largest(R"({"base":"fp16-flash","backward":{"group_store_u":"0x1p-11"}})") == 65504);
}

TEST_CASE("a kernel that may use one or the other probability has the larger of their errors") {
  Probabilities all, other;
  const auto fill = [](Probabilities& x, double first, double second) {
    for (auto* array : {&x.in_ds, &x.in_dv, &x.lost_ds, &x.lost_dv}) *array = {first, second};
    x.common = first;
  };
  for (const double common : {1.0, 3.0}) {
    fill(all, common, 5);
    fill(other, 2, 4);
    join(all, other, 2);
    CHECK(all.common == std::max(common, 2.0));
    for (const auto* array : {&all.in_ds, &all.in_dv, &all.lost_ds, &all.lost_dv}) {
      CHECK(*array == std::vector<double>{std::max(common, 2.0), 5});
    }
  }
}
