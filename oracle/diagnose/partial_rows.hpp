// The parts of one row: its keys cut into tiles, splits or ranks, each with the answer that a
// kernel would hold for it alone, and what its contract allows around that answer. The material
// from which wrong merges and wrong rescalings are put together (combine.hpp).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "oracle/contract/bound.hpp"
#include "oracle/contract/row_budget.hpp"

namespace ringproof::oracle {

/// One part. A part without a key that the row sees is not present, and holds nothing.
struct Part {
  bool present = false;
  std::int64_t keys = 0;                // that the row sees
  double lse = 0, max = 0;              // L and M of the part alone
  double lse_error = 0, max_error = 0;  // what the contract and the arithmetic here allow
  std::vector<Certified> out;           // [Dv]
  std::vector<double> bound;            // [Dv]
};

class PartialRows {
 public:
  PartialRows(const Contract&, const Problem&);

  /// Cuts the row. `part_of[n]`: part of key n of row.keys, negative: none; the sink belongs to
  /// `sink_part`. Precondition: the row is certified, applicable and not empty. Returns why the
  /// parts cannot be bounded, or nothing.
  std::string cut(const RowTruth&, const double* values, std::int64_t stride,
                  const std::vector<std::int64_t>& part_of, std::int64_t parts,
                  std::int64_t sink_part);

  const std::vector<Part>& parts() const { return parts_; }

 private:
  bool select(const RowTruth&, const std::vector<std::int64_t>& part_of, std::int64_t part,
              KeyRange range, bool with_sink);
  void output(const RowTruth&, const double* values, std::int64_t stride, Part&);
  std::string bound(const double* values, std::int64_t stride, Part&);

  const Problem& problem_;
  Contract contract_;  // one part is one kernel without merges
  RowTruth row_;
  RowBound bound_;
  RowBudget budget_;
  std::vector<Part> parts_;
  std::vector<KeyRange> ranges_;  // [parts] of places in the row's key range
};

}  // namespace ringproof::oracle
