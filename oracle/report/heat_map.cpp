// Drawing the field (heat_map.hpp).
#include "oracle/report/heat_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "oracle/report/markup.hpp"

namespace ringproof::oracle {

// Blue becomes darker towards the bound; beyond it another hue starts, which also those who see no
// red tell from blue by its lightness.
const std::vector<HeatLevel> kHeatLevels{
    {"n", "not judged", "#e3e6ea"},        {"a0", "below 0.2", "#eaf3fd"},
    {"a1", "0.2 to 0.4", "#c2ddf8"},       {"a2", "0.4 to 0.6", "#93c2f0"},
    {"a3", "0.6 to 0.8", "#5f9fe0"},       {"a4", "0.8 to 1", "#2f76c4"},
    {"r0", "refused, to 10", "#ffb38a"},   {"r1", "refused, to 100", "#f2703d"},
    {"r2", "refused, to 1000", "#c43d12"}, {"r3", "refused, beyond", "#7a1a06"}};

namespace {

constexpr std::int64_t kMostCells = 96;  // of a panel, in each direction
constexpr std::int64_t kMostPanels = 32;
constexpr std::size_t kAccepted = 1, kRefused = 6;  // where the levels of each start
constexpr double kAcceptedLevels = 5;

/// The largest ratio and whether something was refused, of the elements in one cell.
struct Cell {
  float ratio = -1;  // negative: nothing judged
  bool refused = false;

  void add(const FieldElement& element) {
    if (std::isnan(element.ratio)) return;
    ratio = std::max(ratio, element.ratio);
    refused = refused || element.refused;
  }
  std::size_t level() const {
    if (ratio < 0) return 0;
    if (!refused) {
      return kAccepted + static_cast<std::size_t>(
                             std::min(kAcceptedLevels - 1.0, kAcceptedLevels * double{ratio}));
    }
    const double decades = std::ceil(std::log10(std::max(1.0, double{ratio})));
    return kRefused + static_cast<std::size_t>(std::clamp(decades - 1, 0.0, 3.0));
  }
};

/// What one map shows: rows with columns, and an element beside each row.
struct Sheet {
  const std::vector<Row>& rows;
  std::int64_t columns = 0;
  const std::vector<FieldElement>& body;   // [rows, columns] or empty
  const std::vector<FieldElement>& strip;  // [rows] or empty
};

/// Cells of one head, the body and behind a gap of one cell the strip.
struct Grid {
  std::int64_t width = 0, height = 0;
  std::vector<Cell> cells;  // [height, width]
  std::vector<bool> drawn;  // [width]

  Grid(const Sheet& sheet, std::int64_t rows) {
    const std::int64_t columns = sheet.body.empty() ? 0 : std::min(sheet.columns, kMostCells);
    const std::int64_t gap = sheet.body.empty() || sheet.strip.empty() ? 0 : 1;
    height = std::min(rows, kMostCells);
    width = columns + gap + (sheet.strip.empty() ? 0 : 1);
    cells.resize(static_cast<std::size_t>(width * height));
    drawn.assign(static_cast<std::size_t>(width), true);
    if (gap > 0) drawn[static_cast<std::size_t>(columns)] = false;
  }
  Cell& at(std::int64_t y, std::int64_t x) {
    return cells[static_cast<std::size_t>(y * width + x)];
  }

