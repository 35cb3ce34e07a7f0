// Boxes of wrong gradients against a second reading of the page, and those of a dO of ones against
// those of the right gradients.
#include <algorithm>
#include <cmath>

#include "oracle/diagnose/gradient_mutant.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/diagnose/boxes.hpp"
#include "tests/unit/diagnose/literal_boxes.hpp"

namespace ringproof::adversary {
namespace {

using oracle::Contract;
using oracle::GradientMutant;
using oracle::GradientPairs;
using test::Real;

constexpr std::int64_t kRanks = 3;

/// Of the first row ED is large, and the signed sum that it multiplies in the first column of dq
/// vanishes.
void cancel_mean(GradientPairs& pairs) {
  oracle::HeadPairs& head = pairs.heads[0];
  head.rows[0].budget.delta_before = 1;
  const auto keys = static_cast<std::size_t>(pairs.keys),
             D = static_cast<std::size_t>(pairs.head_dim);
  const auto weight = [&](std::size_t j) {
    return head.pairs[j].p * (head.derivatives.empty() ? 1 : std::fabs(head.derivatives[j].f));
  };
  std::size_t heaviest = 0;
  double sum = 0;
  for (std::size_t j = 0; j < keys; ++j) {
    sum += weight(j) * pairs.k[j * D];
    if (weight(j) > weight(heaviest)) heaviest = j;
  }
  if (weight(heaviest) > 0) pairs.k[heaviest * D] -= sum / weight(heaviest);
}

/// The derivative of a softcap, known exactly.
void cap(GradientPairs& pairs) {
  for (oracle::HeadPairs& head : pairs.heads) head.derivatives.assign(head.pairs.size(), {0.75, 0});
}

/// Some numbers of a head changed, so that every term of the page counts: scales above 1, formats
/// that some pairs and sums do not fit, a row that nothing is known of.
void vary(std::uint64_t seed, const Head& head, GradientPairs& pairs) {
  const auto of_rows = [&](const auto& change) {
    for (oracle::HeadPairs& one : pairs.heads) {
      for (oracle::RowOfHead& row : one.rows) change(row);
    }
  };
  if (seed % 2 == 1) {
    pairs.scale *= 19;
    of_rows([&](oracle::RowOfHead& row) {
      row.budget.scale_or_one = std::max(1.0, std::fabs(pairs.scale));
    });
  }
  if (seed % 3 == 1) {
    double largest = 0;
    for (const oracle::PairOfHead& pair : pairs.heads[0].pairs) {
      largest = std::max(largest, double{pair.abs_dp});
    }
    if (seed % 4 < 2) pairs.limits.dp = 0.37 * largest;
    if (seed % 4 > 1) pairs.limits.ds = largest / 27;
    if (seed % 4 % 2 == 1) pairs.limits.difference = 1.37 * largest;
  }
  if (seed % 3 == 2) {
    const double of_gradient[] = {pairs.largest_key, pairs.largest_query, 3.7, 1};
    pairs.limits.sum = 0.37 * of_gradient[seed % 4] * pairs.largest_upstream;
  }
  if (seed % 5 == 4) {
    pairs.heads[0].rows[static_cast<std::size_t>(head.queries) - 1].bounded = false;
  }
  if (seed % 4 == 3) {  // a row that is hardly known
    of_rows([](oracle::RowOfHead& row) {
      row.budget.dp_radius = 0x1p-6;
      row.budget.delta_radius = 0x1p-7;
      row.ones.dp_underflow = 0x1p-10;
    });
  }
  if (seed % 6 == 1) cancel_mean(pairs);
  if (seed % 2 == 0) {  // what no format of the list is as bad at
    pairs.sum_underflow = std::max(pairs.sum_underflow, 0x1p-14);
    for (oracle::KeyOfHead& key : pairs.key) key.underflow = std::max(key.underflow, 0x1p-12);
    of_rows([](oracle::RowOfHead& row) {
      row.query_underflow = std::max(row.query_underflow, 0x1p-12);
      row.lost_ds = std::max(row.lost_ds, 0x1p-13);
      row.lost_dv = std::max(row.lost_dv, 0x1p-13);
      row.budget.cast_underflow = std::max(row.budget.cast_underflow, 0x1p-13);
      row.sink.lost = std::max(row.sink.lost, 0x1p-13);
    });
  }
}

/// Forms that the lists make of fitted factors, or of cases with other features.
std::vector<GradientMutant> more_forms(bool exact, std::int64_t keys) {
  const auto another = [keys](std::int64_t i, std::int64_t j) {
    return std::min((i + j) % 3, keys) - 1;
  };
  std::vector<GradientMutant> all(6);
  all[0].rule.factor_q = all[0].rule.factor_k = all[0].rule.factor_v = 1.01;
  if (!exact) {  // else the numbers that are spread are no better known than the bounds
    all[0].rule.spread_q = 0x1p-9;
    all[0].rule.spread_k = 0x1p-8;
    all[0].rule.spread_v = 0x1p-7;
  }
  all[1].rule.derivative_in_bias = true;
  all[2].rule.without_p_sink = all[2].rule.negative_D = true;
  all[3].rule.v_row = another;
  all[4].rule.k_row = another;
  all[5].rule.factor_q = all[5].rule.factor_k = all[5].rule.factor_v = -7;
  all[5].rule.factor_bias = all[5].rule.factor_sinks = -7;
  return all;
}

struct Compared {
  std::int64_t forms = 0, elements = 0, infinite = 0;
  std::int64_t wrong = 0;
};

void compare(const std::vector<double>& value, const std::vector<double>& bound,
             const test::LiteralBox& literal, Compared& all) {
  REQUIRE(value.size() == literal.value.size());
  for (std::size_t n = 0; n < value.size(); ++n) {
    ++all.elements;
    const Real exact = literal.bound[n];
    if (std::isinf(bound[n])) {
      ++all.infinite;
      all.wrong += exact < 0x1p799L;
      continue;
    }
    // The bound is inflated by 2^-30, and what lies below 2^-860 is not told apart.
    const bool right = bound[n] >= static_cast<double>(exact * (1 - 0x1p-48L)) &&
                       bound[n] <= static_cast<double>(exact * (1 + 0x1p-28L) + 0x1p-860L) &&
                       std::fabs(value[n] - literal.value[n]) <= exact;
    all.wrong += !right;
  }
}

void compare_form(const Contract& contract, const JudgedHead& judged, const GradientPairs& pairs,
                  const GradientMutant& form, Compared& all) {
  ++all.forms;
  const oracle::WrongGradients wrong = wrong_gradients(pairs, form);
  const oracle::BiasBudget budget(contract, judged.owned.problem, form.rule);
  const test::LiteralBoxes literal = test::literal_boxes(contract, pairs, form.rule, budget);
  const auto heads = static_cast<std::int64_t>(pairs.heads.size());
  compare(wrong.dq, wrong.bound_q, literal.dq, all);
  compare(wrong.dk, wrong.bound_k, literal.dk, all);
  compare(wrong.dv, wrong.bound_v, literal.dv, all);
  const auto additions = [&](const oracle::AdditionSums& sums, const test::LiteralBox& of) {
    std::vector<double> value, bound;
    for (std::int64_t n = sums.first(); n < sums.last(); ++n) {
      value.push_back(sums.value(n));
      bound.push_back(sums.bound(n));
    }
    compare(value, bound, of, all);
  };
  oracle::AdditionSums bias({1, heads, pairs.queries, pairs.keys}, budget);
  bias.add_bias(pairs, form.rule);
  if (!form.rule.bias_place) additions(bias, literal.dbias);
  oracle::AdditionSums sinks({1, heads, 1, 1}, budget);
  sinks.add_sinks(pairs, form.rule);
  if (!form.rule.sink_place) additions(sinks, literal.dsinks);
}

/// Pairs of one row, or of a key, give that row's and that key's boxes.
void compare_windows(const GradientPairs& pairs, const GradientMutant& form) {
  const oracle::WrongGradients whole = wrong_gradients(pairs, form);
  const auto same = [](const std::vector<double>& a, const std::vector<double>& b, std::int64_t row,
                       std::int64_t columns) {
    const auto first = static_cast<std::ptrdiff_t>(row * columns);
    return std::equal(a.begin() + first, a.begin() + first + columns, b.begin() + first);
  };
  for (std::int64_t j = 0; j < pairs.keys; ++j) {
    const oracle::WrongGradients key = wrong_gradients(pairs, form, window_of_key(form, j));
    CHECK(same(key.dk, whole.dk, j, pairs.head_dim));
    CHECK(same(key.bound_k, whole.bound_k, j, pairs.head_dim));
    CHECK(same(key.dv, whole.dv, j, pairs.value_dim));
    CHECK(same(key.bound_v, whole.bound_v, j, pairs.value_dim));
  }
  const std::int64_t i = pairs.queries - 1;
  const auto last = static_cast<std::int64_t>(pairs.heads.size()) * pairs.queries - 1;
  const oracle::WrongGradients row =
      wrong_gradients(pairs, form, {.row = std::pair(pairs.heads.back().h, i), .keys = {}});
  CHECK(same(row.dq, whole.dq, last, pairs.head_dim));
  CHECK(same(row.bound_q, whole.bound_q, last, pairs.head_dim));
}

}  // namespace

TEST_CASE("the boxes of mistakes are the document's (32a), read literally") {
  Compared all;
  std::uint64_t seed = 0;
  for (const ContractCase& one : backward_cases()) {
    const Contract contract = oracle::read_contract(one.kernel, oracle::Spec{});
    for (int draw = 0; draw < 3; ++draw) {
      std::mt19937_64 random(++seed);
      const Head head = draw_head(one, contract, random);
      const JudgedHead judged = judged_head(head);
      std::optional<GradientPairs> pairs = pairs_of(contract, head, judged);
      if (!pairs) continue;
      if (!one.gross_only) vary(seed, head, *pairs);
      if (one.gross_only && draw == 2) cap(*pairs);
      const oracle::Case input = case_of(head, judged);
      std::vector<GradientMutant> forms = oracle::gradient_classes({input, contract, kRanks, {}});
      std::shuffle(forms.begin(), forms.end(), random);
      forms.resize(std::min<std::size_t>(forms.size(), 40));
      for (GradientMutant& more : more_forms(one.gross_only, pairs->keys)) {
        forms.push_back(std::move(more));
      }
      forms.emplace_back();
      for (const GradientMutant& form : forms) {
        const std::int64_t before = all.wrong;
        compare_form(contract, judged, *pairs, form, all);
        INFO(one.name << ", seed " << seed << ", " << form.id << ": " << form.words);
        CHECK(all.wrong == before);
      }
      for (std::size_t n = 0; n < 4; ++n) compare_windows(*pairs, forms[n]);
    }
  }
  CHECK(all.forms > 3000);
  CHECK(all.infinite > all.elements / 100);
  CHECK(all.infinite < all.elements / 3);
}

TEST_CASE("where dout is ones, taking it for ones is no mistake") {
  GradientMutant form;
  form.rule.ones_for_dout = form.rule.ones_for_dout_in_D = true;
  std::uint64_t seed = 0;
  for (const ContractCase& one : backward_cases()) {
    const Contract contract = oracle::read_contract(one.kernel, oracle::Spec{});
    std::mt19937_64 random(++seed);
    Head head = draw_head(one, contract, random);
    const JudgedHead before = judged_head(head);
    std::fill(head.dout.begin(), head.dout.end(), 1.0);
    const JudgedHead judged = judged_head(head);
    const std::optional<GradientPairs> other = pairs_of(contract, head, before);
    const std::optional<GradientPairs> pairs = pairs_of(contract, head, judged);
    if (!other || !pairs) continue;
    INFO(one.name);
    for (std::size_t n = 0; n < pairs->heads.size(); ++n) {
      for (std::size_t i = 0; i < pairs->heads[n].rows.size(); ++i) {
        const oracle::RowOfHead &row = pairs->heads[n].rows[i], &same = other->heads[n].rows[i];
        if (!row.bounded || !same.bounded) continue;
        CHECK(row.ones.D == same.ones.D);
        CHECK(row.ones.D_radius == same.ones.D_radius);
        CHECK(row.ones.delta_error == same.ones.delta_error);
        CHECK(row.ones.dp_underflow == same.ones.dp_underflow);
        CHECK(row.ones.dp_underflow == row.budget.dp_underflow);
      }
    }
    // Sums of huge values round to more than all errors of the kernel.
    if (one.gross_only || !(largest_of(pairs->value_abs_sum) < 0x1p20)) continue;
    const Boxes right = boxes_of(contract, head, judged, *pairs, {});
    const Boxes ones = boxes_of(contract, head, judged, *pairs, form);
    for (std::size_t n = 0; n < right.bound.size(); ++n) {
      if (std::isinf(right.bound[n])) continue;
      CHECK(std::fabs(ones.value[n] - right.value[n]) <= 0x1p-12 * right.bound[n]);
      CHECK(std::fabs(ones.bound[n] - right.bound[n]) <= 0x1p-12 * right.bound[n]);
    }
  }
}

}  // namespace ringproof::adversary
