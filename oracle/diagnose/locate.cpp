// Statistics of the field (locate.hpp).
#include "oracle/diagnose/locate.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "oracle/diagnose/histogram.hpp"
#include "oracle/diagnose/table.hpp"
#include "oracle/judge/certified_rows.hpp"

namespace ringproof::oracle {

namespace {

/// How a row or an element is numbered for one finding.
struct Numbering {
  std::string name;  // "i mod 16"
  std::function<std::int64_t(std::size_t row, std::int64_t column)> of;
  bool by_column = false;
};

Histogram count(const ErrorField& field, const Numbering& numbering) {
  Histogram histogram;
  for (std::size_t n = 0; n < field.rows.size(); ++n) {
    std::int64_t judged = 0, refused = 0;
    for (std::int64_t c = 0; !field.out.empty() && c < field.columns; ++c) {
      const FieldElement& element = field.at(n, c);
      if (std::isnan(element.ratio)) continue;
      if (numbering.by_column) histogram.add(numbering.of(n, c), 1, element.refused);
      ++judged;
      refused += element.refused;
    }
    if (!field.lse.empty() && !numbering.by_column && !std::isnan(field.lse[n].ratio)) {
      ++judged;
      refused += field.lse[n].refused;
    }
    if (!numbering.by_column) histogram.add(numbering.of(n, 0), judged, refused);
  }
  return histogram;
}

std::vector<Numbering> numberings(const Case& input, const Contract& contract,
                                  const ErrorField& field) {
  const Problem& p = input.problem;
  std::vector<Numbering> all;
  const auto by_row = [&](std::string name, std::function<std::int64_t(std::size_t)> of) {
    all.push_back(
        {std::move(name), [of = std::move(of)](std::size_t n, std::int64_t) { return of(n); }});
  };
  const auto row = [&field](std::size_t n) -> const Row& { return field.rows[n]; };
  if (p.batches > 1) by_row("batch entry", [row](std::size_t n) { return row(n).b; });
  if (p.heads > 1) by_row("head", [row](std::size_t n) { return row(n).h; });
  by_row("query", [row](std::size_t n) { return row(n).i; });
  by_row("visible keys", [&field](std::size_t n) { return field.visible[n]; });
  if (has_documents(p)) {
    by_row("document", [&p, row](std::size_t n) {
      return std::int64_t{p.document_q[static_cast<std::size_t>(row(n).b * p.queries + row(n).i)]};
    });
  }
  const Subject subject{input, contract, p.spec.ranks.value_or(contract.partials.count), {}};
  for (const Sharing& sharing : sharings(subject)) {
    by_row(std::string("rank (") + sharing.name + ")",
           [row, sharing](std::size_t n) { return sharing.query_rank(row(n).b, row(n).i); });
  }
  all.push_back({"column", [](std::size_t, std::int64_t c) { return c; }, true});
  for (const std::int64_t size : kTileSizes) {
    const std::string of = " mod " + std::to_string(size);
    by_row("query" + of, [row, size](std::size_t n) { return row(n).i % size; });
    by_row("visible keys" + of, [&field, size](std::size_t n) { return field.visible[n] % size; });
    all.push_back({"column" + of, [size](std::size_t, std::int64_t c) { return c % size; }, true});
  }
  return all;
}

/// Least squares of answer on exact, each element weighed by what it may be off.
Regression regress(const ErrorField& field) {
  Regression result;
  double w = 0, x = 0, y = 0, xx = 0, xy = 0;
  const auto usable = [](const FieldElement& e) {
    return !std::isnan(e.ratio) && std::isfinite(e.answer) && std::isfinite(e.exact);
  };
  const auto allowed = [&](const FieldElement& e) {
    return e.bound + rounding_step(field.out_rule, std::abs(e.exact) + e.bound);
  };
  for (const FieldElement& e : field.out) {
    if (!usable(e) || allowed(e) <= 0) continue;
    const double weight = 1 / (allowed(e) * allowed(e));
    w += weight;
    x += weight * e.exact;
    y += weight * e.answer;
    xx += weight * e.exact * e.exact;
    xy += weight * e.exact * e.answer;
  }
  const double variance = xx - x * x / w;
  if (!(w > 0) || !(variance > 0)) return result;
  result.gain = (xy - x * y / w) / variance;
  result.offset = (y - result.gain * x) / w;
  const double gain_alone = xy / xx;
  for (const FieldElement& e : field.out) {
    if (!usable(e)) continue;
    result.refused += e.refused;
    const auto outside = [&](double gain, double offset) {
      const Certified moved{gain * e.exact + offset, 0, 0x1p-50 * std::abs(gain * e.exact)};
      return accept(e.answer, moved, std::abs(gain) * e.bound, field.out_rule) == Decision::fail;
    };
    result.refused_by_gain += outside(gain_alone, 0);
    result.refused_by_both += outside(result.gain, result.offset);
  }
  return result;
}

/// Whether the worst row's error points along one key's value: a key too much or too little.
std::string points_along(const Case& input, const ErrorField& field, const Row& row) {
  if (field.out.empty()) return "";
  std::size_t n = 0;
  while (field.rows[n].b != row.b || field.rows[n].h != row.h || field.rows[n].i != row.i) ++n;
  const Problem& p = input.problem;
  const std::int64_t head = p.kv_head(row.h);
  double best = 0, error = 0;
  std::int64_t best_key = -1;
  for (std::int64_t c = 0; c < field.columns; ++c) {
    const double e = field.at(n, c).answer - field.at(n, c).exact;
    error += e * e;
  }
  if (!(error > 0) || !std::isfinite(error) || field.columns < 4) return "";
  for (std::int64_t j = 0; j < p.keys; ++j) {
    double dot = 0, length = 0;
    for (std::int64_t c = 0; c < field.columns; ++c) {
      const double v = p.v.at(row.b, head, j, c) * p.v_scale.at(row.b, head, j, c);
      const double d = v - field.at(n, c).exact;
      dot += d * (field.at(n, c).answer - field.at(n, c).exact);
      length += d * d;
    }
    const double cosine = length > 0 ? dot / std::sqrt(length * error) : 0;
    if (std::isfinite(cosine) && std::abs(cosine) > std::abs(best)) {
      best = cosine;
      best_key = j;
    }
  }
  if (std::abs(best) < 0.995) return "";
  return "its error points along the value of key " + std::to_string(best_key) +
         (best > 0 ? ", which weighs too much" : ", which weighs too little");
}

}  // namespace

Location locate(const Case& input, const Contract& contract, const ErrorField& field) {
  Location location;
  float largest = -1;
  for (std::size_t n = 0; n < field.rows.size(); ++n) {
    const std::int64_t refused = field.refused_in(n);
    location.refused += refused;
    location.rows_refused += refused > 0;
    location.rows_judged += field.judged(n);
    for (std::int64_t c = 0; !field.out.empty() && c < field.columns; ++c) {
      const FieldElement& element = field.at(n, c);
      if (std::isnan(element.ratio)) continue;
      ++location.judged;
      if (!element.refused || element.ratio <= largest) continue;
      largest = element.ratio;
      location.worst = field.rows[n];
    }
    if (!field.lse.empty()) location.judged += !std::isnan(field.lse[n].ratio);
  }
  for (const Numbering& numbering : numberings(input, contract, field)) {
    if (auto finding = narrow(numbering.name, count(field, numbering))) {
      location.findings.push_back(*finding);
    }
  }
  keep_narrowest(location.findings);
  if (!field.out.empty()) location.regression = regress(field);
  if (location.worst) location.along = points_along(input, field, *location.worst);
  return location;
}

}  // namespace ringproof::oracle
