// Every judged element of dq, dk and dv with its error over bound, as error_field.hpp has those of
// out and lse. Not here: dbias and dsinks, sums over whole heads.
#pragma once

#include <vector>

#include "oracle/diagnose/error_field.hpp"

namespace ringproof::oracle {

struct GradientField {
  AnswerKind kind = AnswerKind::dq;
  std::vector<Row> rows{};  // queries; of dk and dv keys, h: the KV head
  std::int64_t columns = 0;
  std::vector<FieldElement> elements{};  // [rows, columns]
};

/// One for each of dq, dk, dv that the report judged; none where a case has more pairs than are
/// kept (known_truth.hpp), or its contract judges gradients from intermediate tensors.
std::vector<GradientField> gradient_fields(const Case&, const Contract&, const CheckOptions&,
                                           const Report&);

}  // namespace ringproof::oracle
