// The softmax of one row in real arithmetic (row_kernel.hpp).
#include "tests/emulate/row_kernel.hpp"

#include <algorithm>
#include <map>

namespace ringproof::emulate {

template <class Real>
Real RowSoftmax<Real>::weight(std::int64_t j, Real m) {
  constexpr Real kLog2e = static_cast<Real>(1.4426950408889634074L);
  const Real s = scores_.score[static_cast<std::size_t>(j)];
  switch (numerics_.argument) {
    case Argument::sub:
      return functions_.exp(s - m);
    case Argument::sub_log2:
      return functions_.exp2((s - m) * kLog2e);
    case Argument::fused:
      break;
  }
  const Real shift = m * scores_.to_exponent;
  return functions_.exp2(std::fma(s, scores_.to_exponent, -shift));
}

template <class Real>
Real RowSoftmax<Real>::sink_weight(Real m) {
  constexpr Real kLog2e = static_cast<Real>(1.4426950408889634074L);
  switch (numerics_.argument) {
    case Argument::sub:
      return functions_.exp(scores_.sink - m);
    case Argument::sub_log2:
      return functions_.exp2((scores_.sink - m) * kLog2e);
    case Argument::fused:
      break;
  }
  const Real shift = m * scores_.to_exponent, exponent = scores_.sink * kLog2e;
  return functions_.exp2(exponent - shift);
}

template <class Real>
Real RowSoftmax<Real>::rescale(Real before, Real after) {
  constexpr Real kLog2e = static_cast<Real>(1.4426950408889634074L);
  if (before == after) return functions_.exp(0);
  switch (numerics_.argument) {
    case Argument::sub:
      return functions_.exp(before - after);
    case Argument::sub_log2:
      return functions_.exp2((before - after) * kLog2e);
    case Argument::fused:
      break;
  }
  return functions_.exp2((before - after) * scores_.to_exponent);
}

template <class Real>
void RowSoftmax<Real>::raise(State<Real>& state, Real candidate) {
  if (!state.started) {
    state.m = candidate;
    state.started = true;
    return;
  }
  const double ahead =
      (static_cast<double>(candidate) - state.m) * scores_.to_natural * std::log2(std::exp(1.0));
  const Real next = ahead > numerics_.lazy_log2 ? candidate : state.m;
  if (next == state.m && !numerics_.exp_zero_noisy) return;
  const Real alpha = rescale(state.m, next);
  state.m = next;
  state.l *= alpha;
  for (Real& x : state.acc) x *= alpha;
}

template <class Real>
void RowSoftmax<Real>::add_values(std::vector<Real>& acc, const std::vector<KeyPlace>& keys,
                                  const std::vector<Real>& p) {
  for (std::int64_t column = 0; column < width_; ++column) {
    terms_.clear();
    for (std::size_t k = 0; k < keys.size(); ++k)
      terms_.add(p[k], values_[keys[k].key * width_ + column], keys[k].place);
    Real& sum = acc[static_cast<std::size_t>(column)];
    sum = add_products(numerics_.pv_sum, numerics_.step, numerics_.leaf, sum, terms_);
  }
}

template <class Real>
void RowSoftmax<Real>::absorb(State<Real>& state, const std::vector<KeyPlace>& block) {
  if (block.empty()) {
    if (state.started) raise(state, state.m);
    return;
  }
  Real highest = scores_.score[static_cast<std::size_t>(block.front().key)];
  for (const KeyPlace& key : block)
    highest = std::max(highest, scores_.score[static_cast<std::size_t>(key.key)]);
  raise(state, highest);
  std::vector<Real> p(block.size());
  terms_.clear();
  for (std::size_t k = 0; k < block.size(); ++k) {
    p[k] = weight(block[k].key, state.m);
    const Real stored =
        static_cast<Real>(cast(p[k] * numerics_.p_scale, numerics_.p_cast) / numerics_.p_scale);
    terms_.add(numerics_.sum_from_cast ? stored : p[k], 1, block[k].place);
    p[k] = stored;
  }
  state.l = add_products(numerics_.l_sum, numerics_.step, numerics_.leaf, state.l, terms_);
  add_values(state.acc, block, p);
}

template <class Real>
void RowSoftmax<Real>::absorb_sink(State<Real>& state) {
  raise(state, scores_.sink_score);
  state.l += sink_weight(state.m);
}

template <class Real>
std::vector<std::vector<KeyPlace>> RowSoftmax<Real>::blocks_of(const PartialKeys& partial) {
  std::map<std::int64_t, std::vector<KeyPlace>> grid;
  // A kernel whose exp(0) is not 1 pays for every block it visits, so all of them are visited.
  if (numerics_.exp_zero_noisy)
    for (std::int64_t at = 0; at < partial.rows; at += numerics_.block) grid[at / numerics_.block];
  for (const KeyPlace& key : partial.keys) grid[key.place / numerics_.block].push_back(key);
  std::vector<std::vector<KeyPlace>> blocks;
  for (auto& [index, block] : grid) blocks.push_back(std::move(block));
  if (numerics_.order == Order::descending) std::reverse(blocks.begin(), blocks.end());
  if (numerics_.order == Order::shuffled)
    std::shuffle(blocks.begin(), blocks.end(), functions_.random());
  return blocks;
}

template <class Real>
State<Real> RowSoftmax<Real>::online(const PartialKeys& partial, bool with_sink, bool sink_first,
                                     State<Real> state) {
  state.acc.resize(static_cast<std::size_t>(width_));
  if (with_sink && sink_first) absorb_sink(state);
  for (const auto& block : blocks_of(partial)) absorb(state, block);
  if (with_sink && !sink_first) absorb_sink(state);
  return state;
}

template <class Real>
State<Real> RowSoftmax<Real>::two_pass(const PartialKeys& partial, bool with_sink) {
  State<Real> state;
  state.started = true;
  state.acc.resize(static_cast<std::size_t>(width_));
  if (with_sink) state.m = scores_.sink_score;
  for (const KeyPlace& key : partial.keys)
    state.m = std::max(state.m, scores_.score[static_cast<std::size_t>(key.key)]);
  std::vector<Real> p;
  terms_.clear();
  for (const KeyPlace& key : partial.keys) {
    p.push_back(weight(key.key, state.m));
    terms_.add(p.back(), 1, key.place);
  }
  state.l = add_products(numerics_.l_sum, numerics_.step, numerics_.leaf, Real{0}, terms_);
  const Real of_sink = with_sink ? sink_weight(state.m) : Real{0};
  if (with_sink) state.l += of_sink;
  for (Real& x : p) {
    state.p.push_back(functions_.divide(x, state.l));
    x = static_cast<Real>(cast(state.p.back(), numerics_.p_cast));
  }
  if (with_sink) state.p_sink = functions_.divide(of_sink, state.l);
  add_values(state.acc, partial.keys, p);
  state.p_cast = std::move(p);
  return state;
}

template class RowSoftmax<float>;
template class RowSoftmax<double>;

}  // namespace ringproof::emulate
