// The output as a function of the values: linear, inside their hull, and a probe of the weights.
#include <algorithm>
#include <cmath>

#include "tests/suite/law.hpp"

namespace ringproof::suite {
namespace {

/// V times a power of two: the output times the same, bit for bit, and the LSE untouched.
void power_of_two(Trial& trial, const Description& d) {
  const Draft draft = trial.draw(d);
  const Answer before = trial.judged(draft);
  const double factor = d.at % 2 == 0 ? 4 : 0.25;
  Draft scaled = draft;
  for (double& v : scaled.table("v").values) v *= factor;
  Answer expected = before;
  bool normal = true;  // an output that leaves the normal numbers of its type may round anew
  const double least = std::ldexp(1.0, oracle::format_of(trial.wanted(draft).out).min_exponent + 3);
  for (double& out : expected["out"]) {
    normal = normal && (out == 0 || std::abs(out) >= least);
    out *= factor;
  }
  const Answer after = trial.judged(scaled);
  if (normal && trial.candidate().promises.deterministic) {
    trial.same_bits(scaled, after, expected, "V times a power of two");
  }
}

/// out(V + W) against truth, where V and W alone are inside the contract, too.
void superposition(Trial& trial, const Description& d) {
  Draft first = trial.draw(d);
  prescribe_values(
      first, [](Index, Index, Index j, Index c) { return static_cast<double>((5 * j + c) % 16); });
  Draft second = first, sum = first;
  prescribe_values(second, [](Index, Index h, Index j, Index c) {
    return static_cast<double>((3 * j + 7 * c + h) % 13) - 6;
  });
  for (std::size_t n = 0; n < sum.table("v").values.size(); ++n) {
    sum.table("v").values[n] += second.table("v").values[n];
  }
  for (const Draft& draft : {first, second, sum}) trial.judged(draft);
}

void values_of_one(Trial& trial, const Description& d) {
  Draft draft = trial.draw(d);
  prescribe_values(draft, [](Index, Index, Index, Index) { return 1; });
  trial.judged(draft);
}

/// One tight interval for V in every column, another column by column.
void convexity(Trial& trial, const Description& d) {
  Draft draft = trial.draw(d);
  prescribe_values(draft, [](Index, Index, Index j, Index c) {
    return static_cast<double>(24 * (c % 2 == 0 ? 1 : -1) + 4 * (j % 3));
  });
  trial.judged(draft);
}

/// Equal scores: the output is the plain mean of values that count the keys.
void index_coded(Trial& trial, const Description& d) {
  Draft draft = trial.draw(d);
  prescribe_scores(draft, [](Index) { return 0; });
  prescribe_values(draft, [](Index, Index, Index j, Index c) {
    return c % 2 == 0 ? static_cast<double>(j) : static_cast<double>(j % 3 == 0);
  });
  trial.judged(draft);
}

/// One key outweighs all others so far that the output is its value, exactly.
void dominant_key(Trial& trial, const Description& d) {
  Draft draft = trial.draw(d);
  const Index key = d.at % draft.keys;
  prescribe_scores(draft, [&](Index j) { return j == key ? 0 : -8192.0; });
  const Answer answer = trial.judged(draft);
  Answer expected = answer;
  const Index group = draft.heads / draft.kv_heads;
  std::size_t n = 0;
  for (Index b = 0; b < draft.batches; ++b) {
    for (Index h = 0; h < draft.heads; ++h) {
      for (Index i = 0; i < draft.queries; ++i) {
        for (Index c = 0; c < draft.value_dim; ++c) {
          expected["out"][n++] = draft.v(b, h / group, key, c) + 0.0;
        }
      }
    }
  }
  if (trial.wanted(draft).out == draft.table("v").dtype) {
    for (std::size_t m = 0; m < n; ++m) expected["out"][m] += 0.0;  // no negative zeros
    Answer positive = answer;
    for (double& out : positive["out"]) out += 0.0;
    trial.same_bits(draft, positive, expected, "one dominant key", {"out"});
  }
}

/// The weights themselves: V is a slice of the identity, so the output is a slice of P. Invisible
/// keys have weight zero exactly; every weight lies inside its bound.
void tomography(Trial& trial, const Description& d) {
  Draft draft = trial.draw(d);
  for (Index first = 0; first < draft.keys; first += draft.value_dim) {
    prescribe_values(draft, [&](Index, Index, Index j, Index c) { return j == first + c ? 1 : 0; });
    trial.judged(draft);
  }
}

/// Very unequal mass: nearly all of it in a few keys, with small values, against many light ones.
void unequal_mass(Trial& trial, const Description& d) {
  Draft draft = trial.draw(d);
  const Index heavy = std::max<Index>(1, draft.keys / 10);
  prescribe_scores(draft, [&](Index j) { return j < heavy ? 5 : 0; });
  prescribe_values(draft, [&](Index, Index, Index j, Index c) {
    return static_cast<double>((j < heavy ? 1 : -8) * (1 + c % 3));
  });
  trial.judged(draft);
}

/// Many equal scores: sums of thousands of equal weights.
void long_rows(Trial& trial, const Description& d) {
  Description wide = d;
  wide.keys = 1000 + d.at % 600;
  if (!trial.can(Feature::cross)) wide.queries = wide.keys;
  Draft draft = trial.draw(wide);
  prescribe_scores(draft, [](Index) { return 0; });
  prescribe_values(
      draft, [](Index, Index, Index j, Index c) { return static_cast<double>((j + c) % 4) / 2; });
  trial.judged(draft);
}

constexpr Law kLaws[] = {
    {"power-of-two",
     "V times a power of two gives the output times it, bit for bit",
     {},
     plain,
     power_of_two},
    {"superposition", "the output is linear in V", {}, plain, superposition},
    {"values-of-one", "the weights of a row sum to one", {}, nullptr, values_of_one},
    {"convexity",
     "the output lies between the smallest and the largest visible value",
     {},
     plain,
     convexity},
    {"index-coded", "at equal scores every key counts once", {}, plain, index_coded},
    {"dominant-key",
     "a key that outweighs all others gives its value, exactly",
     {},
     plain,
     dominant_key},
    {"tomography",
     "the weights, read off with V = identity, are the softmax",
     {},
     [](Description& d) { d.keys = std::min(d.keys, 16); },
     tomography},
    {"unequal-mass",
     "parts weigh by their mass, not by their number",
     {},
     [](Description& d) { plain(d), d.keys = std::max(d.keys, 2); },
     unequal_mass},
    {"long-rows",
     "sums over a thousand keys keep their digits",
     {},
     [](Description& d) {
       plain(d), d.batches = 1, d.kv_heads = 1, d.group = 1, d.queries = 1 + d.at % 2;
     },
     long_rows},
};

}  // namespace

std::span<const Law> value_laws() { return kLaws; }

}  // namespace ringproof::suite
