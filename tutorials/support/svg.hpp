// The few shapes the figures need, as SVG text. Coordinates are rounded to a tenth, so that a
// figure is the same text on every machine and the committed file can be compared with it.
//
//   Svg svg(480, 200, "Weights of four keys");
//   svg.rectangle(10, 20, 30, 40, colour(0, 4));
//   svg.text(25, 75, "key 1");
//   fmt::print("{}", svg.finish());
//
// The background is white whatever the page's is, and text is dark on light, never the reverse.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

namespace ringproof::tutorials {

/// Colour n of `count` around the circle: light enough to carry dark text, or deep for bars.
inline std::string colour(long n, long count) {
  return fmt::format("hsl({},60%,85%)", n * 360 / count);
}
inline std::string deep_colour(long n, long count) {
  return fmt::format("hsl({},60%,38%)", n * 360 / count);
}

class Svg {
 public:
  /// `title` is what a screen reader says, and what a pointer over the figure shows.
  Svg(double width, double height, const std::string& title) {
    text_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
        "width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\" font-family=\"sans-serif\" "
        "font-size=\"13\">\n<title>{2}</title>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        width, height, escaped(title));
  }

  void rectangle(double x, double y, double width, double height, const std::string& fill,
                 const std::string& stroke = "none") {
    text_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\" "
        "stroke=\"{}\"/>\n",
        x, y, width, height, fill, stroke);
  }

  void circle(double x, double y, double radius, const std::string& fill) {
    text_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\"/>\n", x, y,
                         radius, fill);
  }

  void line(double x1, double y1, double x2, double y2, const std::string& stroke = "#555",
            double width = 1) {
    text_ += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
        "stroke-width=\"{:.1f}\"/>\n",
        x1, y1, x2, y2, stroke, width);
  }

  /// A line with a head at its end.
  void arrow(double x1, double y1, double x2, double y2, const std::string& stroke = "#555") {
    line(x1, y1, x2, y2, stroke, 1.5);
    const double dx = x2 - x1, dy = y2 - y1;
    const double length = std::hypot(dx, dy);
    const double ux = dx / length * 7, uy = dy / length * 7;
    text_ += fmt::format(
        "<path d=\"M{:.1f} {:.1f} L{:.1f} {:.1f} L{:.1f} {:.1f} Z\" fill=\"{}\"/>\n", x2, y2,
        x2 - ux - uy / 2, y2 - uy + ux / 2, x2 - ux + uy / 2, y2 - uy - ux / 2, stroke);
  }

  struct Point {
    double x, y;
  };
  void polyline(const std::vector<Point>& points, const std::string& stroke) {
    text_ += "<polyline points=\"";
    for (const Point& p : points) text_ += fmt::format("{:.1f},{:.1f} ", p.x, p.y);
    text_ += fmt::format("\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n", stroke);
  }

  /// `anchor` is start, middle or end.
  void text(double x, double y, const std::string& words, const std::string& anchor = "middle",
            int size = 13) {
    text_ += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\" fill=\"#222\">{}"
        "</text>\n",
        x, y, anchor, size, escaped(words));
  }

  std::string finish() const { return text_ + "</svg>\n"; }

 private:
  static std::string escaped(const std::string& words) {
    std::string safe;
    for (const char c : words) {
      safe += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
    }
    return safe;
  }

  std::string text_;
};

}  // namespace ringproof::tutorials
