#include "oracle/report/case_outcome.hpp"

namespace ringproof::oracle {

Findings find(const Case& input, const Contract& contract, const CheckOptions& options,
              const Report& report, const ErrorField& field) {
  Findings findings{.diagnosis = diagnose(input, contract, options, report)};
  // Roundings that would explain it do not say why they occur in one place only.
  if (findings.diagnosis.functions == 0) findings.location = locate(input, contract, field);
  return findings;
}

}  // namespace ringproof::oracle
