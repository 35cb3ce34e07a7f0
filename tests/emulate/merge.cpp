// Merging the partial results of one row: unnormalised states, LSE-weighted (in sequence, or all at
// once),
// and by a sigmoid. Formulas as kernels use them; their bounds are (17) to (20b) of
// docs/contract.md.
#include "tests/emulate/row_kernel.hpp"

namespace ringproof::emulate {
namespace {

template <class Real>
Real log_of_sum(Functions<Real>& functions, Real a, Real b) {
  const Real high = std::max(a, b), low = std::min(a, b);
  return high + functions.log1p(functions.exp(low - high));
}

template <class Real>
void store(std::vector<Real>& values, const SmallFloat& format) {
  for (Real& x : values) x = static_cast<Real>(cast(x, format));
}

template <class Real>
RowAnswer<Real> merge_unnormalized(const Numerics& numerics, Functions<Real>& functions,
                                   RowSoftmax<Real>& softmax, std::vector<State<Real>>& states) {
  State<Real> running = states.front();
  store(running.acc, numerics.partial_store);
  for (std::size_t r = 1; r < states.size(); ++r) {
    store(states[r].acc, numerics.partial_store);
    const Real highest = std::max(running.m, states[r].m);
    const Real alpha = running.m == highest ? Real{1} : softmax.rescale(running.m, highest);
    const Real beta = states[r].m == highest ? Real{1} : softmax.rescale(states[r].m, highest);
    running.l = running.l * alpha + states[r].l * beta;
    for (std::size_t c = 0; c < running.acc.size(); ++c)
      running.acc[c] = running.acc[c] * alpha + states[r].acc[c] * beta;
    store(running.acc, numerics.running_store);
    running.m = highest;
  }
  return finish_state(numerics, functions, softmax, running);
}

template <class Real>
RowAnswer<Real> merge_sequential(const Numerics& numerics, Functions<Real>& functions,
                                 const std::vector<RowAnswer<Real>>& parts) {
  RowAnswer<Real> running = parts.front();
  for (std::size_t r = 1; r < parts.size(); ++r) {
    const Real lse = log_of_sum(functions, running.lse, parts[r].lse);
    const Real old_weight = functions.exp(running.lse - lse),
               new_weight = functions.exp(parts[r].lse - lse);
    for (std::size_t c = 0; c < running.out.size(); ++c)
      running.out[c] = running.out[c] * old_weight + parts[r].out[c] * new_weight;
    store(running.out, numerics.running_store);
    running.lse = lse;
  }
  return running;
}

template <class Real>
RowAnswer<Real> merge_once(Functions<Real>& functions, const std::vector<RowAnswer<Real>>& parts) {
  RowAnswer<Real> merged{.out = std::vector<Real>(parts.front().out.size()), .empty = false};
  Real highest = parts.front().lse, total = 0;
  for (const RowAnswer<Real>& part : parts) highest = std::max(highest, part.lse);
  for (const RowAnswer<Real>& part : parts) total += functions.exp(part.lse - highest);
  merged.lse = highest + functions.log(total);
  for (const RowAnswer<Real>& part : parts) {
    const Real weight = functions.exp(part.lse - merged.lse);
    for (std::size_t c = 0; c < merged.out.size(); ++c) merged.out[c] += part.out[c] * weight;
  }
  return merged;
}

template <class Real>
RowAnswer<Real> merge_sigmoid(const Numerics& numerics, Functions<Real>& functions,
                              const std::vector<RowAnswer<Real>>& parts) {
  RowAnswer<Real> running = parts.front();
  for (std::size_t r = 1; r < parts.size(); ++r) {
    const Real weight = functions.sigmoid(parts[r].lse - running.lse);
    for (std::size_t c = 0; c < running.out.size(); ++c)
      running.out[c] = running.out[c] - weight * (running.out[c] - parts[r].out[c]);
    store(running.out, numerics.running_store);
    // logsigmoid of the running LSE's lead, in the form whose exponential does not overflow.
    const Real lead = running.lse - parts[r].lse;
    const Real step = lead > 0 ? -functions.log1p(functions.exp(-lead))
                               : lead - functions.log1p(functions.exp(lead));
    running.lse = running.lse - step;
  }
  return running;
}

}  // namespace

template <class Real>
RowAnswer<Real> finish_state(const Numerics& numerics, Functions<Real>& functions,
                             const RowSoftmax<Real>& softmax, const State<Real>& state) {
  RowAnswer<Real> answer{.out = state.acc, .empty = false};
  if (!numerics.two_pass)
    for (Real& x : answer.out) x = functions.divide(x, state.l);
  answer.lse = numerics.lse_base_two ? softmax.base_two(state.m) + functions.log2(state.l)
                                     : softmax.natural(state.m) + functions.log(state.l);
  return answer;
}

template <class Real>
RowAnswer<Real> merge_states(const Numerics& numerics, Functions<Real>& functions,
                             RowSoftmax<Real>& softmax, std::vector<State<Real>> states) {
  if (numerics.merge == oracle::Merge::unnormalized)
    return merge_unnormalized(numerics, functions, softmax, states);
  std::vector<RowAnswer<Real>> parts;
  for (const State<Real>& state : states) {
    parts.push_back(finish_state(numerics, functions, softmax, state));
    store(parts.back().out, numerics.partial_store);
  }
  if (numerics.merge == oracle::Merge::lse_once) return merge_once(functions, parts);
  if (numerics.merge == oracle::Merge::lse_sigmoid)
    return merge_sigmoid(numerics, functions, parts);
  return merge_sequential(numerics, functions, parts);
}

template RowAnswer<float> finish_state(const Numerics&, Functions<float>&, const RowSoftmax<float>&,
                                       const State<float>&);
template RowAnswer<double> finish_state(const Numerics&, Functions<double>&,
                                        const RowSoftmax<double>&, const State<double>&);
template RowAnswer<float> merge_states(const Numerics&, Functions<float>&, RowSoftmax<float>&,
                                       std::vector<State<float>>);
template RowAnswer<double> merge_states(const Numerics&, Functions<double>&, RowSoftmax<double>&,
                                        std::vector<State<double>>);

}  // namespace ringproof::emulate
