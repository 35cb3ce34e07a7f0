// Which mistakes a case provably refuses: formula (37) of docs/contract.md. A mistake is another
// mathematical function with its own exact answers and bounds (oracle/diagnose); where its wide box
// is disjoint from that of the truth, in the output format, every kernel that has the mistake and
// otherwise conforms to the contract is refused, and so is every kernel of a stricter contract.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "oracle/diagnose/mutant.hpp"
#include "oracle/generate/generated_case.hpp"
#include "oracle/judge/accept.hpp"

namespace ringproof::oracle {

/// The element whose boxes are disjoint.
struct Certificate {
  AnswerKind answer = AnswerKind::out;
  Row row;
  std::int64_t column = 0;
  Box truth, mutant;  // NaN ends: no number is accepted, or none is returned
  double margin = 0;  // distance of the centres over the sum of the half widths: above 1
};

/// Distance of the centres over the sum of the half widths: more than 1 iff the boxes are disjoint.
double box_margin(const Box&, const Box&);

/// One form of a class on one case.
struct FormOutcome {
  std::string id, words;
  std::optional<Certificate> kill;
  double margin = 0;     // largest margin seen, at most 1 without a kill
  bool differs = false;  // some exact answer certainly differs from the truth's
  std::string untold;    // why the theory says nothing about the form here, or empty
  std::string also;      // other classes of which it is a form: "A, B"
};

/// Which forms are worth the work: the outcome of the others is left out.
using WantsForm = std::function<bool(const std::string& id, const std::string& words)>;

/// Outcomes of all wanted forms under one contract, from some rows of every head: edges first. A
/// form is left as soon as it is killed.
std::vector<FormOutcome> certified_kills(const GeneratedCase&, const Contract&,
                                         const WantsForm& wants);

/// At most so many forms of each class, the likeliest first.
WantsForm first_forms(int per_class);

/// By class: forms looked at, forms killed, and the certificate of the killed form with the
/// smallest margin.
nlohmann::json to_json(const std::vector<FormOutcome>&);

}  // namespace ringproof::oracle
