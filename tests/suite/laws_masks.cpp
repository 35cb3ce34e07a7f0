// What is invisible does not exist: neither its bits nor its place may show in the answer.
#include <algorithm>
#include <cmath>

#include "oracle/case/assemble.hpp"
#include "tests/suite/law.hpp"

namespace ringproof::suite {
namespace {

/// visible by nobody: which keys of which batch and KV head no query of the problem sees.
std::vector<bool> unseen_keys(const Draft& draft) {
  const Laid laid(draft, {}, Fill::nan, {});
  const oracle::Source source = problem_source(*laid.problem());
  const oracle::Case one =
      oracle::assemble_case(source, oracle::Source{"answer", {}}, problem_spec(*laid.problem()));
  std::vector<bool> unseen;
  const Index group = draft.heads / draft.kv_heads;
  for (Index b = 0; b < draft.batches; ++b) {
    for (Index kv = 0; kv < draft.kv_heads; ++kv) {
      for (Index j = 0; j < draft.keys; ++j) {
        bool seen = false;
        for (Index h = kv * group; h < (kv + 1) * group && !seen; ++h) {
          for (Index i = 0; i < draft.queries && !seen; ++i) {
            seen = oracle::visible(one.problem, b, h, i, j);
          }
        }
        unseen.push_back(!seen);
      }
    }
  }
  return unseen;
}

/// The draft with `poison` in k and v of every key that nobody sees.
Draft poisoned(const Draft& from, const std::vector<bool>& unseen, double poison) {
  Draft draft = from;
  for (const char* name : {"k", "v"}) {
    Table& table = draft.table(name);
    const double stored = oracle::round_to_zero(table.dtype, poison);
    const std::size_t width = table.values.size() / std::max<std::size_t>(1, unseen.size());
    for (std::size_t row = 0; row < unseen.size(); ++row) {
      for (std::size_t c = 0; unseen[row] && c < width; ++c) table.values[row * width + c] = stored;
    }
  }
  return draft;
}

/// NaN, infinity and 1e30 where nobody looks change no bit.
void poison(Trial& trial, const Draft& draft) {
  const std::vector<bool> unseen = unseen_keys(draft);
  const Answer clean = trial.judged(draft);
  for (const double value : {std::nan(""), HUGE_VAL, -HUGE_VAL, 1e30}) {
    const oracle::DType type = trial.types().input;
    if (!std::isfinite(value) && !oracle::format_of(type).has_infinity) continue;
    const Draft bad = poisoned(draft, unseen, value);
    const Answer answer = trial.judged(bad);
    if (trial.candidate().promises.deterministic) {
      trial.same_bits(bad, answer, clean, "an invisible key or value showed");
    }
  }
}

void poison(Trial& trial, const Description& d) { poison(trial, trial.draw(d)); }

/// The same with a third of the keys behind the mask.
void poison_behind_mask(Trial& trial, const Description& d) {
  Draft draft = trial.draw(d);
  hide_keys(draft, [](Index j) { return j % 3 != 1; });
  poison(trial, draft);
}

/// The same at lengths where whole blocks are padding.
void poisoned_padding(Trial& trial, const Description& d) {
  Description wide = d;
  wide.keys = 64 + d.keys;
  if (!trial.can(Feature::cross)) wide.queries = wide.keys;
  Draft draft = trial.draw(wide);
  for (double& length : draft.table("key_lengths").values) {
    length = std::min(length, static_cast<double>(d.keys));
  }
  const Answer clean = trial.judged(draft);
  const Draft bad = poisoned(draft, unseen_keys(draft), std::nan(""));
  if (!oracle::format_of(trial.types().input).has_infinity) return;
  const Answer answer = trial.judged(bad);
  if (trial.candidate().promises.deterministic) {
    trial.same_bits(bad, answer, clean, "padding showed");
  }
}

/// Under causal masks a change of key n shows in no row before it.
void future_keys(Trial& trial, const Description& d) {
  const Draft draft = trial.draw(d);
  const Answer before = trial.judged(draft);
  Draft changed = draft;
  const Index from = d.at % draft.keys;
  for (Index b = 0; b < draft.batches; ++b) {
    for (Index h = 0; h < draft.kv_heads; ++h) {
      for (Index j = from; j < draft.keys; ++j) {
        for (Index c = 0; c < draft.head_dim; ++c) {
          changed.k(b, h, j, c) = static_cast<double>(3 - c % 7);
        }
        for (Index c = 0; c < draft.value_dim; ++c) {
          changed.v(b, h, j, c) = static_cast<double>(100 + c % 20);
        }
      }
    }
  }
  const Answer after = trial.judged(changed);
  if (!trial.candidate().promises.deterministic) return;
  const Index offset =
      draft.spec.causal == oracle::Causal::bottom_right ? draft.keys - draft.queries : 0;
  const Index heads = draft.batches * draft.heads;
  for (const auto& [name, width] : {std::pair<std::string, Index>{"out", draft.value_dim},
                                    std::pair<std::string, Index>{"lse", 1}}) {
    if (after.count(name) == 0) continue;
    Answer expected = after, got = after;
    for (Index head = 0; head < heads; ++head) {
      for (Index i = 0; i < draft.queries && i + offset < from; ++i) {
        for (Index c = 0; c < width; ++c) {
          const auto n = static_cast<std::size_t>((head * draft.queries + i) * width + c);
          expected[name][n] = before.at(name)[n];
        }
      }
    }
    trial.same_bits(changed, got, expected, "a future key showed", {name});
  }
}

/// A window as wide as the sequence is no window; one narrower by one is.
void wide_window(Trial& trial, const Description& d) {
  Draft draft = trial.draw(d);
  trial.judged(draft);
  const Index widest = std::max(draft.queries, draft.keys);
  for (const Index left : {widest, widest - 1, Index{0}}) {
    draft.spec.window_left = left;
    draft.spec.window_right = d.at % 2 == 0 ? -1 : left;
    trial.judged(draft);
  }
}

/// Empty blocks before, between and behind: empty + x = x + empty = x.
void empty_blocks(Trial& trial, const Description& d) {
  Draft base = trial.draw(d);
  const auto repeated_first = [&](Index count) {
    return std::vector<Index>(static_cast<std::size_t>(count), 0);
  };
  for (const Index empty : {16, 65}) {
    for (const int where : {0, 1, 2}) {
      std::vector<Index> order = ascending(base.keys);
      const Index at = where == 0 ? 0 : where == 1 ? base.keys / 2 : base.keys;
      const std::vector<Index> hidden = repeated_first(empty);
      order.insert(order.begin() + at, hidden.begin(), hidden.end());
      Draft draft = choose_keys(base, order);
      hide_keys(draft, [&](Index j) { return j < at || j >= at + empty; });
      trial.judged(draft);
    }
  }
}

constexpr Law kLaws[] = {
    {"poison", "NaN, infinity and 1e30 at places nobody sees change no bit", {}, nullptr, poison},
    {"poison-mask",
     "the same behind a mask",
     {Feature::mask},
     [](Description& d) { plain(d), d.mask = 1 + d.at % 4, d.keys = std::max(d.keys, 2); },
     poison_behind_mask},
    {"poison-causal",
     "the same behind the diagonal",
     {Feature::causal_top_left, Feature::cross},
     [](Description& d) { plain(d), d.causal = 1, d.keys = d.queries + 1 + d.at % 9; },
     poison},
    {"poison-window",
     "the same outside a window",
     {Feature::window, Feature::cross},
     [](Description& d) {
       plain(d), d.window_left = d.at % 4, d.window_right = 1, d.keys = d.queries + 5;
     },
     poison},
    {"poison-bias",
     "the same under a bias of minus infinity",
     {Feature::bias},
     [](Description& d) { plain(d), d.bias = 1; },
     poison},
    {"poison-documents",
     "the same in keys of no document",
     {Feature::documents},
     [](Description& d) { plain(d), d.rows = 2; },
     poison},
    {"poison-padding",
     "the same in padding of whole blocks",
     {Feature::key_lengths},
     [](Description& d) { plain(d), d.lengths = 1; },
     poisoned_padding},
    {"future-keys",
     "under a causal mask future keys change no bit",
     {Feature::causal_top_left},
     [](Description& d) { plain(d), d.causal = 1; },
     future_keys},
    {"future-keys-bottom-right",
     "the same with the diagonal at the end",
     {Feature::causal_bottom_right},
     [](Description& d) { plain(d), d.causal = 2; },
     future_keys},
    {"wide-window",
     "a window as long as the sequence is none",
     {Feature::window},
     [](Description& d) { plain(d), d.values = small_integers; },
     wide_window},
    {"empty-blocks",
     "a block that nobody sees is neutral on either side",
     {Feature::mask, Feature::cross},
     plain,
     empty_blocks},
};

}  // namespace

std::span<const Law> mask_laws() { return kLaws; }

}  // namespace ringproof::suite
