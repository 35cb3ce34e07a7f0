#include "tests/unit/diagnose/boxes.hpp"

#include <algorithm>
#include <cmath>

namespace ringproof::adversary {

using oracle::Contract;
using oracle::GradientMutant;
using oracle::GradientPairs;

double largest_of(const std::vector<double>& numbers) {
  double most = 0;
  for (const double x : numbers) most = std::max(most, std::fabs(x));
  return most;
}

std::optional<GradientPairs> pairs_of(const Contract& contract, const Head& head,
                                      const JudgedHead& judged) {
  const oracle::Problem& problem = judged.owned.problem;
  const oracle::BackwardHead arrays(problem, head.keys.data(), head.head_dim, head.values.data(),
                                    head.value_dim);
  oracle::PairCollector collector(problem, contract, judged.given, arrays, 0, 0);
  for (std::size_t r = 0; r < head.rows.size(); ++r) {
    if (!collector.add(judged.truth[r], judged.gradients[r])) return {};
  }
  return collector.take();
}

Boxes boxes_of(const Contract& contract, const Head& head, const JudgedHead& judged,
               const GradientPairs& pairs, const GradientMutant& mutant) {
  const oracle::WrongGradients wrong = wrong_gradients(pairs, mutant);
  Boxes all;
  const auto append = [&](const std::vector<double>& value, const std::vector<double>& bound) {
    all.value.insert(all.value.end(), value.begin(), value.end());
    all.bound.insert(all.bound.end(), bound.begin(), bound.end());
  };
  std::size_t gradient = 0;
  for (const auto& [values, bounds] :
       {std::pair(&wrong.dq, &wrong.bound_q), std::pair(&wrong.dk, &wrong.bound_k),
        std::pair(&wrong.dv, &wrong.bound_v)}) {
    append(*values, *bounds);
    all.last[gradient++] = all.value.size();
  }
  const auto heads = static_cast<std::int64_t>(pairs.heads.size());
  const oracle::BiasBudget budget(contract, judged.owned.problem, mutant.rule);
  oracle::AdditionSums bias({1, heads, pairs.queries, pairs.keys}, budget);
  bias.add_bias(pairs, mutant.rule);
  for (std::int64_t n = bias.first(); n < bias.last(); ++n)
    append({bias.value(n)}, {bias.bound(n)});
  all.last[3] = all.value.size();
  oracle::AdditionSums sinks({1, heads, 1, 1}, budget);
  if (head.rows.front().sink) sinks.add_sinks(pairs, mutant.rule);
  double value = 0, bound = 0;
  for (std::int64_t n = sinks.first(); n < sinks.last(); ++n) {
    value += sinks.value(n);
    bound += sinks.bound(n);
  }
  append({value}, {bound});
  all.last[4] = all.value.size();
  return all;
}

oracle::Case case_of(const Head& head, const JudgedHead& judged) {
  oracle::Case input;
  input.problem = judged.owned.problem;
  const std::int64_t heads = head.group, rows = head.queries, keys = head.total_keys;
  const auto answer = [&](oracle::AnswerKind kind, std::array<std::int64_t, 4> shape) {
    oracle::Tensor tensor;
    tensor.shape = shape;
    input.answers.push_back({.kind = kind, .tensor = tensor});
  };
  answer(oracle::AnswerKind::dq, {1, heads, rows, head.head_dim});
  answer(oracle::AnswerKind::dk, {1, 1, keys, head.head_dim});
  answer(oracle::AnswerKind::dv, {1, 1, keys, head.value_dim});
  answer(oracle::AnswerKind::dbias, {1, heads, rows, keys});
  if (head.rows.front().sink) answer(oracle::AnswerKind::dsinks, {1, heads, 1, 1});
  input.dlse.data = reinterpret_cast<const std::byte*>(head.dlse.data());  // there is one
  return input;
}

Head draw_head(const ContractCase& one, const Contract& kernel, std::mt19937_64& random) {
  HeadOptions options{.row = one.row, .group = 1 + static_cast<std::int64_t>(random() % 3)};
  options.row.partials = kernel.partials.count;
  options.row.longest = 20;
  options.row.head_dim = options.row.value_dim = 4;
  if (kernel.softmax.exp_eta > 0) options.row.weight_floor = kernel.softmax.exp_eta;
  options.queries = 2 + static_cast<std::int64_t>(random() % 4);
  options.isolated = kernel.backward.mode == oracle::BackwardMode::isolated;
  const Upstream upstream = random() % 2 == 0 ? Upstream::with_lse : Upstream::randn;
  const Family family =
      random() % 3 == 0 ? Family::sink : one.families[random() % one.families.size()];
  return make_head(family, upstream, options, random);
}

}  // namespace ringproof::adversary