  /// Row n of `count` of this head is row `row` of the sheet.
  void add(const Sheet& sheet, std::size_t row, std::int64_t n, std::int64_t count) {
    const std::int64_t y = n * height / count;
    const std::int64_t columns = std::min(sheet.columns, kMostCells);
    const std::size_t first = row * static_cast<std::size_t>(sheet.columns);
    for (std::int64_t c = 0; !sheet.body.empty() && c < sheet.columns; ++c) {
      at(y, c * columns / sheet.columns).add(sheet.body[first + static_cast<std::size_t>(c)]);
    }
    if (!sheet.strip.empty()) at(y, width - 1).add(sheet.strip[row]);
  }
};

/// Neighbours of one level in a row are one rectangle.
std::string paths_of(Grid& grid) {
  std::vector<std::string> path(kHeatLevels.size());
  for (std::int64_t y = 0; y < grid.height; ++y) {
    for (std::int64_t x = 0; x < grid.width;) {
      if (!grid.drawn[static_cast<std::size_t>(x)]) {
        ++x;
        continue;
      }
      const std::size_t level = grid.at(y, x).level();
      std::int64_t end = x + 1;
      while (end < grid.width && grid.drawn[static_cast<std::size_t>(end)] &&
             grid.at(y, end).level() == level) {
        ++end;
      }
      path[level] += fmt::format("M{} {}h{}v1h-{}z", x, y, end - x, end - x);
      x = end;
    }
  }
  std::string svg;
  for (std::size_t level = 0; level < path.size(); ++level) {
    if (path[level].empty()) continue;
    svg += fmt::format("<path class=\"{}\" d=\"{}\"/>", kHeatLevels[level].name, path[level]);
  }
  return svg;
}

HeatMap map_of(const Sheet& sheet) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::size_t>> rows_of;
  for (std::size_t n = 0; n < sheet.rows.size(); ++n) {
    rows_of[{sheet.rows[n].b, sheet.rows[n].h}].push_back(n);
  }
  HeatMap map;
  for (const auto& [head, rows] : rows_of) {
    if (static_cast<std::int64_t>(map.panels.size()) == kMostPanels) {
      map.cut = true;
      break;
    }
    const auto count = static_cast<std::int64_t>(rows.size());
    Grid grid(sheet, count);
    for (std::int64_t n = 0; n < count; ++n) {
      grid.add(sheet, rows[static_cast<std::size_t>(n)], n, count);
    }
    map.panels.push_back({.name = fmt::format("b {}, h {}", head.first, head.second),
                          .paths = paths_of(grid),
                          .width = grid.width,
                          .height = grid.height});
  }
  return map;
}

constexpr std::int64_t kCell = 4, kGap = 24, kTop = 56;  // of the file

/// The panels of one map side by side, below what is there.
struct Sheets {
  std::string body;
  std::int64_t width = 520, bottom = kTop - kGap;
  bool cut = false;

  void add(const HeatMap& map, const std::string& name) {
    std::int64_t left = kGap, height = 0;
    const std::int64_t top = bottom + kGap;
    for (const HeatPanel& panel : map.panels) {
      if (panel.width == 0) continue;
      body += fmt::format("<text x=\"{}\" y=\"{}\">{}{}</text>\n", left, top - 6, name, panel.name);
      body += fmt::format("<g transform=\"translate({} {}) scale({})\">{}</g>\n", left, top, kCell,
                          panel.paths);
      left += std::max<std::int64_t>(panel.width * kCell, 88) + kGap;
      height = std::max(height, panel.height * kCell);
    }
    if (height == 0) return;
    width = std::max(width, left);
    bottom = top + height;
    cut = cut || map.cut;
  }
};

}  // namespace

HeatMap heat_map(const ErrorField& field) {
  return map_of({field.rows, field.columns, field.out, field.lse});
}

HeatMap heat_map(const GradientField& field) {
  return map_of({field.rows, field.columns, field.elements, {}});
}

std::string heat_map_svg(const ErrorField& field, const std::vector<GradientField>& gradients,
                         const std::string& title) {
  Sheets sheets;
  std::string style;
  sheets.add(heat_map(field), "");
  for (const GradientField& one : gradients) {
    sheets.add(heat_map(one), std::string(name(one.kind)) + ": ");
  }
  for (const HeatLevel& level : kHeatLevels) {
    style += fmt::format(".{}{{fill:{}}}", level.name, level.light);
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" font-family=\"monospace\" font-size=\"11\">\n"
      "<style>{2}</style>\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n"
      "<text x=\"{3}\" y=\"16\">{4}</text>\n"
      "<text x=\"{3}\" y=\"32\">error over bound: pale 0, blue up to 1, orange and red refused, "
      "grey not judged; queries (of dk and dv keys) down, columns right, last strip "
      "lse{5}{6}</text>"
      "\n<g shape-rendering=\"crispEdges\">\n{7}</g></svg>\n",
      sheets.width, sheets.bottom + kGap, style, kGap, escaped(title),
      field.sampled ? "; sampled rows" : "", sheets.cut ? "; first heads only" : "", sheets.body);
}

}  // namespace ringproof::oracle
