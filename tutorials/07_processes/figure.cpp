#include "tutorials/07_processes/figure.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tutorials/support/svg.hpp"

namespace ringproof::tutorials {
namespace {

constexpr double kLeft = 120, kScale = 4400e3, kBar = 24;  // pixels a second

/// Steps of one rank from the left: computing above, the transfer below.
void draw_rank(Svg& svg, double top, mpi::Index rows, bool overlap) {
  const mpi::Shape shape = shape_of(rows);
  const double compute = compute_seconds(kMachine, shape, rows * rows) * kScale;
  const double transfer = transfer_seconds(kMachine, shape) * kScale;
  svg.text(12, top + 16, fmt::format("b = {}", rows), "start");
  svg.text(12, top + 34, overlap ? "overlapped" : "one by one", "start", 12);
  double x = kLeft;
  for (mpi::Index t = 0; t < kRanks; ++t) {
    svg.rectangle(x, top, compute, kBar, colour(7, 12), "#222");
    svg.text(x + compute / 2, top + 17, fmt::format("{}", t), "middle", 12);
    if (t + 1 == kRanks) {
      x += compute;
      break;
    }
    const double begin = overlap ? x : x + compute;
    svg.rectangle(begin, top + kBar, transfer, 14, colour(1, 12), "#222");
    x = overlap ? x + std::max(compute, transfer) : begin + transfer;
  }
  svg.line(x, top - 4, x, top + kBar + 20, "#222", 2);
}

}  // namespace

void print_figure() {
  Svg svg(780, 310, "Steps of a rank with and without overlap, for small and large blocks");
  svg.text(12, 24, "One rank of four: computing (blue, by step), sending and receiving (orange)",
           "start", 15);
  double top = 46;
  for (const mpi::Index rows : {100, 300}) {
    for (const bool overlap : {false, true}) {
      draw_rank(svg, top, rows, overlap);
      top += 66;
    }
  }
  fmt::print("{}", svg.finish());
}

}  // namespace ringproof::tutorials
