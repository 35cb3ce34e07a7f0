// Mistakes that dbias or dsinks have by themselves: what is added up over batches, heads and
// queries (GQA-GRAD), where it is stored (BIAS-OFFSET), which factors it has (SCALE, SOFTCAP-ORDER,
// SINK), and terms that are forgotten here alone (DELTA, LSE-GRAD, DOUT-IGNORED).
#include <algorithm>
#include <cmath>

#include "oracle/diagnose/gradient_table.hpp"
#include "oracle/judge/summed_rows.hpp"

namespace ringproof::oracle {

namespace {

/// An axis over which a tensor is added up, and where a pair lies on it.
struct Axis {
  const char* word;
  std::int64_t length;
  std::int64_t PairPlace::*place;
};

/// The axes of length 1 in the stored shape that are longer in the problem.
std::vector<Axis> summed_axes(const Problem& p, const BiasShape& shape) {
  const Axis all[] = {{"batch entry", p.batches, &PairPlace::b},
                      {"head", p.heads, &PairPlace::h},
                      {"query", p.queries, &PairPlace::i},
                      {"key", p.keys, &PairPlace::j}};
  std::vector<Axis> summed;
  for (std::size_t axis = 0; axis < 4; ++axis) {
    if (shape[axis] == 1 && all[axis].length > 1) summed.push_back(all[axis]);
  }
  return summed;
}

void set_factor(GradientRule& rule, int wrong, double factor) {
  if (wrong == kDbias) rule.factor_bias = factor;
  if (wrong == kDsinks) rule.factor_sinks = factor;
}

void set_counts(GradientRule& rule, int wrong, std::function<double(const PairPlace&)> counts) {
  (wrong == kDbias ? rule.counts_bias : rule.counts_sinks) = std::move(counts);
}

/// Sums that are overwritten or averaged.
void add_axes(const std::vector<Axis>& axes, int wrong, Mutants& mutants) {
  const std::string name = names(wrong);
  const char* also = wrong == kDsinks ? "SINK" : "";
  const auto of_one = [&](const std::string& words, const std::vector<Axis>& fixed, bool last) {
    const auto counts = [fixed, last](const PairPlace& at) {
      return std::all_of(fixed.begin(), fixed.end(), [&](const Axis& axis) {
        return at.*axis.place == (last ? axis.length - 1 : 0);
      });
    };
    add(
        mutants, "GQA-GRAD", name + " of the " + words + " alone", wrong,
        [&](GradientRule& rule) {
          set_counts(rule, wrong, [counts](const PairPlace& at) { return counts(at) ? 1.0 : 0.0; });
        },
        also);
  };
  double count = 1;
  for (const Axis& axis : axes) {
    of_one(std::string("first ") + axis.word, {axis}, false);
    of_one(std::string("last ") + axis.word, {axis}, true);
    const auto length = static_cast<double>(axis.length);
    count *= length;
    add(
        mutants, "GQA-GRAD", name + ": the mean over every " + axis.word + " in place of the sum",
        wrong, [&](GradientRule& rule) { set_factor(rule, wrong, 1 / length); }, also);
  }
  if (axes.size() < 2) return;
  of_one("last of all that are added", axes, true);
  add(
      mutants, "GQA-GRAD", name + ": the mean of all that are added in place of the sum", wrong,
      [&](GradientRule& rule) { set_factor(rule, wrong, 1 / count); }, also);
}

/// Terms that the other gradients have and this one lacks.
void add_terms(const Subject& subject, int wrong, Mutants& mutants) {
  const std::string of = names(wrong) + ": ";
  add(mutants, "DELTA", of + "D is left out", wrong, [](GradientRule& r) { r.without_D = true; });
  add(mutants, "DELTA", of + "the sign of D", wrong, [](GradientRule& r) { r.negative_D = true; });
  if (subject.input.dlse) {
    add(mutants, "LSE-GRAD", of + "the gradient of the lse is ignored", wrong,
        [](GradientRule& r) { r.without_dlse = true; });
    add(mutants, "LSE-GRAD", of + "the sign of the gradient of the lse", wrong,
        [](GradientRule& r) { r.negative_dlse = true; });
  }
  add(mutants, "DOUT-IGNORED", of + "dout is taken for ones", wrong,
      [](GradientRule& r) { r.ones_for_dout = r.ones_for_dout_in_D = true; });
  for (const double exponent : {kLn2, 1 / kLn2}) {
    add(mutants, "LSE-BASE", of + "probabilities are recomputed in another base", wrong,
        [exponent](GradientRule& r) { r.p_exponent = exponent; });
  }
}

void add_places(const Subject& subject, const BiasShape& shape, Mutants& mutants) {
  const Problem& p = subject.problem();
  const auto stored = [&](const std::string& words, auto place) {
    add(mutants, "BIAS-OFFSET", "dbias is stored " + words, kDbias,
        [&](GradientRule& rule) { rule.bias_place = place; });
  };
  const auto shifted = [&](const char* word, std::int64_t length, std::int64_t PairPlace::*axis) {
    for (const std::int64_t by : {std::int64_t{1}, length - 1}) {
      stored(std::string("one ") + word + (by == 1 ? " on" : " back"), [=](PairPlace at) {
        at.*axis = (at.*axis + by) % length;
        return at;
      });
    }
  };
  if (shape[0] > 1) shifted("batch entry", p.batches, &PairPlace::b);
  if (shape[1] > 1) shifted("head", p.heads, &PairPlace::h);
  if (shape[2] > 1) shifted("query", p.queries, &PairPlace::i);
  if (shape[3] > 1) shifted("key", p.keys, &PairPlace::j);
  if (shape[2] > 1 && shape[2] == shape[3]) {
    stored("transposed", [](PairPlace at) {
      std::swap(at.i, at.j);
      return at;
    });
  }
  if (subject.ranks < 2) return;
  const auto local = [&](const char* word, std::int64_t length, std::int64_t PairPlace::*axis) {
    const std::int64_t shard = (length + subject.ranks - 1) / subject.ranks;
    stored(std::string("by the ") + word + "'s place in its shard", [=](PairPlace at) {
      at.*axis %= shard;
      return at;
    });
    mutants.back().rule.pairs_of_place = subject.ranks;
  };
  if (shape[3] > 1) local("key", p.keys, &PairPlace::j);
  if (shape[2] > 1) local("query", p.queries, &PairPlace::i);
}

void add_ranks(const Subject& subject, int judged, Mutants& mutants) {
  for (const Sharing& sharing : sharings(subject)) {
    for (const std::int64_t rank : {std::int64_t{0}, sharing.ranks - 1}) {
      const std::string words = std::string(" of the ") + (rank == 0 ? "first" : "last") +
                                " rank alone (" + sharing.name + ")";
      for (const int wrong : {kDbias, kDsinks, kDbias + kDsinks}) {
        if ((wrong & judged) != wrong) continue;
        add(
            mutants, "RING-HOPS", names(wrong) + words, wrong,
            [=](GradientRule& rule) {
              const auto counts = [=](std::int64_t, std::int64_t i, std::int64_t) {
                return sharing.query_rank(0, i) == rank ? 1.0 : 0.0;
              };
              count_pairs(rule, wrong, counts);
            },
            "SINK, BIAS-OFFSET, REMAINDER");
      }
    }
  }
}

void add_bias(const Subject& subject, const BiasShape& shape, Mutants& mutants) {
  const Problem& p = subject.problem();
  const double scale = p.spec.scale_of(p.head_dim);
  const auto times = [&](const char* words, double factor) {
    add(mutants, "SCALE", std::string("dbias ") + words, kDbias,
        [factor](GradientRule& rule) { rule.factor_bias = factor; });
  };
  times("times the scale of the scores", scale);
  times("divided by the scale of the scores", 1 / scale);
  times("times log2(e)", 1 / kLn2);
  times("times ln 2", kLn2);
  if (p.spec.softcap > 0) {
    add(mutants, "SOFTCAP-ORDER", "dbias as if the bias were under the softcap", kDbias,
        [](GradientRule& rule) { rule.derivative_in_bias = true; });
  }
  add_axes(summed_axes(p, shape), kDbias, mutants);
  add_terms(subject, kDbias, mutants);
  add_places(subject, shape, mutants);
}

void add_sinks(const Subject& subject, Mutants& mutants) {
  const Problem& p = subject.problem();
  const auto sink = [&](const std::string& words, const Edit& edit) {
    add(mutants, "SINK", "dsinks" + words, kDsinks, edit);
  };
  sink(": the weight of the sink is left out", [](GradientRule& r) { r.without_p_sink = true; });
  for (const std::int64_t by : {std::int64_t{1}, p.heads - 1}) {
    if (p.heads < 2) break;
    sink(by == 1 ? " of the head before" : " of the next head", [&](GradientRule& rule) {
      const std::int64_t heads = p.heads;
      rule.sink_place = [=](PairPlace at) {
        at.h = (at.h + by) % heads;
        return at;
      };
    });
  }
  if (subject.ranks > 1) {
    const auto ranks = static_cast<double>(subject.ranks);
    sink(" once a rank", [=](GradientRule& rule) { rule.factor_sinks = rule.copies = ranks; });
    sink(": the mean over ranks", [=](GradientRule& rule) { rule.factor_sinks = 1 / ranks; });
  }
  add_axes(summed_axes(p, {1, p.heads, 1, p.keys}), kDsinks, mutants);
  add_terms(subject, kDsinks, mutants);
}

}  // namespace

void add_addition_classes(const Subject& subject, Mutants& mutants) {
  const int judged = judged_gradients(subject.input);
  if ((judged & kDbias) != 0) {
    add_bias(subject, subject.input.find(AnswerKind::dbias)->tensor.shape, mutants);
  }
  if ((judged & kDsinks) != 0) add_sinks(subject, mutants);
  add_ranks(subject, judged, mutants);
}

}  // namespace ringproof::oracle
