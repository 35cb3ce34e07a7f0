// The drawings of one case on the page: how its errors are spread, and where they are.
#pragma once

#include <string>
#include <vector>

#include "oracle/diagnose/gradient_field.hpp"

namespace ringproof::oracle {

/// HTML with inline SVG, coloured by the classes of html_style.css; empty if nothing was judged.
std::string pictures(const ErrorField&, const std::vector<GradientField>&);

}  // namespace ringproof::oracle
