// Budgets of sums of gradients (gradient_shape.hpp).
#include "oracle/contract/gradient_shape.hpp"

#include <algorithm>
#include <cmath>

#include "oracle/contract/assumptions.hpp"
#include "oracle/contract/row_budget.hpp"

namespace ringproof::oracle {

namespace {

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// R_b: partial sums of dk, dv, whose terms are query rows, or of dq, whose terms are keys.
std::int64_t partial_sums(std::int64_t ring, std::int64_t chunk, std::int64_t terms) {
  return chunk > 0 ? std::max<std::int64_t>(1, divide_up(terms, chunk)) : ring;
}

/// u_gp
double stored_partial(const Contract::Backward& c) {
  return std::max(c.ring.store_u, c.group_store_u);
}

/// Gamma_g, then R_b - 1 additions and R_b stores, and as much for the heads of a group.
GradientSum summed(const Contract& contract, const Terms& terms, double partials, double heads) {
  const Contract::Backward& c = contract.backward;
  const double addition = hat(c.ring.acc_u), store = hat(stored_partial(c));
  GradientSum sum;
  sum.budget = gamma(c.grad_acc, terms) + (partials - 1) * addition + partials * store;
  if (heads > 1) sum.budget += (heads - 1) * addition + store;
  // A term passes the stores of its own head; underflow comes from those of every head.
  const double additions = heads * partials, stores = heads * (partials + (heads > 1 ? 1 : 0));
  sum.underflow =
      (2 * static_cast<double>(terms.count) + additions + c.grad_scale_roundings + 1) * c.grad_eta +
      (stores + static_cast<double>(c.grad_store.size())) * stored_gradient_underflow(contract);
  return sum;
}

/// Pieces of a sum that start a tile of their own: the ends of shards or chunks. (3)
std::int64_t cuts_of(std::int64_t partials) { return partials > 1 ? 2 * partials - 1 : 0; }

bool sorted_positions(const Problem& problem, std::int64_t b) {
  const auto first = problem.position_q.begin() + b * problem.queries;
  return std::is_sorted(first, first + problem.queries);
}

/// The rows of all heads of a group that see key j; each head has runs of its own.
Terms visible_rows(const Contract& contract, const Problem& problem, std::int64_t b,
                   std::int64_t kv_head, std::int64_t j) {
  const Contract::BackwardRing& ring = contract.backward.ring;
  const std::int64_t group = problem.group();
  const bool travels = ring.count > 1;
  const bool known = problem.spec.ring && problem.spec.ring->layout != RingLayout::striped;
  const bool neighbours = !travels || sorted_positions(problem, b);
  Terms terms;
  terms.first_at_zero = false;
  terms.cuts = group * cuts_of(partial_sums(ring.count, ring.count_rows, problem.queries));
  terms.dealt_to = travels && !known ? ring.count : 1;
  for (std::int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
    bool before = false;
    for (std::int64_t i = 0; i < problem.queries; ++i) {
      const bool sees = visible(problem, b, h, i, j);
      if (sees && before && neighbours) {
        ++terms.runs.back();
      } else if (sees) {
        if (terms.runs.empty()) terms.first_at_zero = i == 0 && neighbours;
        terms.runs.push_back(1);
      }
      before = sees;
      terms.count += sees;
    }
  }
  return terms;
}

}  // namespace

double stored_gradient_underflow(const Contract& contract) {
  const Contract::Backward& c = contract.backward;
  const bool narrow = stored_partial(c) > 0 || !c.grad_store.empty();
  // The contract declares no underflow of these stores. Gradients are stored in the inputs' type.
  const double of_fp16 =
      contract.inputs.dtype == DType::f16 ? format_of(DType::f16).smallest() / 2 : 0.0;
  return narrow ? std::max({c.grad_eta, c.ds_eta, of_fp16}) : c.grad_eta;
}

double largest_gradient_sum(const Contract& contract) {
  const Contract::Backward& c = contract.backward;
  const double eta = stored_gradient_underflow(contract);
  double largest = largest_of_format(c.ring.acc_u, c.grad_eta);
  const auto store = [&](double u) {
    if (u > 0) largest = std::min(largest, largest_of_format(u, eta));
  };
  store(stored_partial(c));
  for (const double u : c.grad_store) store(u);
  return largest;
}

double scale_budget(const Contract& contract) {
  const Contract::Backward& c = contract.backward;
  return c.grad_scale_roundings * hat(contract.softmax.u) + hat(contract.score.scale_const_u) +
         sum_of_hats(c.grad_store);
}

GradientSum query_gradient_sum(const Contract& contract, const Problem& problem,
                               const Terms& terms) {
  const Contract::BackwardRing& ring = contract.backward.ring;
  const std::int64_t partials = partial_sums(ring.count, ring.count_keys, problem.keys);
  Terms cut = terms;
  cut.cuts = std::max(cut.cuts, cuts_of(partials));
  return summed(contract, cut, static_cast<double>(partials), 1);
}

GradientSum key_gradient_sum(const Contract& contract, const Problem& problem, const Terms& terms) {
  const Contract::BackwardRing& ring = contract.backward.ring;
  const std::int64_t partials = partial_sums(ring.count, ring.count_rows, problem.queries);
  return summed(contract, terms, static_cast<double>(partials),
                static_cast<double>(problem.group()));
}

GradientSum sink_gradient_sum(const Contract& contract, const Problem& problem) {
  Terms terms = Terms::contiguous(problem.batches * problem.queries);
  terms.cuts = problem.batches * cuts_of(contract.backward.ring.count);
  if (contract.backward.ring.count > 1) terms.dealt_to = contract.backward.ring.count;
  terms.runs.assign(static_cast<std::size_t>(problem.batches), problem.queries);
  return summed(contract, terms, static_cast<double>(contract.backward.ring.count), 1);
}

GradientSum bias_gradient_sum(const Contract& contract, const Problem& problem,
                              std::int64_t at_one_place) {
  const std::int64_t axes[] = {problem.batches, problem.heads, problem.queries, problem.keys};
  std::int64_t terms = at_one_place;
  for (std::size_t axis = 0; axis < 4; ++axis) {
    if (problem.bias && problem.bias.stride[axis] == 0) terms *= axes[axis];
  }
  if (terms == 1) return {};
  Terms scattered = Terms::contiguous(terms);  // which of them are visible is not asked
  scattered.cuts = terms;
  return summed(contract, scattered, static_cast<double>(contract.backward.ring.count), 1);
}

GradientShape::GradientShape(const Contract& contract, const Problem& problem, std::int64_t b,
                             std::int64_t kv_head, std::span<const std::uint8_t> wanted)
    : head_dim(problem.head_dim),
      value_dim(problem.value_dim),
      scale_or_one(std::max(1.0, scale_of(problem))),
      underflow_unit(contract.backward.grad_eta),
      largest_sum(largest_gradient_sum(contract)) {
  const auto keys = static_cast<std::size_t>(problem.keys);
  place_.assign(keys, -1);
  for (auto* array : {&budget_upstream_, &relative_upstream_, &relative_query_}) {
    array->assign(keys, 0.0);
  }
  const double after_sum = scale_budget(contract) + hat(contract.inputs.load_u);
  for (std::size_t j = 0; j < keys; ++j) {
    if (!wanted.empty() && wanted[j] == 0) continue;
    const Terms rows = visible_rows(contract, problem, b, kv_head, static_cast<std::int64_t>(j));
    const GradientSum sum = key_gradient_sum(contract, problem, rows);
    place_[j] = static_cast<std::int64_t>(underflow_.size());
    underflow_.push_back(rows.count > 0 ? sum.underflow : 0.0);
    if (rows.count == 0) continue;
    budget_upstream_[j] = sum.budget + hat(contract.inputs.load_u_do);
    relative_upstream_[j] = std::expm1(budget_upstream_[j]);
    relative_query_[j] = std::expm1(sum.budget + after_sum);
  }
}

}  // namespace ringproof::oracle
