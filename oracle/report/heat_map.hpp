// The error over bound of every judged element as a picture: one panel a head, queries downwards,
// columns of out to the right and the LSE as a strip beside them. Plain SVG, no script.
#pragma once

#include <string>

#include "oracle/diagnose/error_field.hpp"

namespace ringproof::oracle {

/// The text of an SVG file. Panels of many queries show the largest ratio of several rows in one
/// cell; cells above 1 are refused and drawn in another colour.
std::string heat_map_svg(const ErrorField&, const std::string& title);

}  // namespace ringproof::oracle
