// Counting refused elements of gradients (locate_gradients.hpp).
#include "oracle/diagnose/locate_gradients.hpp"

#include <cmath>
#include <functional>
#include <set>
#include <tuple>

#include "oracle/diagnose/table.hpp"

namespace ringproof::oracle {

namespace {

struct Numbering {
  std::string name;
  std::function<std::int64_t(const Row&, std::int64_t column)> of;
};

std::vector<Numbering> numberings(const Case& input, const Contract& contract, AnswerKind kind) {
  const Problem& p = input.problem;
  const bool keys = kind != AnswerKind::dq;
  const std::string place = keys ? "key" : "query";
  std::vector<Numbering> all;
  const auto add = [&](std::string name, std::function<std::int64_t(const Row&, std::int64_t)> of) {
    all.push_back({std::move(name), std::move(of)});
  };
  if (p.batches > 1) add("batch entry", [](const Row& row, std::int64_t) { return row.b; });
  const std::int64_t heads = keys ? p.kv_heads : p.heads;
  if (heads > 1) {
    add(keys ? "KV head" : "head", [](const Row& row, std::int64_t) { return row.h; });
  }
  add(place, [](const Row& row, std::int64_t) { return row.i; });
  const auto& documents = keys ? p.document_k : p.document_q;
  const std::int64_t length = keys ? p.keys : p.queries;
  if (has_documents(p)) {
    add("document", [&documents, length](const Row& row, std::int64_t) {
      return std::int64_t{documents[static_cast<std::size_t>(row.b * length + row.i)]};
    });
  }
  const Subject subject{input, contract, p.spec.ranks.value_or(contract.partials.count), {}};
  for (const Sharing& sharing : sharings(subject)) {
    add(std::string("rank (") + sharing.name + ")", [sharing, keys](const Row& row, std::int64_t) {
      return keys ? sharing.key_rank(row.b, row.i) : sharing.query_rank(row.b, row.i);
    });
  }
  add("column", [](const Row&, std::int64_t c) { return c; });
  for (const std::int64_t size : kTileSizes) {
    const std::string of = " mod " + std::to_string(size);
    add(place + of, [size](const Row& row, std::int64_t) { return row.i % size; });
    add("column" + of, [size](const Row&, std::int64_t c) { return c % size; });
  }
  return all;
}

using Place = std::tuple<std::int64_t, std::int64_t, std::int64_t>;

struct Counted {
  GradientLocation location;
  std::vector<Numbering> numberings;
  std::vector<Histogram> histograms;
  std::set<Place> judged, refused;

  void add(const Row& row, std::int64_t column, bool bad) {
    ++location.judged;
    location.refused += bad;
    judged.insert({row.b, row.h, row.i});
    if (bad) refused.insert({row.b, row.h, row.i});
    for (std::size_t n = 0; n < numberings.size(); ++n) {
      histograms[n].add(numberings[n].of(row, column), 1, bad);
    }
  }

  /// The location with what it is confined to.
  GradientLocation narrowed() {
    for (std::size_t n = 0; n < numberings.size(); ++n) {
      if (auto finding = narrow(numberings[n].name, histograms[n])) {
        location.findings.push_back(*finding);
      }
    }
    keep_narrowest(location.findings);
    location.places_judged = static_cast<std::int64_t>(judged.size());
    location.places_refused = static_cast<std::int64_t>(refused.size());
    return location;
  }
};

}  // namespace

std::vector<GradientLocation> locate_gradients(const Case& input, const Contract& contract,
                                               const std::vector<GradientField>& fields) {
  std::vector<GradientLocation> locations;
  for (const GradientField& field : fields) {
    Counted one;
    one.location.kind = field.kind;
    one.numberings = numberings(input, contract, field.kind);
    one.histograms.resize(one.numberings.size());
    for (std::size_t n = 0; n < field.elements.size(); ++n) {
      if (std::isnan(field.elements[n].ratio)) continue;
      const auto columns = static_cast<std::size_t>(field.columns);
      one.add(field.rows[n / columns], static_cast<std::int64_t>(n % columns),
              field.elements[n].refused);
    }
    if (one.location.refused > 0) locations.push_back(one.narrowed());
  }
  return locations;
}

}  // namespace ringproof::oracle
