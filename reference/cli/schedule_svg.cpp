// A schedule as a drawing: one column a rank, one row a step. A cell's colour is the block held,
// the bar in it the work done, as a share of the busiest cell. What is white in a row is waiting.
#include <fmt/format.h>

#include "reference/cli/schedule.hpp"

namespace ringproof::reference {
namespace {

constexpr Index kCellWidth = 64, kCellHeight = 34, kLeft = 64, kTop = 66;

/// Hues around the circle, one a block.
std::string colour(Index block, Index ranks, int lightness) {
  return fmt::format("hsl({},55%,{}%)", block * 360 / ranks, lightness);
}

std::string cell(const Schedule& schedule, Index step, Index rank, Index most) {
  const Index P = schedule.sharding.ranks;
  const Index block = block_at(step, rank, P, schedule.direction);
  const Index pairs = schedule.work.at(step, rank);
  const Index x = kLeft + rank * kCellWidth, y = kTop + step * kCellHeight;
  const Index bar = most == 0 ? 0 : pairs * (kCellWidth - 12) / most;
  std::string text = fmt::format(
      "<g><title>step {}, rank {}: block {}, {} pairs</title>"
      "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>",
      step, rank, block, pairs, x + 2, y + 2, kCellWidth - 4, kCellHeight - 4,
      colour(block, P, 92));
  text += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"6\" fill=\"{}\"/>", x + 6,
                      y + kCellHeight - 11, bar, colour(block, P, 45));
  text += fmt::format("<text x=\"{}\" y=\"{}\">{}</text></g>\n", x + kCellWidth / 2, y + 17, block);
  return text;
}

}  // namespace

std::string schedule_svg(const Schedule& schedule) {
  const auto& [sharding, direction, mask, row_bytes, work] = schedule;
  const Index P = sharding.ranks;
  const Index width = std::max<Index>(kLeft + P * kCellWidth + 12, 480);
  const Index height = kTop + P * kCellHeight + 36;
  Index most = 0;
  for (const Index pairs : work.pairs) most = std::max(most, pairs);

  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" width=\"{}\" "
      "height=\"{}\" role=\"img\" font-family=\"sans-serif\" font-size=\"13\" "
      "text-anchor=\"middle\">\n<title>Which block each rank holds at each step</title>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      width, height, width, height);
  text += fmt::format(
      "<text x=\"12\" y=\"22\" text-anchor=\"start\">{} tokens, {} ranks, {}, {}, "
      "order {}</text>\n",
      sharding.rows, P, word_of(sharding.layout), word_of(mask), word_of(direction));
  for (Index rank = 0; rank < P; ++rank) {
    text += fmt::format("<text x=\"{}\" y=\"{}\">rank {}</text>\n",
                        kLeft + rank * kCellWidth + kCellWidth / 2, kTop - 8, rank);
  }
  for (Index step = 0; step < P; ++step) {
    text += fmt::format("<text x=\"{}\" y=\"{}\">step {}</text>\n", kLeft / 2,
                        kTop + step * kCellHeight + 21, step);
    for (Index rank = 0; rank < P; ++rank) text += cell(schedule, step, rank, most);
  }
  text += fmt::format(
      "<text x=\"12\" y=\"{}\" text-anchor=\"start\">busiest rank / mean {:.3f}, "
      "idle {:.1f} %; a bar is the work of the step</text>\n</svg>\n",
      height - 12, work.imbalance(), 100 * work.idle_fraction());
  return text;
}

}  // namespace ringproof::reference
