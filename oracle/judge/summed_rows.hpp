// Gradients that are sums over rows: dsinks over all queries of a head and all batches, dbias over
// the axes that broadcast. Rows add to them one by one; groups of rows are merged in order, so that
// a sum does not depend on the number of threads.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "oracle/case/problem.hpp"
#include "oracle/truth/backward.hpp"

namespace ringproof::oracle {

struct SummedElement {
  CertifiedSum value;
  double bound = 0;
  double magnitude = 0;  // of the addends and their bounds: no partial sum is larger
};

/// One row of a stored tensor of such elements.
struct SummedRow {
  std::vector<SummedElement> elements;  // [columns]
  std::string not_applicable;           // of the first row that is
  bool failed = false;                  // some row could not be certified
};

/// Rows of a stored tensor by number; those nothing was added to are absent, and zero.
class SummedRows {
 public:
  SummedRow& row(std::int64_t number, std::int64_t columns);
  /// Adds what comes from later rows.
  void merge(const SummedRows& later);
  /// nullptr: zero.
  const SummedRow* find(std::int64_t number) const;
  template <class Wire>
  friend void transfer(Wire&, SummedRows&);  // tally_wire.hpp

 private:
  std::map<std::int64_t, SummedRow> rows_;
};

/// [B or 1, H or 1, Nq or 1, Nk or 1]: the shape of a dbias, whose axes of size 1 are summed over.
using BiasShape = std::array<std::int64_t, 4>;
/// That of the problem's bias.
BiasShape bias_shape(const Problem&);
/// True if several rows or keys add to one element.
bool sums_over_rows(const Problem&, const BiasShape&);

/// What the rows of one KV head add to sums that are wanted.
struct RowSums {
  BiasShape bias_shape{};  // zeros: not wanted
  bool sinks_wanted = false;
  SummedRows bias, sinks;

  bool bias_wanted() const { return bias_shape[3] > 0; }
  /// `bias_bound` [keys of the row] may be null where bounds do not matter.
  void add(const RowTruth&, const RowGradients&, const double* bias_bound, double sink_bound);
  void refuse(const RowTruth&, const std::string& reason);
  void merge(const RowSums& later);

 private:
  SummedRow& bias_row(const RowTruth&);
};

}  // namespace ringproof::oracle
