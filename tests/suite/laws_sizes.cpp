// Sizes at which kernels change their way: every usual width of a head, and rows and keys behind
// the boundaries of tiles. Other laws draw small problems (docs/your-kernel.md).
#include <algorithm>

#include "tests/suite/law.hpp"

namespace ringproof::suite {
namespace {

/// One more than common tiles of queries and keys divide, and behind 256.
constexpr int kBehindTiles = 261;
/// Behind the largest tiles and the usual unit of a split.
constexpr int kLong = 1093;

/// Multiples of vectors and tiles of channels, and some in between.
constexpr int kWidths[] = {2,  5,   12,  20,  24,  40,  48,  64,  72,  80,
                           96, 100, 112, 128, 136, 160, 192, 256, 264, 512};

Answer judged(Trial& trial, Draft draft, const Description& d) {
  if (trial.can(Feature::gradients)) {
    ask_for_gradients(draft, trial.types(), d.seed, trial.can(Feature::lse));
  }
  return trial.judged(draft);
}

/// A width that the kernel does not take is no fault; the others must be right.
void widths(Trial& trial, const Description& d) {
  bool any = false;
  for (const int width : kWidths) {
    Sizes sizes = trial.sizes();
    sizes.head_dims = {width};
    try {
      judged(trial, draw(d, sizes, trial.types()), d);
      any = true;
    } catch (const NotSupported&) {
    }
  }
  if (!any) throw NotSupported{};
}

void forward(Trial& trial, const Description& d) { trial.judged(trial.draw(d)); }
void both_passes(Trial& trial, const Description& d) { judged(trial, trial.draw(d), d); }

/// Every tile raises the maximum, up to the last, and none so far that earlier ones vanish.
void late_maxima(Trial& trial, const Description& d) {
  Draft draft = trial.draw(d);
  prescribe_scores(draft, [](Index j) { return static_cast<double>(j / 32) / 4; });
  trial.judged(draft);
}

void one_head(Description& d) {
  plain(d);
  d.batches = d.kv_heads = d.group = 1;
  d.values = normal;
}
void square(Description& d, int rows) {
  one_head(d);
  d.queries = d.keys = rows;
}

constexpr Law kLaws[] = {
    {"width",
     "a head of any width counts all its channels",
     {},
     [](Description& d) {
       one_head(d);
       d.queries = std::min(d.queries, 3), d.keys = std::clamp(d.keys, 3, 7);
       d.head_dim = d.value_dim = 0;
     },
     widths},
    {"tiles",
     "rows and keys behind the boundaries of tiles count like all others",
     {},
     [](Description& d) { square(d, kBehindTiles); },
     forward},
    {"tiles-causal",
     "the diagonal is there at the boundaries of tiles",
     {Feature::causal_top_left},
     [](Description& d) { square(d, kBehindTiles), d.causal = 1; },
     forward},
    {"tiles-window",
     "the ends of a window are there at the boundaries of tiles",
     {Feature::window},
     [](Description& d) {
       square(d, kBehindTiles), d.window_left = 64 + d.at % 9, d.window_right = d.at % 3;
     },
     forward},
    {"tiles-late-maximum",
     "what was summed is rescaled in every tile, however many came before",
     {},
     [](Description& d) { one_head(d), d.queries = 2, d.keys = kLong; },
     late_maxima},
    {"tiles-gradients",
     "gradients of rows and keys behind the boundaries of tiles",
     {Feature::gradients},
     [](Description& d) { square(d, kBehindTiles / 2), d.causal = d.at % 2; },
     both_passes},
};

}  // namespace

std::span<const Law> size_laws() { return kLaws; }

}  // namespace ringproof::suite
