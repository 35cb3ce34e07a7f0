// The drawings of one case on the page: how its errors are spread, and where they are.
#pragma once

#include <string>

#include "oracle/diagnose/error_field.hpp"

namespace ringproof::oracle {

/// HTML with inline SVG, coloured by the classes of html_style.css; empty if nothing of out or lse
/// was judged.
std::string pictures(const ErrorField&);

}  // namespace ringproof::oracle
