#include "oracle/report/case_outcome.hpp"

namespace ringproof::oracle {

Findings find(const Case& input, const Contract& contract, const CheckOptions& options,
              const Report& report, const ErrorField& field,
              const std::vector<GradientField>& gradients) {
  return {.diagnosis = diagnose(input, contract, options, report, &field),
          .location = locate(input, contract, field),
          .gradients = locate_gradients(input, contract, gradients)};
}

}  // namespace ringproof::oracle
