// Mistakes behind the softmax: in the LSE (LSE-BASE), a constant factor (GAIN), what was never
// written (TAIL, UNINIT), rows that see nothing (EMPTY-ROW), and numbers that leave the range of
// their type (SENTINEL, MASK-AFTER-MAX, LOWP-S, PAD-LEAK).
#include <cmath>
#include <limits>
#include <memory>

#include "oracle/diagnose/combine.hpp"
#include "oracle/diagnose/table.hpp"

namespace ringproof::oracle {

namespace {

using Kind = Expected::Kind;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLn2 = 0x1.62e42fefa39efp-1;

/// a + b x, in place.
void transform(Expected& x, double a, double b) {
  if (x.kind != Kind::ball || !std::isfinite(x.exact.hi)) return;
  const double value = a + b * (x.exact.hi + x.exact.lo);
  x.exact = {value, 0, std::abs(b) * x.exact.radius + 0x1p-48 * (std::abs(value) + std::abs(a))};
  x.bound *= std::abs(b);
}

Expectation lse_as(double factor) {
  return [factor](const RowMaterial&, ExpectedRow& row) {
    for (ExpectedRow::Lse& lse : row.lse) {
      if (!std::isfinite(lse.value.exact.hi)) {
        lse.value.exact.hi *= factor;
      } else {
        transform(lse.value, 0, factor);
      }
    }
  };
}

/// lse = a L + m M + offset, L the lse and M the maximum of the row.
Expectation lse_of(double of_lse, double of_max, bool unscaled = false) {
  return [=](const RowMaterial& row, ExpectedRow& expected) {
    if (row.truth.empty()) {
      expected.lse.front().value = Expected::of_kind(Kind::anything);
      return;
    }
    const double max = row.truth.max_score / (unscaled ? row.change.scale_value() : 1);
    Expected& lse = expected.lse.front().value;
    const double bound = lse.bound;
    transform(lse, of_max * max, of_lse);
    // The maximum itself is a computed score: its error is at most that of the LSE's own bound.
    lse.bound += std::abs(of_max) * (max == 0 ? 1 : std::abs(max / row.truth.max_score)) * bound;
  };
}

void add_lse_forms(Family& family) {
  const char* id = "LSE-BASE";
  add(family, id, "the lse is a base-2 logarithm", lse_as(1 / kLn2));
  add(family, id, "the lse is divided by log2(e) once too often", lse_as(kLn2));
  add(family, id, "the sign of the lse", lse_as(-1));
  add(family, id, "the sign and the base of the lse", lse_as(-1 / kLn2));
  add(family, id, "the lse lacks the maximum: it is log l", lse_of(1, -1));
  add(family, id, "the lse lacks log l: it is the maximum", lse_of(0, 1));
  add(family, id, "log2 of l beside a natural maximum", lse_of(1 / kLn2, 1 - 1 / kLn2));
  add(family, id, "a base-2 maximum beside the natural log l", lse_of(1, 1 / kLn2 - 1));
  add(family, id, "the maximum is taken off, not added", lse_of(1, -2));
  add(family, id, "the sign of log l", lse_of(-1, 2));
  add(family, id, "log10 of l", lse_of(1 / std::log(10.0), 1 - 1 / std::log(10.0)));
  add(family, id, "the lse is zero",
      [](const RowMaterial&, ExpectedRow& row) { row.lse.front().value = Expected::value(0); });
  add(family, id, "the maximum in the lse is not scaled",
      [](const RowMaterial& row, ExpectedRow& expected) {
        lse_of(1, -1)(row, expected);
        if (row.truth.empty()) return;
        const double max = row.truth.max_score / row.change.scale_value();
        transform(expected.lse.front().value, max, 1);
      });
  add(family, id, "the lse is l, not its logarithm",
      [](const RowMaterial& row, ExpectedRow& expected) {
        Expected& lse = expected.lse.front().value;
        if (row.truth.empty()) return;
        const double l = std::exp(row.truth.lse.hi - row.truth.max_score);
        lse = {Kind::ball, {l, 0, 0x1p-40 * l}, l * std::expm1(2 * lse.bound)};
      });
}

void add_gains(const Subject& subject, Family& family) {
  std::vector<double> gains{0.99, 1.01, 0.9, 1.1, 2, 0.5, -1, 0};
  if (subject.gain && std::isfinite(*subject.gain)) gains.push_back(*subject.gain);
  for (const double gain : gains) {
    char text[64];
    std::snprintf(text, sizeof text, "out is multiplied by %.6g", gain);
    add(family, gain == 0 ? "UNINIT" : "GAIN", text, [gain](const RowMaterial&, ExpectedRow& row) {
      for (Expected& x : row.out) transform(x, 0, gain);
    });
  }
}

/// Columns or rows behind the last full tile, zeros or whatever was there.
void add_tails(const Subject& subject, Family& family) {
  const Problem& p = subject.problem();
  for (const std::int64_t size : {16, 8, 32, 64, 4, 2, 128}) {
    for (const bool zero : {true, false}) {
      const Expected what = zero ? Expected::value(0) : Expected::of_kind(Kind::anything);
      const std::string are = zero ? " are zero" : " were never written";
      const std::int64_t width = p.value_dim / size * size, rows = p.queries / size * size;
      if (width < p.value_dim && width > 0) {
        add(
            family, "TAIL", "the columns of out from " + std::to_string(width) + " on" + are,
            [width, what](const RowMaterial&, ExpectedRow& row) {
              for (std::size_t c = index(width); c < row.out.size(); ++c) row.out[c] = what;
            },
            "UNINIT");
        family.mutants.back().open = !zero;
      }
      if (rows < p.queries && rows > 0) {
        add(
            family, "TAIL", "the rows from " + std::to_string(rows) + " on" + are,
            [rows, what](const RowMaterial& row, ExpectedRow& expected) {
              if (row.i < rows) return;
              expected.set_out(what);
              expected.lse = {{"", Expected::of_kind(Kind::anything)}};
            },
            "UNINIT");
        family.mutants.back().open = !zero;
      }
    }
  }
}

void add_empty_rows(Family& family) {
  const auto empty = [](Expected out) -> Expectation {
    return [out](const RowMaterial& row, ExpectedRow& expected) {
      if (!row.truth.empty()) return;
      expected.set_out(out);
      expected.lse.push_back({"lse left open", Expected::of_kind(Kind::anything)});
    };
  };
  const char* id = "EMPTY-ROW";
  add(family, id, "rows that see nothing are NaN", empty(Expected::of_kind(Kind::nan)));
  add(family, id, "rows that see nothing are zero", empty(Expected::value(0)));
  add(family, id, "rows that see nothing were never written",
      empty(Expected::of_kind(Kind::anything)), "UNINIT");
  family.mutants.back().open = true;
}

/// A reference below or above the scores: weights that underflow to nothing.
Expectation underflowing(std::function<double(const RowMaterial&)> reference, bool zero) {
  return [reference = std::move(reference), zero](const RowMaterial& row, ExpectedRow& expected) {
    if (row.truth.empty()) return;
    // exp(s - m) loses digits below the smallest normal number and is 0 below the smallest of all.
    const double limit = largest_exponent(row.contract);
    const double gap = reference(row) - row.truth.max_score;
    if (gap < limit - 10) return;
    const bool surely = gap > limit + 20;
    expected.set_out(!surely ? Expected::of_kind(Kind::anything)
                     : zero  ? Expected::value(0)
                             : Expected::of_kind(Kind::not_finite));
    expected.lse = {{"lse left open", Expected::of_kind(Kind::anything)}};
  };
}

void add_ranges(Family& family) {
  for (const bool zero : {false, true}) {
    const std::string so = zero ? ": 0" : ": 0/0";
    for (const double start : {1e4, 0.0, 5e4, 1e5, 3e4, 65504.0, 1e9, 1e3, 1e6, 100.0}) {
      char text[96];
      std::snprintf(text, sizeof text, "the running maximum starts at %g and all weights underflow",
                    start == 0 ? 0 : -start);
      add(family, "SENTINEL", text + so,
          underflowing([start](const RowMaterial&) { return -start; }, zero), "FIRST-TILE-EMPTY");
    }
    add(family, "STALE-MAX", "no maximum is taken off and all weights underflow" + so,
        underflowing([](const RowMaterial&) { return 0.0; }, zero), "MERGE-OVERFLOW");
  }
  add(
      family, "STALE-MAX", "no maximum is taken off and exponentials overflow",
      [](const RowMaterial& row, ExpectedRow& expected) {
        const double excess = row.truth.max_score - largest_exponent(row.contract);
        if (row.truth.empty() || excess < -10) return;
        expected.set_out(Expected::of_kind(excess > 1 ? Kind::not_finite : Kind::anything));
        expected.lse = {{"lse left open", Expected::of_kind(Kind::anything)}};
      },
      "MERGE-OVERFLOW");
  add(
      family, "PAD-LEAK", "numbers that are not finite leak out of masked values",
      [](const RowMaterial& row, ExpectedRow& expected) {
        for (std::size_t c = 0; c < expected.out.size(); ++c) {
          if (row.head.poisoned(row.n, static_cast<std::int64_t>(c), true)) {
            expected.out[c] = Expected::of_kind(Kind::not_finite);
          }
        }
      },
      "MASK-DROP");
}

/// Scores of 16 bits that overflow, before or after the scale.
Family overflowing_scores(bool scaled) {
  Family family;
  family.setting.contract = [](Contract& c) {
    if (c.score.store.empty()) c.score.store.push_back(0x1p-11);
  };
  constexpr double kOverflow = 65520;  // halfway between the largest fp16 and what would follow
  add(family, "LOWP-S",
      scaled ? "scores overflow fp16" : "scores overflow fp16 before they are scaled",
      [scaled](const RowMaterial& row, ExpectedRow& expected) {
        double most = 0;
        const double scale = scaled ? 1 : std::abs(row.change.scale_value());
        for (std::size_t j = 0; j < row.truth.score.size(); ++j) {
          if (row.truth.score[j] == -kInfinity) continue;
          const double score = row.truth.dot[j] / scale;
          if (std::abs(score) > std::abs(most)) most = score;
        }
        if (std::abs(most) < kOverflow * (1 - 0x1p-10)) return;
        const bool surely = most > kOverflow * (1 + 0x1p-10);
        // Whether inf - inf reaches out depends on how the kernel guards itself.
        expected.set_out(Expected::of_kind(Kind::anything));
        expected.lse = {{"", Expected::of_kind(surely ? Kind::not_finite : Kind::anything)}};
      });
  return family;
}

/// The maximum is taken over masked scores as well: every key is seen, and what the row really sees
/// is looked up again.
Family masked_maximum(const Subject& subject) {
  const Problem& p = subject.problem();
  Family family;
  family.setting.change = [](HeadChange& c) {
    c.visible = [](std::int64_t, std::int64_t) { return true; };
    if (!c.bias) return;
    c.bias = [before = c.bias](std::int64_t i, std::int64_t j) {
      const double bias = before(i, j);
      return std::isfinite(bias) ? bias : 0.0;  // -infinity is a mask as well
    };
  };
  for (const bool zero : {false, true}) {
    add(family, "MASK-AFTER-MAX",
        std::string("the maximum is taken over masked scores and all weights underflow") +
            (zero ? ": 0" : ": 0/0"),
        [zero, &p](const RowMaterial& row, ExpectedRow& expected) {
          double seen = -kInfinity, all = -kInfinity;
          for (std::size_t j = 0; j < row.truth.score.size(); ++j) {
            const std::int64_t place = row.truth.keys.first + static_cast<std::int64_t>(j);
            all = std::max(all, row.truth.score[j]);
            if (visible(p, row.change.b, row.change.h, row.i, place)) {
              seen = std::max(seen, row.truth.score[j]);
            }
          }
          const double gap = all - seen, limit = largest_exponent(row.contract);
          const bool surely = gap > limit + 20;
          expected.set_out(!surely ? Expected::of_kind(Kind::anything)
                           : zero  ? Expected::value(0)
                                   : Expected::of_kind(Kind::not_finite));
          expected.lse = {{"lse left open", Expected::of_kind(Kind::anything)}};
        });
  }
  return family;
}

/// Rows that see nothing get the mean of what they should not see.
void add_empty_means(const Subject& subject, Families& families) {
  const Problem& p = subject.problem();
  const auto nothing = [&p](std::int64_t b, std::int64_t h) {
    auto empty = std::make_shared<std::vector<char>>(index(p.queries));
    for (std::int64_t i = 0; i < p.queries; ++i) {
      const KeyRange range = visible_range(p, b, i);
      bool any = false;
      for (std::int64_t j = range.first; j < range.last && !any; ++j) any = visible(p, b, h, i, j);
      (*empty)[index(i)] = any ? 0 : 1;
    }
    return empty;
  };
  bool some = false;
  const auto first = nothing(0, 0);
  for (const char empty : *first) some = some || empty != 0;
  if (!some && !p.mask) return;
  for (const bool of_document : {false, true}) {
    if (of_document && !has_documents(p)) continue;
    Family family;
    family.setting.change = [nothing, of_document](HeadChange& c) {
      const Problem& q = *c.problem;
      const auto empty = nothing(c.b, c.h);
      c.add_zero_scores(
          [empty, of_document, &q, b = c.b](std::int64_t i, std::int64_t j) {
            const bool same =
                q.document_q[index(b * q.queries + i)] == q.document_k[index(b * q.keys + j)];
            return (*empty)[index(i)] != 0 && (same || !of_document);
          },
          0);
    };
    add(
        family, "EMPTY-ROW",
        of_document ? "rows that see nothing are the mean of their document's values"
                    : "rows that see nothing are the mean of V",
        [](const RowMaterial&, ExpectedRow& expected) {
          expected.lse.push_back({"lse left open", Expected::of_kind(Kind::anything)});
        },
        "SENTINEL");
    families.push_back(std::move(family));
  }
}

}  // namespace

void add_answer_classes(const Subject& subject, Families& families) {
  Family family;
  add_lse_forms(family);
  add_gains(subject, family);
  add_empty_rows(family);
  add_tails(subject, family);
  add_ranges(family);
  families.push_back(std::move(family));
  add_empty_means(subject, families);
  families.push_back(overflowing_scores(false));
  families.push_back(overflowing_scores(true));
  families.push_back(masked_maximum(subject));
}

}  // namespace ringproof::oracle
