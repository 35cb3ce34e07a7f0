// Gradients of sum(out dout) + sum(lse dlse): inside the contract on every semantics, and the laws
// that are exact.
#include <algorithm>
#include <cmath>

#include "tests/suite/law.hpp"
#include "tests/suite/loss.hpp"

namespace ringproof::suite {
namespace {

const std::vector<std::string> kGradients{"dq", "dk", "dv", "dbias", "dsinks"};

/// A problem with upstream gradients; `with_lse`: through the LSE as well.
Draft asked(const Trial& trial, const Description& d, bool with_lse = true) {
  Draft draft = trial.draw(d);
  ask_for_gradients(draft, trial.types(), d.seed, with_lse && trial.can(Feature::lse));
  return draft;
}

void judged(Trial& trial, const Description& d) { trial.judged(asked(trial, d)); }
void judged_without_lse(Trial& trial, const Description& d) {
  trial.judged(asked(trial, d, false));
}

/// The upstream gradients times a power of two: the gradients times the same, bit for bit.
void linear(Trial& trial, const Description& d) {
  const Draft draft = asked(trial, d);
  const Answer before = trial.judged(draft);
  Draft scaled = draft;
  Answer expected = before;
  for (const char* name : {"dout", "dlse"}) {
    if (!scaled.has(name)) continue;
    for (double& value : scaled.table(name).values) value *= 4;
  }
  const double least =
      std::ldexp(1.0, oracle::format_of(trial.wanted(draft).gradient).min_exponent + 3);
  bool normal = true;
  for (const std::string& name : kGradients) {
    for (double& value : expected[name]) {
      normal = normal && (value == 0 || std::abs(value) >= least);
      value *= 4;
    }
  }
  const Answer after = trial.judged(scaled);
  if (normal && trial.candidate().promises.deterministic) {
    trial.same_bits(scaled, after, expected, "upstream gradients times 4", kGradients);
  }
}

/// Every gradient is zero; the sign of a zero is free.
void demand_zeros(Trial& trial, const Draft& draft, Answer answer,
                  const std::vector<std::string>& names, const std::string& what) {
  Answer zeros = answer;
  for (const std::string& name : names) {
    for (double& value : zeros[name]) value = 0;
    for (double& value : answer[name]) value = value == 0 ? 0 : value;
  }
  trial.same_bits(draft, answer, zeros, what, names);
}

void zero_upstream(Trial& trial, const Description& d) {
  Draft draft = asked(trial, d);
  for (const char* name : {"dout", "dlse"}) {
    if (draft.has(name))
      std::fill_n(draft.table(name).values.begin(), draft.table(name).values.size(), 0.0);
  }
  demand_zeros(trial, draft, trial.judged(draft), kGradients, "no upstream gradient, but one here");
}

/// Upstream gradients on the LSE alone: V has no part in it.
void lse_alone(Trial& trial, const Description& d) {
  Draft draft = asked(trial, d);
  std::fill_n(draft.table("dout").values.begin(), draft.table("dout").values.size(), 0.0);
  demand_zeros(trial, draft, trial.judged(draft), {"dv"}, "the LSE does not depend on V");
}

/// A key that nobody sees has gradients of zero, and a NaN in it shows nowhere.
void unseen_keys(Trial& trial, const Description& d) {
  Draft draft = asked(trial, d);
  const Index hidden = d.at % draft.keys;
  hide_keys(draft, [&](Index j) { return j != hidden; });
  const Answer clean = trial.judged(draft);
  Draft bad = draft;
  for (Index b = 0; b < draft.batches; ++b) {
    for (Index h = 0; h < draft.kv_heads; ++h) {
      for (Index c = 0; c < draft.head_dim; ++c) bad.k(b, h, hidden, c) = std::nan("");
      for (Index c = 0; c < draft.value_dim; ++c) bad.v(b, h, hidden, c) = std::nan("");
    }
  }
  const bool has_nan = oracle::size_of(trial.types().input) > 1;
  for (const auto& [name, width] : {std::pair<std::string, Index>{"dk", draft.head_dim},
                                    std::pair<std::string, Index>{"dv", draft.value_dim}}) {
    Answer rows{{name, {}}};
    for (Index head = 0; head < draft.batches * draft.kv_heads; ++head) {
      const auto first = clean.at(name).begin() + (head * draft.keys + hidden) * width;
      rows[name].insert(rows[name].end(), first, first + width);
    }
    Answer zeros = rows;
    for (double& value : zeros[name]) value = 0;
    for (double& value : rows[name]) value = value == 0 ? 0 : value;
    trial.same_bits(draft, rows, zeros, "an unseen key has a gradient", {name});
  }
  if (has_nan && trial.candidate().promises.deterministic) {
    trial.same_bits(bad, trial.run(bad), clean, "an unseen key shows in a gradient");
  }
}

void determinism(Trial& trial, const Description& d) {
  if (!trial.candidate().promises.deterministic) throw NotSupported{};
  const Draft draft = asked(trial, d);
  const Answer first = trial.run(draft);
  trial.same_bits(draft, trial.run(draft), first, "a second call differs");
}

/// Asking for gradients must not change the forward answer.
void forward_stays(Trial& trial, const Description& d) {
  const Draft draft = trial.draw(d);
  const Answer forward = trial.run(draft);
  const Answer both = trial.run(asked(trial, d));
  trial.judge(draft, forward);
  if (!trial.candidate().promises.deterministic) return;
  trial.same_bits(
      draft, {both.begin(), both.end()},
      [&] {
        Answer expected = both;
        for (const auto& [name, values] : forward) expected[name] = values;
        return expected;
      }(),
      "the forward answer beside gradients differs");
}

/// A bias of each pair, and one for all queries.
void additions(Trial& trial, const Description& d) {
  for (const int shape : {1, 4}) {
    Description one = d;
    one.bias = shape;
    trial.judged(asked(trial, one));
  }
}

/// Unequal masses make D = rowsum(dO o) matter row by row and shard by shard.
void delta(Trial& trial, const Description& d) {
  Draft draft = asked(trial, d);
  prescribe_scores(draft, [&](Index j) { return j < draft.keys / 3 ? 3 : 0; });
  prescribe_values(draft, [](Index, Index, Index j, Index c) {
    return static_cast<double>((j + 2 * c) % 7) + 1;
  });
  trial.judged(draft);
}

/// Every gradient is the finite difference of the exact loss. The difference is an interval; its
/// number nearest to the kernel's gradient lies between that and the exact one, so the judge, if it
/// accepts the kernel's, accepts it as well, or its own formulas are wrong in the kernel's way.
void differences(Trial& trial, const Description& d) {
  Draft draft = asked(trial, d);
  drop_low_digits(draft);
  const Answer answer = trial.judged(draft);
  Answer nearest = answer;
  Loss loss(draft);
  for (const std::string& name : kGradients) {
    std::vector<double>& numbers = nearest[name];
    for (std::size_t n = 0; n < numbers.size(); ++n) {
      const Slope slope = loss.slope(name.substr(1), n);
      numbers[n] = std::clamp(numbers[n], slope.low, slope.high);
    }
  }
  try {
    trial.judge(draft, nearest);
  } catch (Failure& failure) {
    throw Failure{"finite differences of the exact loss: " + failure.what, draft, answer};
  }
}

void sinks_alone(Trial& trial, const Description& d) {
  Draft draft = asked(trial, d);
  hide_keys(draft, [](Index) { return false; });
  trial.judged(draft);
}

void small(Description& d) {
  d.batches = d.kv_heads = 1, d.group = std::min(d.group, 2);
  d.queries = std::min(d.queries, 3), d.keys = std::min(d.keys, 5);
  d.head_dim = d.value_dim = 0;
}

void ring(Description& d) { d.ranks = std::max(d.ranks, 2), d.ring = std::max(d.ring, 1); }

constexpr Features kBackward{Feature::gradients};

constexpr Law kLaws[] = {
    {"gradients", "gradients are inside the contract, whatever comes together", kBackward, nullptr,
     judged},
    {"gradients-plain", "gradients of plain attention, upstream random, never ones", kBackward,
     plain, judged_without_lse},
    {"gradients-of-lse", "the gradient through the LSE is there", kBackward, plain, judged},
    {"gradients-linear", "gradients are linear in the upstream ones, bit for bit", kBackward, plain,
     linear},
    {"gradients-zero", "no upstream gradient, no gradient", kBackward, nullptr, zero_upstream},
    {"gradients-lse-alone",
     "V has no part in the gradient of the LSE",
     {Feature::gradients, Feature::lse},
     plain,
     lse_alone},
    {"gradients-unseen",
     "a key nobody sees has no gradient, and its NaN shows nowhere",
     {Feature::gradients, Feature::mask},
     [](Description& d) { plain(d), d.keys = std::max(d.keys, 2); },
     unseen_keys},
    {"gradients-delta", "D is the row's own, also where parts weigh differently", kBackward, plain,
     delta},
    {"gradients-differences", "gradients are finite differences of the exact loss", kBackward,
     small, differences},
    {"gradients-grouped",
     "dk and dv sum over the query heads of their group",
     {Feature::gradients, Feature::grouped_heads},
     [](Description& d) { plain(d), d.group = 3; },
     judged},
    {"gradients-causal",
     "gradients respect the causal mask",
     {Feature::gradients, Feature::causal_top_left},
     [](Description& d) { plain(d), d.causal = 1; },
     judged},
    {"gradients-softcap",
     "the derivative of the softcap is there",
     {Feature::gradients, Feature::softcap},
     [](Description& d) { plain(d), d.softcap = 1; },
     judged},
    {"gradients-bias",
     "the bias has its gradient, summed where it broadcasts",
     {Feature::gradients, Feature::bias},
     [](Description& d) { plain(d), d.bias = 1 + d.at % kScoreShapes; },
     judged},
    {"gradients-sinks",
     "a sink has its gradient",
     {Feature::gradients, Feature::sinks},
     [](Description& d) { plain(d), d.sinks = 1; },
     judged},
    {"gradients-sinks-alone",
     "a sink has its gradient from rows that see nothing else",
     {Feature::gradients, Feature::sinks, Feature::mask, Feature::lse},
     [](Description& d) { plain(d), d.sinks = 1; },
     sinks_alone},
    {"gradients-ring",
     "gradients come home to the rank that owns the keys",
     {Feature::gradients, Feature::ranks},
     [](Description& d) { plain(d), ring(d); },
     judged},
    {"gradients-bias-softcap",
     "the gradient of the bias does not pass the softcap",
     {Feature::gradients, Feature::bias, Feature::softcap},
     [](Description& d) { plain(d), d.bias = 4, d.softcap = 1, d.values = normal; },
     judged},
    {"gradients-ring-additions",
     "gradients of bias and sinks are summed over the ranks",
     {Feature::gradients, Feature::ranks, Feature::bias, Feature::sinks},
     [](Description& d) { plain(d), ring(d), d.bias = 1, d.sinks = 1; },
     additions},
    {"gradients-ring-everything",
     "the same with masks and additions",
     {Feature::gradients, Feature::ranks},
     ring,
     judged},
    {"gradients-deterministic", "the same call gives the same gradients", kBackward, nullptr,
     determinism},
    {"gradients-forward", "asking for gradients does not change the forward answer", kBackward,
     plain, forward_stays},
};

}  // namespace

std::span<const Law> gradient_laws() { return kLaws; }

}  // namespace ringproof::suite
