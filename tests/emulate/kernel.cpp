// The emulated kernel around its rows: loading, scores, visibility, who holds which keys
// (kernel.hpp).
#include "tests/emulate/kernel.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/emulate/layout.hpp"
#include "tests/emulate/loaded_problem.hpp"

namespace ringproof::emulate {
namespace {

using oracle::Problem;

template <class Real>
class Kernel {
 public:
  Kernel(const Problem& problem, const Numerics& numerics, std::uint64_t seed)
      : problem_(problem),
        numerics_(numerics),
        functions_(numerics, seed),
        loaded_(problem, numerics, functions_) {}

  void row(std::int64_t b, std::int64_t h, std::int64_t i, Answers& answers) {
    const std::int64_t kv = problem_.kv_head(h), width = problem_.value_dim;
    const std::vector<std::int64_t> visible = loaded_.visible(b, h, i);
    const RowScores<Real> scores = loaded_.scores_of(b, h, i, visible);
    const Real* values = loaded_.value(b, kv, 0);
    RowSoftmax<Real> softmax(numerics_, functions_, scores, values, width);
    RowAnswer<Real> answer = answer_of(softmax, partials_of(i, visible), scores.has_sink);
    const double factor = problem_.v_scale.at(b, kv, 0, 0);
    const std::int64_t row = (b * problem_.heads + h) * problem_.queries + i;
    answers.lse[static_cast<std::size_t>(row)] = static_cast<double>(answer.lse);
    for (std::int64_t column = 0; column < width && !answer.empty; ++column) {
      Real x = answer.out[static_cast<std::size_t>(column)];
      if (factor != 1) x *= static_cast<Real>(factor);
      answers.out[static_cast<std::size_t>(row * width + column)] =
          stored_as(numerics_.output, static_cast<double>(x));
    }
  }

 private:
  /// The visible keys by partial, in the order of merging.
  std::vector<PartialKeys> partials_of(std::int64_t i, const std::vector<std::int64_t>& visible) {
    const std::int64_t ranks = numerics_.ranks, keys = problem_.keys;
    std::vector<PartialKeys> partials(static_cast<std::size_t>(ranks));
    if (ranks == 1) {
      partials[0].rows = keys;
      for (const std::int64_t j : visible) partials[0].keys.push_back({j, j});
      return partials;
    }
    if (numerics_.contiguous) {
      std::int64_t length = (keys + ranks - 1) / ranks;
      if (numerics_.longest_partial > 0) length = std::min(length, numerics_.longest_partial);
      for (const std::int64_t j : visible)
        partials[static_cast<std::size_t>(j / length)].keys.push_back({j, j % length});
      for (PartialKeys& partial : partials) partial.rows = length;
      return partials;
    }
    std::vector<std::int64_t> step(static_cast<std::size_t>(ranks));
    std::iota(step.begin(), step.end(), 0);
    if (numerics_.known_ring) {
      const std::int64_t own = owner_of(numerics_.layout, i, keys, ranks).rank;
      for (std::int64_t r = 0; r < ranks; ++r)
        step[static_cast<std::size_t>(r)] = step_of(numerics_.ring_order, own, r, ranks);
    } else {
      std::shuffle(step.begin(), step.end(), functions_.random());
    }
    for (const std::int64_t j : visible) {
      const Ownership owner = owner_of(numerics_.layout, j, keys, ranks);
      PartialKeys& partial =
          partials[static_cast<std::size_t>(step[static_cast<std::size_t>(owner.rank)])];
      partial.keys.push_back({j, owner.place});
      partial.rows = owner.rows;
    }
    return partials;
  }

  RowAnswer<Real> answer_of(RowSoftmax<Real>& softmax, const std::vector<PartialKeys>& partials,
                            bool has_sink) {
    const std::size_t sink_at =
        has_sink ? functions_.random()() % partials.size() : partials.size();
    const bool sink_first = functions_.random()() % 2 == 0;
    std::vector<State<Real>> states;
    for (std::size_t r = 0; r < partials.size(); ++r) {
      if (partials[r].keys.empty() && r != sink_at) continue;
      if (numerics_.two_pass) {
        states.push_back(softmax.two_pass(partials[r], r == sink_at));
        continue;
      }
      State<Real> from;
      if (numerics_.carried && !states.empty()) {
        from = std::move(states.back());
        states.pop_back();
        for (Real& x : from.acc) x = static_cast<Real>(cast(x, numerics_.running_store));
      }
      states.push_back(softmax.online(partials[r], r == sink_at, sink_first, std::move(from)));
    }
    if (states.empty()) return {};
    return states.size() == 1 && (numerics_.ranks == 1 || numerics_.carried)
               ? finish_state(numerics_, functions_, softmax, states.front())
               : merge_states(numerics_, functions_, softmax, std::move(states));
  }

  const Problem& problem_;
  const Numerics& numerics_;
  Functions<Real> functions_;
  LoadedProblem<Real> loaded_;
};

template <class Real>
Answers run(const Problem& problem, const Numerics& numerics, std::uint64_t seed) {
  const std::size_t rows =
      static_cast<std::size_t>(problem.batches * problem.heads * problem.queries);
  Answers answers{
      .out = std::vector<double>(rows * static_cast<std::size_t>(problem.value_dim), 0.0),
      .lse = std::vector<double>(rows)};
  const FlushSubnormals flush(numerics.flush);
  Kernel<Real> kernel(problem, numerics, seed);
  for (std::int64_t b = 0; b < problem.batches; ++b)
    for (std::int64_t h = 0; h < problem.heads; ++h)
      for (std::int64_t i = 0; i < problem.queries; ++i) kernel.row(b, h, i, answers);
  return answers;
}

}  // namespace

bool sees(const Problem& problem, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  const std::size_t row = static_cast<std::size_t>(b * problem.queries + i);
  const std::size_t key = static_cast<std::size_t>(b * problem.keys + j);
  if (problem.document_q[row] < 0 || problem.document_q[row] != problem.document_k[key])
    return false;
  if (j >= problem.key_length[static_cast<std::size_t>(b)]) return false;
  if (problem.mask && problem.mask.at(b, h, i, j) == 0) return false;
  if (problem.bias && problem.bias.at(b, h, i, j) == -INFINITY) return false;
  const std::int64_t at_q = problem.position_q[row], at_k = problem.position_k[key];
  const oracle::Spec& spec = problem.spec;
  if (spec.causal != oracle::Causal::none && at_k > at_q) return false;
  if (spec.window_left >= 0 && at_k < at_q - spec.window_left) return false;
  return spec.window_right < 0 || at_k <= at_q + spec.window_right;
}

Answers run_forward(const Problem& problem, const Numerics& numerics, std::uint64_t seed) {
  return numerics.binary64 ? run<double>(problem, numerics, seed)
                           : run<float>(problem, numerics, seed);
}

}  // namespace ringproof::emulate
