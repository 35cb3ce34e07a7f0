// The error over bound of every judged element as a picture: one panel a head, queries downwards,
// columns of out to the right and the LSE as a strip beside them; gradients in panels of their own,
// those of dk and dv with keys downwards. Plain SVG, no script.
#pragma once

#include <string>
#include <vector>

#include "oracle/diagnose/gradient_field.hpp"

namespace ringproof::oracle {

/// One head. Cells are squares of side 1; those of one level are one path whose class is the name
/// of the level (kHeatLevels), so that whoever shows the panel chooses the colours.
struct HeatPanel {
  std::string name;                    // "b 0, h 1"
  std::string paths;                   // SVG elements
  std::int64_t width = 0, height = 0;  // cells
};

/// A level of the map: how far the worst element of a cell is from exact.
struct HeatLevel {
  const char* name;   // class of the path
  const char* words;  // of the legend
  const char* light;  // colour on white
};
/// Not judged, five levels up to the bound, four beyond it.
extern const std::vector<HeatLevel> kHeatLevels;

struct HeatMap {
  std::vector<HeatPanel> panels;
  bool cut = false;  // there are more heads
};

/// Panels of many queries or columns show the worst of several elements in one cell.
HeatMap heat_map(const ErrorField&);
HeatMap heat_map(const GradientField&);

/// The text of an SVG file with all panels, a title and a legend.
std::string heat_map_svg(const ErrorField&, const std::vector<GradientField>&,
                         const std::string& title);

}  // namespace ringproof::oracle
