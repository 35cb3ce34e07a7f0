// Drawing the field (heat_map.hpp).
#include "oracle/report/heat_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace ringproof::oracle {

namespace {

constexpr std::int64_t kMostCells = 96;  // of a panel, in each direction
constexpr std::int64_t kMostPanels = 32;
constexpr int kCell = 4, kGap = 24, kTop = 56;

/// The largest ratio and whether something was refused, of the elements in one cell.
struct Cell {
  float ratio = -1;  // negative: nothing judged
  bool refused = false;
  void add(const FieldElement& element) {
    if (std::isnan(element.ratio)) return;
    ratio = std::max(ratio, element.ratio);
    refused = refused || element.refused;
  }
};

/// White where the answer is exact, blue towards the bound, red and darker the farther beyond it.
std::string colour(const Cell& cell) {
  if (cell.ratio < 0) return "#e8e8e8";
  if (!cell.refused) {
    const int fade = static_cast<int>(255 - 150 * std::min(1.0F, cell.ratio));
    return fmt::format("#{:02x}{:02x}ff", fade, fade);
  }
  const double decades = std::min(4.0, std::log10(std::max(1.0, double{cell.ratio})));
  return fmt::format("#{:02x}{:02x}{:02x}", static_cast<int>(255 - 30 * decades),
                     static_cast<int>(110 - 27 * decades), static_cast<int>(80 - 20 * decades));
}

struct Panel {
  std::string name;
  std::vector<std::size_t> rows;  // of the field
};

std::vector<Panel> panels_of(const ErrorField& field) {
  std::map<std::pair<std::int64_t, std::int64_t>, Panel> by_head;
  for (std::size_t n = 0; n < field.rows.size(); ++n) {
    Panel& panel = by_head[{field.rows[n].b, field.rows[n].h}];
    panel.name = fmt::format("b {}, h {}", field.rows[n].b, field.rows[n].h);
    panel.rows.push_back(n);
  }
  std::vector<Panel> panels;
  for (auto& entry : by_head) panels.push_back(std::move(entry.second));
  return panels;
}

std::string rectangle(std::int64_t x, std::int64_t y, const Cell& cell) {
  return fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n", x, y,
                     kCell, kCell, colour(cell));
}

std::string panel_svg(const ErrorField& field, const Panel& panel, std::int64_t left,
                      std::int64_t height, std::int64_t width) {
  const auto count = static_cast<std::int64_t>(panel.rows.size());
  std::vector<Cell> cells(static_cast<std::size_t>(height * (width + 1)));
  for (std::int64_t n = 0; n < count; ++n) {
    const std::size_t row = panel.rows[static_cast<std::size_t>(n)];
    Cell* line = cells.data() + n * height / std::max<std::int64_t>(count, height) * (width + 1);
    if (count <= height) line = cells.data() + n * (width + 1);
    for (std::int64_t c = 0; !field.out.empty() && c < field.columns; ++c) {
      const std::int64_t x = field.columns <= width ? c : c * width / field.columns;
      line[x].add(field.at(row, c));
    }
    if (!field.lse.empty()) line[width].add(field.lse[row]);
  }
  std::string svg = fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", left, kTop - 6, panel.name);
  const std::int64_t lines = std::min(count, height);
  for (std::int64_t y = 0; y < lines; ++y) {
    for (std::int64_t x = 0; x <= width; ++x) {
      if (x < width ? field.out.empty() : field.lse.empty()) continue;
      svg += rectangle(left + x * kCell + (x == width ? kCell : 0), kTop + y * kCell,
                       cells[static_cast<std::size_t>(y * (width + 1) + x)]);
    }
  }
  return svg;
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '&')
      result += "&amp;";
    else
      result += c;
  }
  return result;
}

}  // namespace

std::string heat_map_svg(const ErrorField& field, const std::string& title) {
  std::vector<Panel> panels = panels_of(field);
  const bool cut = static_cast<std::int64_t>(panels.size()) > kMostPanels;
  if (cut) panels.resize(static_cast<std::size_t>(kMostPanels));
  std::int64_t height = 1;
  for (const Panel& panel : panels) {
    height = std::max(height, static_cast<std::int64_t>(panel.rows.size()));
  }
  height = std::min(height, kMostCells);
  const std::int64_t width = field.out.empty() ? 0 : std::min(field.columns, kMostCells);
  const std::int64_t step = (width + 2) * kCell + kGap;
  std::string body;
  for (std::size_t n = 0; n < panels.size(); ++n) {
    body += panel_svg(field, panels[n], kGap + static_cast<std::int64_t>(n) * step, height, width);
  }
  const std::int64_t total =
      std::max<std::int64_t>(520, kGap + static_cast<std::int64_t>(panels.size()) * step);
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" font-family=\"monospace\" font-size=\"11\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n"
      "<text x=\"{2}\" y=\"16\">{3}</text>\n"
      "<text x=\"{2}\" y=\"32\">error over bound: white 0, blue up to 1, red refused, grey not "
      "judged; queries down, columns right, last strip lse{4}{5}</text>\n{6}</svg>\n",
      total, kTop + height * kCell + kGap, kGap, escaped(title),
      field.sampled ? "; sampled rows" : "", cut ? "; first heads only" : "", body);
}

}  // namespace ringproof::oracle
