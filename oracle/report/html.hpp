// Reports for people: one HTML file that needs nothing else, no script, no network. It is what a
// maintainer attaches to an issue, so every statement in it stands beside what it rests on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "oracle/report/case_outcome.hpp"

namespace ringproof::oracle {

/// The text of the page. `version` is that of the program.
std::string to_html(const std::vector<CaseOutcome>&, const std::string& version);

/// Parts of to_html(): one case, whose number makes its anchor, and the class of a verdict's
/// colour.
std::string html_of_case(const CaseOutcome&, std::size_t number, bool open);
std::string_view style_class(Verdict);

}  // namespace ringproof::oracle
