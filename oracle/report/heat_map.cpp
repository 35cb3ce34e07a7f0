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

/// Cells of one head, out and behind a gap of one cell the LSE.
struct Grid {
  std::int64_t width = 0, height = 0;
  std::vector<Cell> cells;  // [height, width]
  std::vector<bool> drawn;  // [width]

  Grid(const ErrorField& field, std::int64_t rows) {
    const std::int64_t columns = field.out.empty() ? 0 : std::min(field.columns, kMostCells);
    const std::int64_t gap = field.out.empty() || field.lse.empty() ? 0 : 1;
    height = std::min(rows, kMostCells);
    width = columns + gap + (field.lse.empty() ? 0 : 1);
    cells.resize(static_cast<std::size_t>(width * height));
    drawn.assign(static_cast<std::size_t>(width), true);
    if (gap > 0) drawn[static_cast<std::size_t>(columns)] = false;
  }
  Cell& at(std::int64_t y, std::int64_t x) {
    return cells[static_cast<std::size_t>(y * width + x)];
  }

  /// Row n of `count` of this head is row `row` of the field.
  void add(const ErrorField& field, std::size_t row, std::int64_t n, std::int64_t count) {
    const std::int64_t y = n * height / count;
    const std::int64_t columns = std::min(field.columns, kMostCells);
    for (std::int64_t c = 0; !field.out.empty() && c < field.columns; ++c) {
      at(y, c * columns / field.columns).add(field.at(row, c));
    }
    if (!field.lse.empty()) at(y, width - 1).add(field.lse[row]);
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

}  // namespace

HeatMap heat_map(const ErrorField& field) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::size_t>> rows_of;
  for (std::size_t n = 0; n < field.rows.size(); ++n) {
    rows_of[{field.rows[n].b, field.rows[n].h}].push_back(n);
  }
  HeatMap map;
  for (const auto& [head, rows] : rows_of) {
    if (static_cast<std::int64_t>(map.panels.size()) == kMostPanels) {
      map.cut = true;
      break;
    }
    const auto count = static_cast<std::int64_t>(rows.size());
    Grid grid(field, count);
    for (std::int64_t n = 0; n < count; ++n) {
      grid.add(field, rows[static_cast<std::size_t>(n)], n, count);
    }
    map.panels.push_back({.name = fmt::format("b {}, h {}", head.first, head.second),
                          .paths = paths_of(grid),
                          .width = grid.width,
                          .height = grid.height});
  }
  return map;
}

std::string heat_map_svg(const ErrorField& field, const std::string& title) {
  constexpr std::int64_t kCell = 4, kGap = 24, kTop = 56;
  const HeatMap map = heat_map(field);
  std::string body, style;
  std::int64_t left = kGap, height = 1;
  for (const HeatPanel& panel : map.panels) {
    body += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", left, kTop - 6, panel.name);
    body += fmt::format("<g transform=\"translate({} {}) scale({})\">{}</g>\n", left, kTop, kCell,
                        panel.paths);
    left += std::max<std::int64_t>(panel.width * kCell, 64) + kGap;
    height = std::max(height, panel.height);
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
      "grey not judged; queries down, columns right, last strip lse{5}{6}</text>\n"
      "<g shape-rendering=\"crispEdges\">\n{7}</g></svg>\n",
      std::max<std::int64_t>(520, left), kTop + height * kCell + kGap, style, kGap, escaped(title),
      field.sampled ? "; sampled rows" : "", map.cut ? "; first heads only" : "", body);
}

}  // namespace ringproof::oracle
