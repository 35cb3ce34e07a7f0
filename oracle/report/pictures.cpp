// Drawings stretch with the page and their labels do not: bars are SVG without a fixed aspect,
// words are HTML beside them, so that they keep their size on a phone.
#include "oracle/report/pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "oracle/report/error_spread.hpp"
#include "oracle/report/heat_map.hpp"

namespace ringproof::oracle {

namespace {

constexpr int kBarHeight = 100;  // of the tallest bar, in the drawing's own units

/// Bars grow with the logarithm of their count: one refused element among a million is seen.
double bar_height(std::int64_t count, std::int64_t largest) {
  if (count == 0) return 0;
  return kBarHeight * (std::log2(1.0 + static_cast<double>(count)) /
                       std::log2(1.0 + static_cast<double>(largest)));
}

std::string bars(const ErrorSpread& spread) {
  const auto bound = static_cast<std::size_t>(-ErrorSpread::kLowest * ErrorSpread::kBinsOfADecade);
  std::string svg;
  for (std::size_t n = 0; n < spread.bins.size(); ++n) {
    const double height = bar_height(spread.bins[n], spread.largest);
    if (height == 0) continue;
    svg += fmt::format(
        "<rect class=\"{}\" x=\"{}\" y=\"{:.1f}\" width=\"0.86\" height=\"{:.1f}\"><title>{} "
        "elements from {:.2g} times the bound</title></rect>",
        n < bound ? "accepted" : "refused", static_cast<double>(n) + 0.07, kBarHeight - height,
        height, spread.bins[n], spread.start(n));
  }
  return svg + fmt::format("<line class=\"bound\" x1=\"{0}\" y1=\"0\" x2=\"{0}\" y2=\"{1}\"/>",
                           bound, kBarHeight);
}

/// Powers of ten under the bars.
std::string ticks(const ErrorSpread& spread) {
  const int decades = spread.highest - ErrorSpread::kLowest;
  const int step = decades > 6 ? 2 : 1;
  std::string html;
  for (int power = ErrorSpread::kLowest; power <= spread.highest; power += step) {
    const double left = 100.0 * (power - ErrorSpread::kLowest) / decades;
    const bool first = power == ErrorSpread::kLowest, last = power == spread.highest;
    html +=
        fmt::format("<span class=\"tick{}\" style=\"left:{:.2f}%\">{}</span>",
                    first  ? " first"
                    : last ? " last"
                           : "",
                    left, power == 0 ? std::string("1") : fmt::format("10<sup>{}</sup>", power));
  }
  return html;
}

std::string histogram_figure(std::string_view answer, std::span<const FieldElement> elements) {
  const ErrorSpread spread = error_spread(elements);
  if (spread.total == 0) return "";
  return fmt::format(
      "<figure class=\"histogram\"><figcaption><b>{0}</b> error over bound of {1} elements; the "
      "tallest bar is {2}, heights are logarithmic, the dashed line is the bound</figcaption>"
      "<svg viewBox=\"0 0 {3} {4}\" preserveAspectRatio=\"none\" role=\"img\" "
      "aria-label=\"Histogram "
      "of error over bound of {0}\">{5}</svg><div class=\"ticks\">{6}</div></figure>\n",
      answer, spread.total, spread.largest, spread.bins.size(), kBarHeight, bars(spread),
      ticks(spread));
}

/// Small maps get large cells.
std::int64_t cell_size(const HeatPanel& panel) {
  return std::clamp<std::int64_t>(288 / std::max(panel.width, panel.height), 2, 12);
}

std::string panels_of(const HeatMap& map) {
  std::string panels;
  for (const HeatPanel& panel : map.panels) {
    if (panel.width == 0) continue;
    panels += fmt::format(
        "<div class=\"panel\"><span>{0}</span><svg viewBox=\"0 0 {1} {2}\" width=\"{3}\" "
        "height=\"{4}\" role=\"img\" aria-label=\"Heat map of {0}\">{5}</svg></div>",
        panel.name, panel.width, panel.height, panel.width * cell_size(panel),
        panel.height * cell_size(panel), panel.paths);
  }
  return panels;
}

std::string heat_figure(const HeatMap& map, std::string_view title, const std::string& words) {
  const std::string panels = panels_of(map);
  if (panels.empty()) return "";
  return fmt::format(
      "<figure class=\"heat\"><figcaption><b>{}</b> error over bound: {}{}</figcaption>"
      "<div class=\"panels\">{}</div></figure>\n",
      title, words, map.cut ? fmt::format("; the first {} heads", map.panels.size()) : "", panels);
}

/// Once for all maps.
std::string legend() {
  std::string levels;
  for (const HeatLevel& level : kHeatLevels) {
    levels += fmt::format("<li><i class=\"{}\"></i>{}</li>", level.name, level.words);
  }
  return fmt::format("<ul class=\"legend\">{}</ul>\n", levels);
}

std::string gradient_figures(const GradientField& field) {
  const std::string_view kind = name(field.kind);
  return histogram_figure(kind, field.elements) +
         heat_figure(heat_map(field), fmt::format("where, {}", kind),
                     fmt::format("{} down, columns right",
                                 field.kind == AnswerKind::dq ? "queries" : "keys"));
}

}  // namespace

std::string pictures(const ErrorField& field, const std::vector<GradientField>& gradients) {
  std::string html = histogram_figure("out", field.out) + histogram_figure("lse", field.lse);
  html += heat_figure(heat_map(field), "where",
                      fmt::format("queries down, columns of out right, lse as a strip at the right "
                                  "edge{}",
                                  field.sampled ? "; a sample of the rows" : ""));
  for (const GradientField& one : gradients) html += gradient_figures(one);
  return html.empty() ? html : html + legend();
}

}  // namespace ringproof::oracle
