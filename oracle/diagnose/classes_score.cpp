// Mistakes in the score of a pair: SCALE, SOFTCAP-ORDER, SENTINEL, MASK-DROP by arithmetic.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>

#include "oracle/diagnose/combine.hpp"
#include "oracle/diagnose/table.hpp"

namespace ringproof::oracle {

namespace {

constexpr double kLn2 = 0x1.62e42fefa39efp-1;

Change scaled(double scale) {
  return [scale](HeadChange& c) { c.scale = scale; };
}

void add_scales(const Subject& subject, Families& families) {
  const Problem& p = subject.problem();
  const auto depth = static_cast<double>(p.head_dim);
  const double right = p.spec.scale_of(p.head_dim);
  std::vector<std::pair<double, std::string>> scales{
      {1, "the scale is missing"},
      {right * right, "the scale is applied twice"},
      {1 / std::sqrt(depth), "1/sqrt(D) in place of the scale that is asked for"},
      {1 / depth, "1/D in place of the scale"},
      {1 / std::sqrt(static_cast<double>(p.value_dim)), "1/sqrt of the value dimension"},
      {std::sqrt(std::abs(right)), "only one of q and k is scaled by the scale's root"},
      {-right, "the sign of the scale"},
      {1 / right, "the inverse of the scale"},
      {right / kLn2, "scores are multiplied by log2(e), exponentials natural"},
      {right * kLn2, "exp2 of scores without the factor log2(e)"},
      {right * right / kLn2, "scale twice, and log2(e)"},
      {1 / std::sqrt(static_cast<double>(p.heads) * depth), "1/sqrt of the model dimension H D"},
      {1 / std::sqrt(static_cast<double>(p.keys)), "1/sqrt of the number of keys"}};
  for (const std::int64_t multiple : {8, 16, 32, 64, 128, 256}) {
    const std::int64_t padded = (p.head_dim + multiple - 1) / multiple * multiple;
    if (padded == p.head_dim) continue;
    scales.emplace_back(1 / std::sqrt(static_cast<double>(padded)),
                        "1/sqrt of the head dimension padded to " + std::to_string(padded));
  }
  for (const double percent :
       {1.0, -1.0, 0.1, -0.1, 0.5, -0.5, 2.0, -2.0, 5.0, -5.0, 10.0, -10.0}) {
    std::string text = std::to_string(percent);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    scales.emplace_back(right * (1 + percent / 100), "the scale is off by " + text + " %");
  }
  for (const double factor : {2.0, 0.5, 4.0, 0.25}) {
    scales.emplace_back(right * factor, factor > 1 ? "the scale is too large by a power of two"
                                                   : "the scale is too small by a power of two");
  }
  std::map<double, bool> seen;  // the same number under two names: the first one is printed
  for (const auto& [scale, words] : scales) {
    if (scale == right || !std::isfinite(scale) || !seen.emplace(scale, true).second) continue;
    add(families, "SCALE", words, scaled(scale));
  }
  struct Dequantisation {
    const Factors Problem::*factors;
    bool HeadChange::*flag;
    const char* words;
  };
  for (const Dequantisation& one :
       {Dequantisation{&Problem::q_scale, &HeadChange::dequantise_q, "q is not dequantised"},
        Dequantisation{&Problem::k_scale, &HeadChange::dequantise_k, "k is not dequantised"},
        Dequantisation{&Problem::v_scale, &HeadChange::dequantise_v, "v is not dequantised"}}) {
    if (!(p.*one.factors).tensor) continue;
    add(families, "SCALE", one.words, [flag = one.flag](HeadChange& c) { c.*flag = false; });
  }
}

void add_softcaps(const Subject& subject, Families& families) {
  const double cap = subject.problem().spec.softcap;
  if (cap <= 0) return;
  const char* id = "SOFTCAP-ORDER";
  add(families, id, "the softcap is missing", [](HeadChange& c) { c.softcap = 0; });
  add(families, id, "the cap is applied to scores that are not scaled yet", [cap](HeadChange& c) {
    const double scale = c.scale_value();
    c.scale = scale;
    c.softcap = std::abs(scale) * cap;
  });
  add(families, id, "the cap is applied to unscaled scores and nothing is scaled afterwards",
      [](HeadChange& c) { c.scale = 1; });
  add(families, id, "tanh(s / cap) is not multiplied by the cap", [cap](HeadChange& c) {
    c.scale = c.scale_value() / cap;
    c.softcap = 1;
  });
  add(families, id, "cap tanh(s): the division by the cap is missing",
      [cap](HeadChange& c) { c.scale = c.scale_value() * cap; });
  add(
      families, id, "masked scores are capped too: -infinity becomes -cap",
      [cap](HeadChange& c) {
        const auto before = c.visible;
        c.add_zero_scores([before](std::int64_t i, std::int64_t j) { return !before(i, j); }, -cap);
      },
      "MASK-DROP");
  for (const double factor : {1 / kLn2, kLn2}) {
    add(families, id, "the cap is in the units of another base of the exponential",
        [cap, factor](HeadChange& c) { c.softcap = cap * factor; });
  }
}

/// Masked scores that are large negative numbers in place of -infinity.
void add_sentinels(const Subject& subject, Families& families) {
  const auto text = [](double x) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%g", x);
    return std::string(buffer);
  };
  for (const double sentinel : {1e4, 5e4, 1e5, 3e4, 65504.0, 1e9, 1e3, 1e6, 1e30, 100.0}) {
    add(
        families, "SENTINEL", "masked scores are set to -" + text(sentinel),
        [sentinel](HeadChange& c) {
          const auto before = c.visible;
          c.add_zero_scores([before](std::int64_t i, std::int64_t j) { return !before(i, j); },
                            -sentinel);
        },
        "EMPTY-ROW");
    add(
        families, "SENTINEL", text(sentinel) + " is taken off masked scores",
        [sentinel](HeadChange& c) {
          c.bias = [sentinel, sees = c.visible, old = c.bias](std::int64_t i, std::int64_t j) {
            return (old ? old(i, j) : 0) - (sees(i, j) ? 0 : sentinel);
          };
          c.visible = [](std::int64_t, std::int64_t) { return true; };
        },
        "EMPTY-ROW");
  }
  // Tiles above the diagonal are skipped, so that only masked keys of the tile on it weigh
  // anything.
  for (const std::int64_t size : {16, 32, 64, 128, 8, 4}) {
    if (subject.problem().spec.causal == Causal::none) break;
    for (const double sentinel : {1e4, 5e4, 1e5, 3e4, 65504.0, 1e9, 1e3}) {
      add(families, "SENTINEL",
          "masked scores are set to -" + text(sentinel) + " in tiles of " + std::to_string(size) +
              " on the diagonal",
          [sentinel, size](HeadChange& c) {
            const auto before = c.visible;
            const auto query = c.position_q, key = c.position_k;
            c.add_zero_scores(
                [=](std::int64_t i, std::int64_t j) {
                  return !before(i, j) && key(j) / size <= query(i) / size;
                },
                -sentinel);
          });
    }
  }
  add(
      families, "MASK-DROP", "scores are multiplied by the mask: masked ones are 0",
      [](HeadChange& c) {
        const auto before = c.visible;
        c.add_zero_scores([before](std::int64_t i, std::int64_t j) { return !before(i, j); }, 0);
      },
      "PAD-LEAK");
}

/// LOWP-S where scores leave the range of fp16: -infinity hides a key, +infinity leaves a row
/// without a sum, which then counts as empty. All other scores are rounded to fp16.
void add_overflows(const Subject& subject, Families& families) {
  const Problem& p = subject.problem();
  if (subject.contract.inputs.dtype != DType::f16) return;
  constexpr double kOverflow = 65520;  // the smallest number that rounds to infinity
  const auto longest = [](const Tensor& x) {
    double largest = 0;
    for (std::int64_t n = 0; n < x.shape[0] * x.shape[1] * x.shape[2]; ++n) {
      double square = 0;
      for (std::int64_t d = 0; d < x.shape[3]; ++d) {
        const double one =
            x.at(n / (x.shape[1] * x.shape[2]), n / x.shape[2] % x.shape[1], n % x.shape[2], d);
        square += one * one;
      }
      largest = std::max(largest, square);
    }
    return std::sqrt(largest);
  };
  const double scale = p.spec.scale_of(p.head_dim);
  const double reach = longest(p.q) * longest(p.k);
  for (const bool scaled_first : {false, true}) {
    const double factor = scaled_first ? scale : 1;
    if (!(reach * std::abs(factor) >= kOverflow)) continue;
    Family& family = families.emplace_back();
    family.setting.contract = [underflow =
                                   0x1p-24 * std::max(1.0, std::abs(scale))](Contract& contract) {
      contract.score.store.push_back(0x1p-11);
      // What underflows is declared as an error of the exponential: a store that underflows like
      // fp16 would have its range, too, and the theorems no bound where scores leave it.
      contract.softmax.exp_rel += underflow;
    };
    family.setting.change = [&p, factor](HeadChange& c) {
      const auto score = [&p, factor, b = c.b, h = c.h](std::int64_t i, std::int64_t j) {
        double dot = 0;
        for (std::int64_t d = 0; d < p.head_dim; ++d) {
          dot += p.q.at(b, h, i, d) * p.k.at(b, p.kv_head(h), j, d);
        }
        return factor * dot;
      };
      // Of each row, whether some score that it sees becomes +infinity.
      const auto without_sum = std::make_shared<std::map<std::int64_t, bool>>();
      c.visible = [&p, score, without_sum, sees = c.visible](std::int64_t i, std::int64_t j) {
        if (!sees(i, j) || std::abs(score(i, j)) >= kOverflow) return false;
        const auto [row, fresh] = without_sum->emplace(i, false);
        for (std::int64_t other = 0; fresh && other < p.keys && !row->second; ++other) {
          row->second = sees(i, other) && score(i, other) >= kOverflow;
        }
        return !row->second;
      };
    };
    family.mutants.push_back({"LOWP-S",
                              std::string("scores leave the range of fp16 ") +
                                  (scaled_first ? "behind the scale" : "before the scale"),
                              "",
                              {}});
  }
}

}  // namespace

void add_score_classes(const Subject& subject, Families& families) {
  add_scales(subject, families);
  add_softcaps(subject, families);
  add_sentinels(subject, families);
  add_overflows(subject, families);
}

}  // namespace ringproof::oracle
