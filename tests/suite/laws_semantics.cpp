// What each part of a problem means: masks, additions, heads, axes. Every law aims its numbers at
// the mistake it is named for (docs/faults.md) and lets the judge decide.
#include <cmath>

#include "tests/suite/law.hpp"

namespace ringproof::suite {
namespace {

void judged(Trial& trial, const Description& d) { trial.judged(trial.draw(d)); }

/// V counts keys and heads, so that a key too many or too few moves the answer by its number.
void count_keys(Draft& draft) {
  prescribe_values(draft, [&](Index b, Index h, Index j, Index c) {
    return static_cast<double>((j * 7 + c * 3 + h * 5 + b * 11) % 61 - 30);
  });
}

/// Judged with such values, under nearly equal scores.
void counted(Trial& trial, const Description& d) {
  Draft draft = trial.draw(d);
  count_keys(draft);
  for (double& q : draft.table("q").values) q = std::ldexp(q, -3);
  trial.judged(draft);
}

/// Documents without a diagonal, and with one at either end of each document.
void packed(Trial& trial, const Description& d) {
  for (int causal = 0; causal < 3; ++causal) {
    Description one = d;
    one.causal = causal;
    restrict(one, trial.sizes());
    counted(trial, one);
  }
}

/// Every way in which a mask may broadcast.
void mask_shapes(Trial& trial, const Description& d) {
  for (int shape = 1; shape <= 4; ++shape) {
    Description one = d;
    one.mask = shape;
    counted(trial, one);
  }
}

void bias_shapes(Trial& trial, const Description& d) {
  for (int shape = 1; shape <= 4; ++shape) {
    Description one = d;
    one.bias = shape;
    counted(trial, one);
  }
}

/// Grouped heads, and the same keys and values given to each query head of its own.
void grouped_and_repeated(Trial& trial, const Description& d) {
  counted(trial, d);
  Draft draft = trial.draw(d);
  count_keys(draft);
  trial.judged(draft);
  const Index group = draft.heads / draft.kv_heads;
  for (const char* name : {"k", "v"}) {
    Table& table = draft.table(name);
    const std::ptrdiff_t size = table.shape[2] * table.shape[3];
    std::vector<double> repeated;
    for (Index head = 0; head < draft.batches * draft.heads; ++head) {
      const auto first = table.values.begin() + head / group * size;
      repeated.insert(repeated.end(), first, first + size);
    }
    table.shape[1] = draft.heads;
    table.values = std::move(repeated);
  }
  draft.kv_heads = draft.heads;
  trial.judged(draft);
}

void softcap_first(Trial& trial, const Description& d) {
  Draft draft = trial.draw(d);
  hide_keys(draft, [](Index j) { return j % 3 != 1; });
  for (Index b = 0; b < draft.batches; ++b) {
    for (Index h = 0; h < draft.kv_heads; ++h) {
      for (Index j = 1; j < draft.keys; j += 3) {
        for (Index c = 0; c < draft.value_dim; ++c) draft.v(b, h, j, c) = 0x1p14;
      }
    }
  }
  trial.judged(draft);
}

void bias_by_place(Trial& trial, const Description& d) {
  Draft draft = trial.draw(d);
  Table& bias = draft.table("bias");
  bias.shape = {draft.batches, draft.heads, draft.queries, draft.keys};
  bias.values.clear();
  for (Index head = 0; head < draft.batches * draft.heads; ++head) {
    for (Index i = 0; i < draft.queries; ++i) {
      for (Index j = 0; j < draft.keys; ++j) {
        bias.values.push_back(static_cast<double>((3 * head + 5 * i + 7 * j) % 16) / 4 - 2);
      }
    }
  }
  trial.judged(draft);
}

/// Sinks far below, near and far above the scores, from head to head; some rows see nothing else.
void sinks(Trial& trial, const Description& d) {
  Draft draft = trial.draw(d);
  const double levels[] = {0, 12, -40, 3};
  for (const Index first : {0, 1, 2, 3}) {
    for (Index h = 0; h < draft.heads; ++h) {
      draft.table("sinks").values[static_cast<std::size_t>(h)] = levels[(h + first) % 4];
    }
    trial.judged(draft);
  }
}

void sinks_alone(Trial& trial, const Description& d) {
  Draft draft = trial.draw(d);
  hide_keys(draft, [&](Index) { return false; });
  trial.judged(draft);
}

/// Rows that see nothing among rows that do: more queries than keys, aligned at the end.
void empty_rows(Trial& trial, const Description& d) {
  Draft draft = trial.draw(d);
  count_keys(draft);
  trial.judged(draft);
}

void nothing_visible(Trial& trial, const Description& d) {
  Draft draft = trial.draw(d);
  hide_keys(draft, [](Index) { return false; });
  trial.judged(draft);
}

/// A different LSE in every head and row: q grows with its place.
void lse_in_place(Trial& trial, const Description& d) {
  Draft draft = trial.draw(d);
  prescribe_scores(draft, [](Index) { return 1; });
  const Index rows = draft.batches * draft.heads * draft.queries;
  for (Index row = 0; row < rows; ++row) {
    draft.table("q").values[static_cast<std::size_t>(row * draft.head_dim)] =
        static_cast<double>(row % 128) / 16;
  }
  trial.judged(draft);
}

void equal_scores(Trial& trial, const Description& d) {
  Draft draft = trial.draw(d);
  prescribe_scores(draft, [](Index) { return 0; });
  count_keys(draft);
  trial.judged(draft);
}

/// The number of keys stands around the tiles that kernels have.
void tile_edges(Trial& trial, const Description& d) {
  constexpr Index kTiles[] = {16, 32, 64, 128};
  Description wide = d;
  wide.keys = static_cast<int>(kTiles[d.at % 4]) + d.at / 4 % 3 - 1;
  if (!trial.can(Feature::cross)) wide.queries = wide.keys;
  counted(trial, wide);
}

constexpr Law kLaws[] = {
    {"every-semantics",
     "the answer is inside the contract, whatever masks and additions come together",
     {},
     nullptr,
     judged},
    {"no-mask", "without any mask every query sees every key", {}, plain, counted},
    {"causal-top-left",
     "top_left: query i sees keys 0 to i, whatever the lengths",
     {Feature::causal_top_left},
     [](Description& d) { plain(d), d.causal = 1; },
     counted},
    {"causal-bottom-right",
     "bottom_right: the last query sees the last key, whatever the lengths",
     {Feature::causal_bottom_right},
     [](Description& d) { plain(d), d.causal = 2; },
     counted},
    {"window-edges",
     "a window of l and r ends exactly l keys back and r keys ahead",
     {Feature::window},
     [](Description& d) { plain(d), d.window_left = d.at % 5, d.window_right = d.at / 5 % 5; },
     counted},
    {"window-one-sided",
     "a window may have one end only",
     {Feature::window},
     [](Description& d) {
       plain(d);
       d.window_left = d.at % 2 == 0 ? d.at / 2 % 6 : -1;
       d.window_right = d.at % 2 == 0 ? -1 : d.at / 2 % 6;
     },
     counted},
    {"mask-shapes",
     "a mask may broadcast over batches, heads or queries",
     {Feature::mask},
     [](Description& d) { plain(d), d.mask = 1, d.batches = 2, d.group = 2; },
     mask_shapes},
    {"key-lengths",
     "keys behind the length of their batch are invisible",
     {Feature::key_lengths},
     [](Description& d) { plain(d), d.lengths = 1, d.batches = 2; },
     counted},
    {"packed-documents",
     "packed documents do not see each other, also where one is empty",
     {Feature::packed},
     [](Description& d) { plain(d), d.rows = 1, d.batches = 1, d.axes = 0; },
     packed},
    {"documents-by-row",
     "documents may be given row by row, -1 being none",
     {Feature::documents},
     [](Description& d) { plain(d), d.rows = 2; },
     counted},
    {"positions",
     "masks go by position, not by place",
     {Feature::positions, Feature::causal_top_left},
     [](Description& d) { plain(d), d.rows = 3, d.causal = 1; },
     counted},
    {"positions-window",
     "a window goes by position, not by place",
     {Feature::positions, Feature::window},
     [](Description& d) { plain(d), d.rows = 3, d.window_left = d.at % 6, d.window_right = 2; },
     counted},
    {"softcap",
     "the softcap is c tanh(s / c) of the scaled score",
     {Feature::softcap},
     [](Description& d) { plain(d), d.softcap = 1 + d.at % 2, d.values = sharp; },
     judged},
    {"softcap-before-mask",
     "a masked key stays masked under a softcap",
     {Feature::softcap, Feature::mask},
     [](Description& d) { plain(d), d.softcap = 1; },
     softcap_first},
    {"bias",
     "a bias broadcasts, and minus infinity in it hides a key",
     {Feature::bias},
     [](Description& d) { plain(d), d.bias = 1, d.batches = 2, d.group = 2; },
     bias_shapes},
    {"bias-by-place",
     "the bias of (head, query, key) goes to that pair",
     {Feature::bias},
     [](Description& d) { plain(d), d.bias = 4, d.batches = 2, d.group = 2; },
     bias_by_place},
    {"bias-after-softcap",
     "the bias comes after the softcap",
     {Feature::bias, Feature::softcap},
     [](Description& d) { plain(d), d.bias = 4, d.softcap = 2; },
     bias_by_place},
    {"alibi",
     "ALiBi takes slope times the distance of the positions",
     {Feature::alibi},
     [](Description& d) { plain(d), d.alibi = 1, d.causal = d.at % 3, d.group = 2; },
     judged},
    {"alibi-by-position",
     "ALiBi measures between positions, not places",
     {Feature::alibi, Feature::positions},
     [](Description& d) { plain(d), d.alibi = 1, d.rows = 3; },
     judged},
    {"sinks",
     "a sink enters the denominator once, near or far from the scores",
     {Feature::sinks},
     [](Description& d) { plain(d), d.sinks = 1, d.group = 2; },
     sinks},
    {"sinks-alone",
     "a row with nothing but a sink has output 0 and the sink as LSE",
     {Feature::sinks, Feature::mask},
     [](Description& d) { plain(d), d.sinks = 1; },
     sinks_alone},
    {"scale",
     "the scale of the problem is used, once",
     {Feature::scale},
     [](Description& d) { plain(d), d.scale = 1 + d.at % 2; },
     judged},
    {"default-scale",
     "without a scale it is 1 / sqrt(D), D of the keys, not of the values",
     {},
     [](Description& d) { plain(d), d.scale = 0, d.values = sharp; },
     judged},
    {"value-dim",
     "the values may have another dimension than the keys",
     {Feature::value_dim},
     [](Description& d) { plain(d), d.value_dim = d.head_dim == 0 ? 1 : d.head_dim - 1; },
     counted},
    {"grouped-heads",
     "query head h reads KV head h / (H / Hkv), as if it had one of its own",
     {Feature::grouped_heads},
     [](Description& d) { plain(d), d.group = 3, d.kv_heads = 2; },
     grouped_and_repeated},
    {"batches",
     "batches do not see each other",
     {Feature::batches},
     [](Description& d) { plain(d), d.batches = 2; },
     counted},
    {"empty-rows",
     "a query that sees nothing has output 0 and LSE minus infinity",
     {Feature::causal_bottom_right, Feature::cross},
     [](Description& d) { plain(d), d.causal = 2, d.queries = d.keys + 1 + d.at % 5; },
     empty_rows},
    {"empty-rows-nan",
     "where NaN is demanded of such rows, it is NaN",
     {Feature::causal_bottom_right, Feature::cross, Feature::empty_nan},
     [](Description& d) { plain(d), d.causal = 2, d.empty = 1, d.queries = d.keys + 1 + d.at % 5; },
     empty_rows},
    {"nothing-visible",
     "where no query sees anything the answer is 0 and minus infinity",
     {Feature::mask},
     plain,
     nothing_visible},
    {"no-keys",
     "a problem without keys is answered, too",
     {Feature::no_keys, Feature::cross},
     [](Description& d) { plain(d), d.keys = 0, d.values = small_integers; },
     judged},
    {"lse-of-equal-scores",
     "the LSE of N equal scores is s + log N",
     {Feature::lse},
     plain,
     equal_scores},
    {"lse-in-place",
     "each head and row has its own LSE in its own place",
     {Feature::lse},
     [](Description& d) { plain(d), d.batches = 2, d.group = 2; },
     lse_in_place},
    {"axes-bnhd",
     "[B, N, H, D] is read and written as such",
     {Feature::bnhd},
     [](Description& d) { plain(d), d.axes = 1, d.batches = 2, d.group = 2; },
     counted},
    {"axes-nhd",
     "[N, H, D] is read and written as such",
     {Feature::nhd},
     [](Description& d) { plain(d), d.axes = 2, d.batches = 1, d.group = 2; },
     counted},
    {"strides",
     "rows of the inputs may lie apart in memory",
     {Feature::strides},
     [](Description& d) { plain(d), d.gap = 3; },
     counted},
    {"tile-edges", "one key more or less than a tile changes nothing else", {}, plain, tile_edges},
};

}  // namespace

std::span<const Law> semantics_laws() { return kLaws; }

}  // namespace ringproof::suite
