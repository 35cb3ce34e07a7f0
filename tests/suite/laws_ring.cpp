// What the ring promises: the same answer for every number of ranks, layout and direction, with
// remainders, with ranks that own nothing, wherever the maximum and the mass lie.
#include <algorithm>
#include <cmath>

#include "tests/suite/law.hpp"

namespace ringproof::suite {
namespace {

/// V counts the keys at nearly equal scores: a block skipped, doubled or exchanged moves the mean.
Draft counting(Trial& trial, const Description& d) {
  Draft draft = trial.draw(d);
  prescribe_scores(draft, [](Index j) { return static_cast<double>(j % 2) / 4; });
  prescribe_values(draft, [](Index, Index h, Index j, Index c) {
    return static_cast<double>((j * (c + 1) + 3 * h) % 64);
  });
  return draft;
}

Draft with_ranks(const Draft& from, int ranks) {
  Draft draft = from;
  draft.spec.ranks = ranks;
  if (ranks == 1) draft.spec.ring.reset();
  return draft;
}

void rank_count(Trial& trial, const Description& d) {
  const Draft draft = trial.draw(d);
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8}) trial.judged(with_ranks(draft, ranks));
}

void layouts(Trial& trial, const Description& d) {
  Draft draft = counting(trial, d);
  draft.spec.ranks = d.ranks;
  for (int layout = 0; layout < 3; ++layout) {
    if (layout == 1 && !trial.can(Feature::zigzag)) continue;
    if (layout == 2 && !trial.can(Feature::striped)) continue;
    for (int order = 0; order < (trial.can(Feature::up) ? 2 : 1); ++order) {
      draft.spec.ring = oracle::Ring{static_cast<oracle::RingLayout>(layout),
                                     static_cast<oracle::RingOrder>(order)};
      trial.judged(draft);
    }
  }
}

/// Every remainder of N by 2 P, in every layout.
void remainders(Trial& trial, const Description& d) {
  for (int rest = 0; rest < 2 * d.ranks; ++rest) {
    Description one = d;
    one.keys = one.queries = 2 * d.ranks + rest;
    layouts(trial, one);
  }
}

/// Fewer queries than keys, then more.
void cross(Trial& trial, const Description& d) {
  for (const int queries : {(d.keys + 1) / 2, d.keys + 3}) {
    Description one = d;
    one.queries = queries;
    layouts(trial, one);
  }
}

void more_ranks_than_rows(Trial& trial, const Description& d) { trial.judged(counting(trial, d)); }

/// The maximum, far above the rest, stands in each part of the sequence in turn.
void maximum_anywhere(Trial& trial, const Description& d) {
  Draft draft = trial.draw(d);
  for (int rank = 0; rank < d.ranks; ++rank) {
    const Index key = (2 * rank + 1) * draft.keys / (2 * d.ranks);
    prescribe_scores(draft, [&](Index j) { return j == key ? 30 : static_cast<double>(j % 5); });
    trial.judged(draft);
  }
}

/// Shards of very unequal mass, lighter and lighter or heavier and heavier.
void unequal_shards(Trial& trial, const Description& d) {
  Draft draft = counting(trial, d);
  for (const double slope : {0.5, -0.5, 16.0, -16.0}) {
    prescribe_scores(draft, [&](Index j) {
      return slope * static_cast<double>(j * d.ranks / std::max<Index>(1, draft.keys));
    });
    trial.judged(draft);
  }
}

void judged(Trial& trial, const Description& d) { trial.judged(trial.draw(d)); }

/// At least two ranks, as many queries as keys.
void ring(Description& d) {
  plain(d);
  d.ranks = std::max(d.ranks, 2), d.ring = std::max(d.ring, 1), d.queries = d.keys;
}

constexpr Law kLaws[] = {
    {"rank-count",
     "the number of ranks does not matter",
     {Feature::ranks},
     [](Description& d) { d.ring = 0; },
     rank_count},
    {"ring-layout",
     "layout and direction of the ring do not matter",
     {Feature::ranks},
     ring,
     layouts},
    {"ring-layout-causal",
     "the same under a causal mask",
     {Feature::ranks, Feature::causal_top_left},
     [](Description& d) { ring(d), d.causal = 1; },
     layouts},
    {"ring-cross",
     "the same with more or fewer queries than keys",
     {Feature::ranks, Feature::cross},
     ring,
     cross},
    {"remainders",
     "any number of rows goes round, divisible or not",
     {Feature::ranks},
     [](Description& d) { ring(d), d.ranks = std::min(d.ranks, 5); },
     remainders},
    {"more-ranks-than-rows",
     "ranks that own nothing do no harm",
     {Feature::ranks},
     [](Description& d) { ring(d), d.keys = d.queries = 1 + d.at % 3, d.ranks = 4 + d.at % 4; },
     more_ranks_than_rows},
    {"maximum-anywhere",
     "the maximum may come from any rank",
     {Feature::ranks},
     ring,
     maximum_anywhere},
    {"unequal-shards", "ranks weigh by their mass", {Feature::ranks}, ring, unequal_shards},
    {"ring-sinks",
     "a sink counts once, not once a rank",
     {Feature::ranks, Feature::sinks},
     [](Description& d) { ring(d), d.sinks = 1, d.values = small_integers; },
     judged},
    {"ring-masks",
     "masks go by global rows on every rank",
     {Feature::ranks, Feature::mask},
     [](Description& d) { ring(d), d.mask = 4; },
     judged},
    {"ring-bias",
     "the bias goes by global rows on every rank",
     {Feature::ranks, Feature::bias},
     [](Description& d) { ring(d), d.bias = 4; },
     judged},
    {"ring-alibi",
     "ALiBi measures global positions on every rank",
     {Feature::ranks, Feature::alibi},
     [](Description& d) { ring(d), d.alibi = 1; },
     judged},
};

}  // namespace

std::span<const Law> ring_laws() { return kLaws; }

}  // namespace ringproof::suite
