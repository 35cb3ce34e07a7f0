// What serving relies on: a sequence may be computed step by step, in chunks, in any company, and
// with its keys split over any number of workers.
#include <algorithm>

#include "tests/suite/law.hpp"
#include "tests/suite/merge.hpp"

namespace ringproof::suite {
namespace {

std::vector<Index> range(Index first, Index last) {
  std::vector<Index> rows;
  for (Index n = first; n < last; ++n) rows.push_back(n);
  return rows;
}

/// Queries [first, last) with the keys up to `last`, the diagonal at the end: what a chunk of a
/// prefill, or one step of decoding, computes.
Draft chunk(const Draft& whole, Index first, Index last) {
  Draft draft = whole;
  draft.spec.causal = oracle::Causal::none;  // positions come from the alignment, not from rows
  draft = choose_queries(draft, range(first, last));
  draft = choose_keys(draft, range(0, last));
  draft.spec.causal = oracle::Causal::bottom_right;
  return draft;
}

void decode_steps(Trial& trial, const Description& d) {
  const Draft draft = trial.draw(d);
  trial.judged(draft);
  for (Index i = 0; i < draft.keys; i += std::max<Index>(1, draft.keys / 5)) {
    trial.judged(chunk(draft, i, i + 1));
  }
  trial.judged(chunk(draft, draft.keys - 1, draft.keys));
}

void chunks(Trial& trial, const Description& d) {
  const Draft draft = trial.draw(d);
  const Index cut = 1 + d.at % draft.keys;
  trial.judged(chunk(draft, 0, cut));
  if (cut < draft.keys) trial.judged(chunk(draft, cut, draft.keys));
}

/// One batch of several.
Draft one_batch(const Draft& from, Index b) {
  Draft draft = from;
  for (auto& [name, table] : draft.tables) {
    const bool by_batch = table.shape.size() == 4 || name == "key_lengths";
    if (!by_batch || table.shape[0] == 1) continue;
    const auto size = static_cast<std::ptrdiff_t>(table.values.size()) / table.shape[0];
    table.values = {table.values.begin() + b * size, table.values.begin() + (b + 1) * size};
    table.shape[0] = 1;
  }
  draft.batches = 1;
  return draft;
}

/// A batch alone, and beside another whose numbers change.
void batch_composition(Trial& trial, const Description& d) {
  const Draft draft = trial.draw(d);
  const Answer together = trial.judged(draft);
  const Answer alone = trial.judged(one_batch(draft, 0));
  Draft company = draft;
  for (const char* name : {"q", "k", "v"}) {
    Table& table = company.table(name);
    for (std::size_t n = table.values.size() / 2; n < table.values.size(); ++n) {
      table.values[n] = static_cast<double>(n % 9) - 4;
    }
  }
  const Answer changed = trial.judged(company);
  const auto first_half = [](Answer answer) {
    for (auto& [name, values] : answer) values.resize(values.size() / 2);
    return answer;
  };
  if (trial.candidate().promises.deterministic) {
    trial.same_bits(company, first_half(changed), first_half(together),
                    "another batch's numbers show");
  }
  if (trial.candidate().promises.batch_invariant) {
    trial.same_bits(draft, first_half(together), alone, "the company of a batch shows");
  }
}

/// One query row alone and among others.
void row_company(Trial& trial, const Description& d) {
  const Draft draft = trial.draw(d);
  const Answer together = trial.judged(draft);
  const Index row = d.at % draft.queries;
  const Draft single = choose_queries(draft, {row});
  const Answer alone = trial.judged(single);
  if (!trial.candidate().promises.batch_invariant) return;
  for (const auto& [name, width] : {std::pair<std::string, Index>{"out", draft.value_dim},
                                    std::pair<std::string, Index>{"lse", 1}}) {
    if (alone.count(name) == 0) continue;
    Answer expected = alone;
    for (Index head = 0; head < draft.batches * draft.heads; ++head) {
      for (Index c = 0; c < width; ++c) {
        expected[name][static_cast<std::size_t>(head * width + c)] =
            together.at(name)[static_cast<std::size_t>((head * draft.queries + row) * width + c)];
      }
    }
    trial.same_bits(single, alone, expected, "the company of a row shows", {name});
  }
}

/// Keys split over any number of workers, their answers merged by the LSE.
void split_count(Trial& trial, const Description& d) {
  const Draft draft = trial.draw(d);
  for (const Index workers : {2, 3, 5}) {
    std::vector<Answer> parts;
    for (Index w = 0; w < workers; ++w) {
      const Index first = w * draft.keys / workers, last = (w + 1) * draft.keys / workers;
      if (first < last) parts.push_back(trial.judged(choose_keys(draft, range(first, last))));
    }
    judge_merged(trial, draft, parts, merged(draft, parts));
  }
}

/// A key-value cache longer than what it holds, against one that just fits.
void padded_cache(Trial& trial, const Description& d) {
  const Draft draft = trial.draw(d);
  std::vector<Index> order = ascending(draft.keys);
  order.resize(static_cast<std::size_t>(draft.keys + 1 + d.at % 70), 0);
  Draft padded = choose_keys(draft, order);
  padded.put("key_lengths", oracle::DType::i32, {draft.batches},
             std::vector<double>(static_cast<std::size_t>(draft.batches),
                                 static_cast<double>(draft.keys)));
  trial.judged(draft);
  trial.judged(padded);
}

void square(Description& d) { plain(d), d.queries = d.keys = std::min(d.keys, 24); }

constexpr Law kLaws[] = {
    {"decode-steps",
     "decoding step by step gives what a prefill gives",
     {Feature::causal_top_left, Feature::causal_bottom_right, Feature::cross},
     [](Description& d) { square(d), d.causal = 1, d.ring = 0; },
     decode_steps},
    {"chunks",
     "a prefill may be cut into chunks anywhere",
     {Feature::causal_top_left, Feature::causal_bottom_right, Feature::cross},
     [](Description& d) { square(d), d.causal = 1, d.ring = 0; },
     chunks},
    {"batch-composition",
     "a batch does not see what is computed beside it",
     {Feature::batches},
     [](Description& d) { d.batches = 2, d.rows = 0, d.axes = d.axes == 2 ? 0 : d.axes; },
     batch_composition},
    {"row-company",
     "a query row does not see the rows computed beside it",
     {Feature::cross},
     [](Description& d) { plain(d), d.ranks = 1, d.ring = 0; },
     row_company},
    {"split-count",
     "keys may be split over any number of workers",
     {Feature::lse, Feature::cross},
     [](Description& d) { plain(d), d.ranks = 1, d.ring = 0; },
     split_count},
    {"padded-cache",
     "a longer cache with a length is the cache that fits",
     {Feature::key_lengths, Feature::cross},
     [](Description& d) { plain(d), d.queries = 1 + d.at % 3; },
     padded_cache},
};

}  // namespace

std::span<const Law> serving_laws() { return kLaws; }

}  // namespace ringproof::suite
