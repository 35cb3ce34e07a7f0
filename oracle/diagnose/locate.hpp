// Where an answer is refused: by row, column, head, batch entry, document, rank, and by residues
// modulo the sizes that tiles usually have; and whether it is the truth up to a factor and an
// offset. For answers that no known mistake explains.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "oracle/diagnose/error_field.hpp"
#include "oracle/diagnose/histogram.hpp"

namespace ringproof::oracle {

/// answer ~ gain * exact + offset over the judged elements of out.
struct Regression {
  double gain = 1, offset = 0;
  std::int64_t refused = 0;          // by the truth itself
  std::int64_t refused_by_gain = 0;  // by the box of gain * exact
  std::int64_t refused_by_both = 0;  // by the box of gain * exact + offset
};

struct Location {
  std::int64_t refused = 0, judged = 0;
  std::int64_t rows_refused = 0, rows_judged = 0;
  std::vector<Finding> findings;  // the narrowest first; empty: everywhere alike
  std::optional<Regression> regression;
  std::optional<Row> worst;  // the row with the largest error
  std::string along;         // what its error points to, or empty
};

Location locate(const Case&, const Contract&, const ErrorField&);

}  // namespace ringproof::oracle
