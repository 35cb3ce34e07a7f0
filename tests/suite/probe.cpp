// Asking a kernel what it supports (probe.hpp).
#include "tests/suite/probe.hpp"

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

enum class Reply { no, yes, died, hung };

class Prober {
 public:
  explicit Prober(Trial& trial) : trial_(trial), sizes_(trial.sizes()) {}

  Probed ask() {
    sizes_.support = Features{Feature::lse};
    find_widths();
    if (sizes_.head_dims.empty() && !probed_.death) {
      sizes_.support.remove(Feature::lse);
      find_widths();
    } else if (!sizes_.head_dims.empty() && reply(asking_for(Feature::lse), "lse") == Reply::no) {
      sizes_.support.remove(Feature::lse);
    }
    probed_.plain = !sizes_.head_dims.empty();
    if (!probed_.plain) {
      if (!probed_.death) return probed_;
      sizes_.support = {};
      probed_.unknown = Features::all();
      return probed_;
    }
    for (unsigned n = 0; n < static_cast<unsigned>(Feature::count); ++n) {
      const auto feature = static_cast<Feature>(n);
      if (feature != Feature::lse) ask_for(feature);
    }
    if (!hung_) probed_.death.reset();  // a crash among answers: the laws will report it
    return probed_;
  }

 private:
  /// The smallest widths that are answered, or on which the kernel dies while others are answered.
  void find_widths() {
    std::vector<int> found;
    bool answered = false;
    for (const int width : kWidths) {
      sizes_.head_dims = {width};
      if (found.size() == kMostWidths || hung_) break;
      const Reply got = reply(asking_for(Feature::count), "out");
      answered = answered || got == Reply::yes;
      if (got == Reply::yes || got == Reply::died) found.push_back(width);
    }
    sizes_.head_dims = answered && !hung_ ? found : std::vector<int>{};
  }

  void ask_for(Feature feature) {
    if (feature == Feature::value_dim && sizes_.head_dims.size() < 2) return;
    const bool of_ring = feature >= Feature::ranks && feature <= Feature::up;
    if (of_ring && !takes_ranks(trial_.contract())) return;
    const bool backward = feature == Feature::gradients;
    const Reply got =
        hung_ ? Reply::hung : reply(asking_for(feature), backward ? "dq" : "out", backward);
    if (got == Reply::yes || got == Reply::died) sizes_.support.add(feature);
    if (got == Reply::hung) probed_.unknown.add(feature);
  }

  /// Does the kernel answer this problem, with every output asked for?
  Reply reply(const Description& description, const std::string& output, bool backward = false) {
    Draft draft = trial_.draw(description);
    if (backward) ask_for_gradients(draft, trial_.types(), 1, trial_.can(Feature::lse));
    try {
      const Answer answer = trial_.run(draft);
      // A kernel that says it can and gives NaN is wrong, and the laws will say so; a command that
      // leaves an output out has not answered this problem.
      return answer.contains(output) ? Reply::yes : Reply::no;
    } catch (const NotSupported&) {
      return Reply::no;
    } catch (const Failure& failure) {
      if (failure.death == Death::none) return Reply::yes;
      hung_ = hung_ || failure.death == Death::hung;
      if (!probed_.death || failure.death == Death::hung) probed_.death = failure;
      return failure.death == Death::hung ? Reply::hung : Reply::died;
    }
  }

  Trial& trial_;
  Sizes& sizes_;
  Probed probed_;
  bool hung_ = false;
};

}  // namespace

Probed probe(Trial& trial) { return Prober(trial).ask(); }

}  // namespace ringproof::suite
