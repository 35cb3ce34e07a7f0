// One query as a case of the judge: its exact answer, the bound under a contract, and the verdict
// on an answer. All in memory; files and the program `ringproof` do the same (docs/formats.md).
#pragma once

#include <string>
#include <vector>

#include "oracle/case/assemble.hpp"
#include "oracle/contract/bound.hpp"
#include "oracle/judge/check.hpp"

namespace ringproof::tutorials {

class OneQuery {
 public:
  /// Scores are stated, not computed: D = 1, the query is 1, and key j is its own score.
  OneQuery(std::vector<double> scores,   // [N]
           std::vector<double> values);  // [N]
  OneQuery(std::vector<double> q,        // [D]
           std::vector<double> k,        // [N, D]
           std::vector<double> v,        // [N, Dv]
           double scale);

  oracle::Contract contract(const std::string& name) const;
  /// Everything the bound needs: scores, probabilities, the exact answer within a radius.
  const oracle::RowTruth& truth() const { return truth_; }
  /// Of the components of the output, before it is rounded.
  oracle::RowBound bound(const oracle::Contract&) const;
  /// What `ringproof check` says of `out`, stored in the contract's output type.
  oracle::Report judge(const std::vector<double>& out,  // [Dv]
                       const std::string& contract_name) const;

  std::size_t keys() const { return k_.size() / q_.size(); }
  std::size_t columns() const { return v_.size() / keys(); }
  double value(std::size_t j, std::size_t c = 0) const { return v_[j * columns() + c]; }

 private:
  oracle::Source tensors() const;
  oracle::Case assembled(const oracle::Source&) const;

  std::vector<double> q_, k_, v_;
  oracle::Spec spec_;
  oracle::Problem problem_;
  oracle::RowTruth truth_;
};

}  // namespace ringproof::tutorials
