// The figure of the chapter: numbers of bf16 around the exact answer, and the verdict on each.
#include <fmt/format.h>

#include "tutorials/09_how_wrong/worked_example.hpp"
#include "tutorials/support/svg.hpp"

namespace ringproof::tutorials {
namespace {

constexpr double kFirst = 2.578125, kLast = 2.671875;  // the part of the line that is drawn
constexpr double kLeft = 50, kWidth = 700, kAxis = 150;

double place(double x) { return kLeft + (x - kFirst) / (kLast - kFirst) * kWidth; }

void draw_candidates(Svg& svg) {
  double y = kAxis + 62;
  for (const auto& [name, value] : candidates()) {
    if (value < kFirst || value > kLast) continue;
    svg.line(place(value), kAxis, place(value), y - 10, "#999");
    svg.circle(place(value), y - 6, 4, deep_colour(7, 12));
    svg.text(place(value) + 10, y - 2, fmt::format("{}: {:.6f}", name, value), "start");
    y += 24;
  }
}

}  // namespace

void print_figure() {
  const auto bf16 = oracle::DType::bf16;
  const double e = example().bound(example().contract("bf16-flash")).out[0];
  Svg svg(2 * kLeft + kWidth, 300, "Verdicts on the numbers of bf16 around the exact answer");
  svg.text(kLeft, 26, "Every number that bf16 has here, and what the judge says of it", "start",
           15);
  svg.rectangle(place(exact() - e), 70, place(exact() + e) - place(exact() - e), kAxis - 70,
                colour(5, 12));
  svg.text(place(exact()), 62, fmt::format("o - e to o + e, e = {:.5f}", e));
  svg.line(place(exact()), 70, place(exact()), kAxis, "#222", 2);
  svg.text(place(exact()) - 6, 88, fmt::format("o = {:.6f}", exact()), "end");
  svg.line(kLeft - 20, kAxis, kLeft + kWidth + 20, kAxis, "#222", 1.5);
  for (double x = kFirst; x <= kLast; x = next_up(bf16, x)) {
    const auto verdict = example().judge({x}, "bf16-flash").verdict;
    const bool pass = verdict == oracle::Verdict::pass;
    svg.circle(place(x), kAxis, 7, pass ? deep_colour(4, 12) : deep_colour(0, 12));
    if (!pass) svg.circle(place(x), kAxis, 4, "white");
    svg.text(place(x), kAxis - 14, std::string(word(verdict)), "middle", 12);
    svg.text(place(x), kAxis + 24, fmt::format("{:.6f}", x), "middle", 12);
  }
  draw_candidates(svg);
  fmt::print("{}", svg.finish());
}

}  // namespace ringproof::tutorials
