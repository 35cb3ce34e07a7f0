// Asking a kernel what it supports (probe.hpp).
#include "tests/suite/probe.hpp"

#include <algorithm>
#include <cmath>

#include "oracle/case/error.hpp"
#include "oracle/contract/contract.hpp"

namespace ringproof::suite {
namespace {

/// Widths of heads in use; every law works with any of them.
constexpr int kWidths[] = {1, 3, 4, 8, 16, 32, 64, 128, 256};
constexpr std::size_t kMostWidths = 4;  // the smallest that the kernel takes

/// How a description asks for one feature; lse and gradients are asked of the plain problem.
struct Asking {
  Feature feature;
  void (*ask)(Description&);
};
constexpr Asking kAsking[] = {
    {Feature::batches, [](Description& d) { d.batches = 2; }},
    {Feature::grouped_heads, [](Description& d) { d.group = 2; }},
    {Feature::cross, [](Description& d) { d.queries = 3; }},
    {Feature::value_dim, [](Description& d) { d.value_dim = 1; }},
    {Feature::scale, [](Description& d) { d.scale = 1; }},
    {Feature::causal_top_left, [](Description& d) { d.causal = 1; }},
    {Feature::causal_bottom_right, [](Description& d) { d.causal = 2; }},
    {Feature::window, [](Description& d) { d.window_left = d.window_right = 1; }},
    {Feature::mask, [](Description& d) { d.mask = 4; }},
    {Feature::bias, [](Description& d) { d.bias = 4; }},
    {Feature::alibi, [](Description& d) { d.alibi = 1; }},
    {Feature::softcap, [](Description& d) { d.softcap = 1; }},
    {Feature::sinks, [](Description& d) { d.sinks = 1; }},
    {Feature::key_lengths, [](Description& d) { d.lengths = 1; }},
    {Feature::packed, [](Description& d) { d.rows = 1; }},
    {Feature::documents, [](Description& d) { d.rows = 2; }},
    {Feature::positions, [](Description& d) { d.rows = 3, d.causal = 1; }},
    {Feature::bnhd, [](Description& d) { d.axes = 1; }},
    {Feature::nhd, [](Description& d) { d.axes = 2; }},
    {Feature::strides, [](Description& d) { d.gap = 1; }},
    {Feature::no_keys, [](Description& d) { d.keys = 0; }},
    {Feature::empty_nan, [](Description& d) { d.empty = 1; }},
    {Feature::ranks, [](Description& d) { d.ranks = 2; }},
    {Feature::zigzag, [](Description& d) { d.ranks = 2, d.ring = 2; }},
    {Feature::striped, [](Description& d) { d.ranks = 2, d.ring = 3; }},
    {Feature::up, [](Description& d) { d.ranks = 2, d.ring = 1, d.order = 1; }},
};

Description asking_for(Feature feature) {
  Description d;
  d.queries = d.keys = 4;
  for (const Asking& one : kAsking) {
    if (one.feature == feature) one.ask(d);
  }
  return d;
}

bool is_nan(double value) { return std::isnan(value); }

/// Does the kernel answer this problem, with every output asked for?
bool answers(Trial& trial, const Draft& draft, const std::string& output) {
  try {
    const Answer answer = trial.run(draft);
    const auto found = answer.find(output);
    return found != answer.end() &&
           !std::all_of(found->second.begin(), found->second.end(), is_nan);
  } catch (const NotSupported&) {
    return false;
  } catch (const Failure&) {
    return true;
  }
}

/// Does the contract take the number of partial results from the spec?
bool takes_ranks(const std::string& contract) {
  oracle::Spec spec;
  spec.ranks = 2;
  try {
    oracle::read_contract(contract, spec);
    spec.ranks = 3;
    oracle::read_contract(contract, spec);
    return true;
  } catch (const oracle::BadInput&) {
    return false;
  }
}

}  // namespace

bool probe(Trial& trial) {
  Sizes& sizes = trial.sizes();
  const auto find_widths = [&] {
    std::vector<int> found;
    for (const int width : kWidths) {
      sizes.head_dims = {width};
      if (found.size() < kMostWidths &&
          answers(trial, trial.draw(asking_for(Feature::count)), "out")) {
        found.push_back(width);
      }
    }
    sizes.head_dims = found;
    return !found.empty();
  };
  sizes.support = Features{Feature::lse};
  if (!find_widths()) {
    sizes.support.remove(Feature::lse);
    if (!find_widths()) return false;
  } else if (!answers(trial, trial.draw(asking_for(Feature::lse)), "lse")) {
    sizes.support.remove(Feature::lse);
  }
  for (unsigned n = 0; n < static_cast<unsigned>(Feature::count); ++n) {
    const auto feature = static_cast<Feature>(n);
    if (feature == Feature::lse) continue;
    if (feature == Feature::value_dim && sizes.head_dims.size() < 2) continue;
    const bool of_ring = feature >= Feature::ranks && feature <= Feature::up;
    if (of_ring && !takes_ranks(trial.contract())) continue;
    Draft draft = trial.draw(asking_for(feature));
    const bool backward = feature == Feature::gradients;
    if (backward) ask_for_gradients(draft, trial.types(), 1, trial.can(Feature::lse));
    if (answers(trial, draft, backward ? "dq" : "out")) sizes.support.add(feature);
  }
  return true;
}

}  // namespace ringproof::suite
