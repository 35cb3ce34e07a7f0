// Every judged element of out and lse with its error over bound: what localisation, regression and
// the heat map look at. Long cases are represented by a sample of their rows. Gradients:
// gradient_field.hpp.
#pragma once

#include <string>
#include <vector>

#include "oracle/judge/check.hpp"

namespace ringproof::oracle {

struct FieldElement {
  double answer = 0, exact = 0, bound = 0;
  float ratio = 0;  // error over bound; NaN: not judged
  bool refused = false;
};

FieldElement field_element(double answer, const Certified& exact, double bound, const OutputRule&);

struct ErrorField {
  std::vector<Row> rows;
  std::vector<std::int64_t> visible;  // [rows] keys that the row sees
  std::int64_t columns = 0;
  std::vector<FieldElement> out;  // [rows, columns]; empty: not judged
  std::vector<FieldElement> lse;  // [rows]; empty: not judged
  bool sampled = false;
  OutputRule out_rule;

  const FieldElement& at(std::size_t row, std::int64_t column) const {
    return out[row * static_cast<std::size_t>(columns) + static_cast<std::size_t>(column)];
  }
  /// Refused elements of one row, of out and lse together.
  std::int64_t refused_in(std::size_t row) const;
  bool judged(std::size_t row) const;
};

/// The most elements of out that a field holds.
constexpr std::int64_t kMostFieldElements = std::int64_t{1} << 22;

ErrorField error_field(const Case&, const Contract&, const CheckOptions&, const Report&);

}  // namespace ringproof::oracle
