// What the softmax promises whatever the order of the keys: shifts, permutations, blocks, cuts, and
// maxima that come early, late or never.
#include <algorithm>
#include <cmath>

#include "tests/suite/law.hpp"
#include "tests/suite/merge.hpp"

namespace ringproof::suite {
namespace {

/// Adds `shift` to every score: one more component of q and k where there is room for it.
Draft shifted(const Draft& from, double shift) {
  Draft draft = from;
  const Index last = draft.head_dim - 1;
  for (std::size_t n = 0; n < draft.table("q").values.size(); ++n) {
    if (static_cast<Index>(n) % draft.head_dim == last) draft.table("q").values[n] = 1;
  }
  Table& k = draft.table("k");
  const double component = oracle::round_nearest(k.dtype, shift / draft.scale());
  for (std::size_t n = 0; n < k.values.size(); ++n) {
    if (static_cast<Index>(n) % draft.head_dim == last) k.values[n] = component;
  }
  return draft;
}

/// Shifts up to 1e5, where the contract's score type holds them.
void shift_invariance(Trial& trial, const Description& d) {
  const bool narrow =
      trial.types().input == oracle::DType::f16 || oracle::size_of(trial.types().input) == 1;
  const double shifts[] = {0, 96, -96, -1024, 1024, -65536, 65536, -131072, 98304};
  const Draft base = trial.draw(d);
  for (const double shift : shifts) {
    if (narrow && std::abs(shift) > 100) continue;
    trial.judged(shifted(base, shift));
  }
}

void key_permutation(Trial& trial, const Description& d) {
  const Draft draft = trial.draw(d);
  trial.judged(draft);
  trial.judged(choose_keys(draft, shuffled(draft.keys, d.seed + 1)));
}

void query_permutation(Trial& trial, const Description& d) {
  const Draft draft = trial.draw(d);
  trial.judged(draft);
  trial.judged(choose_queries(draft, shuffled(draft.queries, d.seed + 2)));
}

/// The keys block by block in reverse, for several sizes of blocks.
void block_order(Trial& trial, const Description& d) {
  const Draft draft = trial.draw(d);
  for (const Index block : {1, 4, 16, 64}) {
    std::vector<Index> order;
    for (Index first = (draft.keys - 1) / block * block; first >= 0; first -= block) {
      for (Index j = first; j < std::min(first + block, draft.keys); ++j) order.push_back(j);
    }
    trial.judged(choose_keys(draft, order));
  }
}

/// Invisible keys before the others move every block boundary of the kernel.
void block_size(Trial& trial, const Description& d) {
  const Draft draft = trial.draw(d);
  for (const Index padding : {1, 7, 16, 61}) {
    std::vector<Index> order(static_cast<std::size_t>(padding), 0);
    for (Index j = 0; j < draft.keys; ++j) order.push_back(j);
    Draft padded = choose_keys(draft, order);
    hide_keys(padded, [&](Index j) { return j >= padding; });
    trial.judged(padded);
  }
}

/// Keys cut at any place into parts; the parts' answers, merged by their LSE, are the answer.
void split_and_merge(Trial& trial, const Description& d) {
  const Draft draft = trial.draw(d);
  const Index cut = d.at % (draft.keys + 1);
  const std::vector<Index> all = ascending(draft.keys);
  std::vector<Answer> parts;
  for (const auto& [first, last] : {std::pair{Index{0}, cut}, std::pair{cut, draft.keys}}) {
    if (first == last) continue;  // a part without keys is the next law's
    parts.push_back(trial.judged(choose_keys(draft, {all.begin() + first, all.begin() + last})));
  }
  judge_merged(trial, draft, parts, merged(draft, parts));
}

/// Three parts in every order and grouping: the merge is commutative and associative.
void merge_order(Trial& trial, const Description& d) {
  const Draft draft = trial.draw(d);
  std::vector<Answer> parts;
  for (Index part = 0; part < 3; ++part) {
    std::vector<Index> keys;
    for (Index j = part; j < draft.keys; j += 3) keys.push_back(j);
    parts.push_back(trial.judged(choose_keys(draft, keys)));
  }
  std::vector<std::size_t> order{0, 1, 2};
  do {
    const Answer& a = parts[order[0]];
    const Answer& b = parts[order[1]];
    const Answer& c = parts[order[2]];
    const std::vector<Answer> left{merged(draft, {a, b}), c}, right{a, merged(draft, {b, c})};
    judge_merged(trial, draft, parts, merged(draft, left));
    judge_merged(trial, draft, parts, merged(draft, right));
  } while (std::next_permutation(order.begin(), order.end()));
}

/// Scores that prescribe where the maximum comes.
template <class Score>
void with_scores(Trial& trial, const Description& d, const Score& score) {
  Draft draft = trial.draw(d);
  prescribe_scores(draft, [&](Index j) { return score(j, draft.keys); });
  trial.judged(draft);
}

void ascending_maxima(Trial& trial, const Description& d) {
  with_scores(trial, d, [](Index j, Index) { return std::floor(static_cast<double>(j)) / 4; });
}
void steep_ascent(Trial& trial, const Description& d) {
  with_scores(trial, d, [](Index j, Index n) { return static_cast<double>(8 * (j - n + 1)); });
}
void descending_maxima(Trial& trial, const Description& d) {
  with_scores(trial, d, [](Index j, Index n) { return static_cast<double>(n - j) / 4; });
}
void rise_and_fall(Trial& trial, const Description& d) {
  with_scores(trial, d,
              [](Index j, Index n) { return static_cast<double>(std::min(j, n - 1 - j)) / 2; });
}
void late_maximum(Trial& trial, const Description& d) {
  with_scores(trial, d, [](Index j, Index n) { return j == n - 1 ? 48.0 : -48.0 + (j % 3); });
}
void far_below_zero(Trial& trial, const Description& d) {
  const bool narrow =
      trial.types().input == oracle::DType::f16 || oracle::size_of(trial.types().input) == 1;
  const double level = narrow ? -96 : -131072;
  with_scores(trial, d, [&](Index j, Index) { return level + static_cast<double>(j % 2 * 4); });
}
void no_overflow(Trial& trial, const Description& d) {
  with_scores(trial, d, [](Index j, Index n) { return j < n / 2 ? 720.0 : -720.0; });
  with_scores(trial, d, [](Index j, Index n) { return j < n / 2 ? -720.0 : 720.0; });
}

/// The first keys, whole blocks of them, are masked; the others lie far below zero.
void first_block_empty(Trial& trial, const Description& d) {
  for (const Index empty : {1, 16, 64}) {
    Description wide = d;
    wide.keys = static_cast<int>(empty) + 1 + d.keys % 8;
    Draft draft = trial.draw(wide);
    prescribe_scores(draft, [&](Index j) { return j < empty ? 64 : -200.0 + (j % 4); });
    hide_keys(draft, [&](Index j) { return j >= empty; });
    trial.judged(draft);
  }
}

/// A masked key with a huge score must not become the maximum.
void mask_before_maximum(Trial& trial, const Description& d) {
  Draft draft = trial.draw(d);
  prescribe_scores(draft,
                   [](Index j) { return j % 3 == 0 ? 10240.0 : static_cast<double>(j % 4); });
  hide_keys(draft, [](Index j) { return j % 3 != 0; });
  trial.judged(draft);
}

void duplicated_keys(Trial& trial, const Description& d) {
  const Draft draft = trial.draw(d);
  std::vector<Index> twice;
  for (Index j = 0; j < draft.keys; ++j) twice.insert(twice.end(), {j, j});
  trial.judged(draft);
  trial.judged(choose_keys(draft, twice));
}

constexpr Law kLaws[] = {
    {"shift",
     "a constant added to all scores changes the LSE by it and nothing else",
     {},
     plain,
     shift_invariance},
    {"key-permutation",
     "the order of the keys does not matter",
     {},
     [](Description& d) {
       d.lengths = 0, d.rows = 0, d.causal = 0, d.alibi = 0, d.window_left = d.window_right = -1;
     },
     key_permutation},
    {"key-permutation-positions",
     "permuted keys keep their positions",
     {Feature::positions, Feature::causal_top_left},
     [](Description& d) { plain(d), d.causal = 1; },
     key_permutation},
    {"query-permutation",
     "queries are independent of each other's order",
     {},
     [](Description& d) {
       d.rows = 0, d.causal = 0, d.alibi = 0, d.window_left = d.window_right = -1;
     },
     query_permutation},
    {"block-order", "the order of the blocks does not matter", {}, plain, block_order},
    {"block-size",
     "moved block boundaries change nothing",
     {Feature::mask, Feature::cross},
     plain,
     block_size},
    {"split-and-merge",
     "keys may be cut anywhere and the parts merged by their LSE",
     {Feature::lse, Feature::cross},
     [](Description& d) { plain(d), d.ranks = 1; },
     split_and_merge},
    {"merge-order",
     "merging is commutative and associative inside the contract",
     {Feature::lse, Feature::cross},
     [](Description& d) { plain(d), d.ranks = 1, d.keys = std::max(d.keys, 3); },
     merge_order},
    {"ascending-maxima", "each new maximum rescales what came before", {}, plain, ascending_maxima},
    {"steep-ascent",
     "a maximum that outweighs everything before leaves nothing of it",
     {},
     plain,
     steep_ascent},
    {"descending-maxima", "a first maximum stays the maximum", {}, plain, descending_maxima},
    {"rise-and-fall", "a maximum in the middle rescales once, not again", {}, plain, rise_and_fall},
    {"late-maximum", "the last key may be the one that counts", {}, plain, late_maximum},
    {"far-below-zero",
     "scores far below zero are scores, not minus infinity",
     {},
     plain,
     far_below_zero},
    {"no-overflow",
     "scores hundreds apart overflow nowhere, in either order",
     {},
     [](Description& d) { plain(d), d.keys = std::max(d.keys, 2); },
     no_overflow},
    {"first-block-empty",
     "first blocks without a visible key leave no trace",
     {Feature::mask, Feature::cross},
     plain,
     first_block_empty},
    {"mask-before-maximum",
     "a masked score is no maximum",
     {Feature::mask},
     [](Description& d) { plain(d), d.keys = std::max(d.keys, 4); },
     mask_before_maximum},
    {"duplicated-keys",
     "every key twice: the same output, the LSE larger by ln 2",
     {Feature::cross},
     plain,
     duplicated_keys},
};

}  // namespace

std::span<const Law> softmax_laws() { return kLaws; }

}  // namespace ringproof::suite
