// The truth of the judged rows, evaluated once and kept: of the contract it depends on the mode of
// the backward pass alone, so a fit judges many contracts against it and pays for their bounds. Not
// here: escalation to more digits. What the kept intervals leave unsure counts as not refused;
// check() has the last word on every contract that is reported.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "oracle/contract/backward_bound.hpp"
#include "oracle/diagnose/error_field.hpp"
#include "oracle/judge/check.hpp"

namespace ringproof::oracle {

/// Where contracts are tried: rows of out, lse and dq, keys of dk and dv.
struct Places {
  std::vector<std::size_t> rows;  // numbers of KnownTruth
  std::vector<Row> keys;          // h: the KV head, i: the key
};

/// What a contract says about one answer at some places.
struct Opinion {
  TensorTally tally{};
  double log_bounds = 0;    // sum of the logarithms of its bounds, where they are > 0 and finite
  std::int64_t bounds = 0;  // how many
  bool refused() const { return tally.failed > 0 || tally.functional_failed > 0; }
  double mean_log_bound() const {
    return bounds > 0 ? log_bounds / static_cast<double>(bounds) : 0;
  }
};

/// One for every AnswerKind.
using Opinions = std::array<Opinion, 7>;

class KnownTruth {
 public:
  /// The rows of check() with these options, as far as they fit into memory. `contract`: one of the
  /// mode that the others will have.
  KnownTruth(const Case&, const Contract& contract, const CheckOptions&, const Report&);
  ~KnownTruth();

  /// False for sums over rows that are not all kept, and for dsinks and dbias.
  bool holds(AnswerKind) const;
  /// Every place that is judged.
  const Places& all() const { return all_; }
  std::int64_t rows_that_see(const Row& key) const;

  /// Called with what was found at one place: the number of a row, or of a key among the places.
  using Visit = std::function<void(AnswerKind, std::size_t, const TensorTally&)>;
  /// Called with every element of a gradient: kind, row or key, column.
  using ElementVisit =
      std::function<void(AnswerKind, const Row&, std::int64_t, const FieldElement&)>;
  /// Judges the given answers at these places; `stop`: nothing more once one of them is refused.
  Opinions judge(const Contract&, const std::vector<AnswerKind>&, const Places&, bool stop,
                 const Visit& = {}, const ElementVisit& = {}) const;

 private:
  struct Head;
  struct Request;
  bool judge_rows(const Request&, Opinions&) const;
  bool judge_queries(const Request&, Opinions&) const;
  void judge_keys(const Request&, Opinions&) const;
  void judge_keys(const Request&, const Head&, const std::vector<std::size_t>&, Opinions&) const;
  const Head& head_of(std::size_t row) const;

  const Case& input_;
  Upstream upstream_;
  std::vector<std::unique_ptr<Head>> heads_;  // by b, KV head; of all rows where gradients are kept
  std::vector<RowTruth> rows_;
  std::vector<RowGradients> gradients_;  // [rows] or empty
  Places all_;
  bool gradients_kept_ = false;
};

}  // namespace ringproof::oracle
