// What a run of `check` knows about one case when it writes its reports: the input of every form.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "oracle/diagnose/diagnose.hpp"
#include "oracle/diagnose/error_field.hpp"
#include "oracle/diagnose/locate.hpp"
#include "oracle/diagnose/locate_gradients.hpp"

namespace ringproof::oracle {

/// Which known mistakes explain a refused answer, and where it is refused.
struct Findings {
  Diagnosis diagnosis{};
  Location location{};                        // of out and lse; nothing refused: empty
  std::vector<GradientLocation> gradients{};  // those that are refused
};

/// One judged case: its report, or what was wrong with its files.
struct CaseOutcome {
  std::string name;
  Verdict verdict = Verdict::skipped;
  Report report{};                     // nothing, if there is an error
  std::string error{};                 // of bad input
  std::string command{};               // that repeats the judgement
  std::optional<Findings> findings{};  // of a refused answer, where a report was asked for
  std::string pictures{};              // inline drawings of the page (pictures.hpp), or empty
};

/// What explains the report of a case; the fields as error_field() and gradient_fields() give them
/// for the same options.
Findings find(const Case&, const Contract&, const CheckOptions&, const Report&, const ErrorField&,
              const std::vector<GradientField>&);

}  // namespace ringproof::oracle
