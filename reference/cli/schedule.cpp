// Text and JSON of a schedule (schedule.hpp); the drawing is schedule_svg.cpp.
#include "reference/cli/schedule.hpp"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

namespace ringproof::reference {
namespace {

/// The block a rank holds at a step.
Index block_of(const Schedule& schedule, Index step, Index rank) {
  return block_at(step, rank, schedule.sharding.ranks, schedule.direction);
}

/// Bytes a rank sends after a step: the block it holds, if the block travels on.
Index bytes_sent(const Schedule& schedule, Index step, Index rank) {
  if (!transfers_after(step, schedule.sharding.ranks)) return 0;
  return row_count(schedule.sharding, block_of(schedule, step, rank)) * schedule.row_bytes;
}

/// The rows of a rank as ranges, "0-7 56-63", or "3 11 19 ..." where they do not adjoin.
std::string rows_text(const Sharding& sharding, Index rank) {
  const std::vector<Index> rows = global_rows(sharding, rank);
  std::string text;
  int parts = 0;
  for (std::size_t first = 0; first < rows.size() && parts < 4; ++parts) {
    std::size_t last = first;
    while (last + 1 < rows.size() && rows[last + 1] == rows[last] + 1) ++last;
    if (!text.empty()) text += ' ';
    text += last == first ? fmt::format("{}", rows[first])
                          : fmt::format("{}-{}", rows[first], rows[last]);
    first = last + 1;
    if (parts == 3 && first < rows.size()) text += " ...";
  }
  return rows.empty() ? "none" : text;
}

/// Reads a non-negative number that is all of `text`.
bool parse_number(std::string_view text, Index& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() && number >= 0;
}

}  // namespace

Schedule make_schedule(const Sharding& sharding, Direction direction, const PositionMask& mask,
                       Index row_bytes) {
  return {sharding, direction, mask, row_bytes, workload(sharding, mask, direction)};
}

std::string schedule_text(const Schedule& schedule) {
  const auto& [sharding, direction, mask, row_bytes, work] = schedule;
  const Index P = sharding.ranks;
  std::string text = fmt::format("{} tokens on {} ranks, {}, {}, order {}\n\n", sharding.rows, P,
                                 word_of(sharding.layout), word_of(mask), word_of(direction));
  for (Index rank = 0; rank < P; ++rank) {
    text += fmt::format("rank {} owns rows {}\n", rank, rows_text(sharding, rank));
  }
  const std::size_t width =
      std::max<std::size_t>(9, fmt::format(" {}:{}", P - 1, work.duration()).size());
  text += "\nblock:pairs held by each rank\nstep";
  for (Index rank = 0; rank < P; ++rank) {
    text += fmt::format("{:>{}}", fmt::format("rank {}", rank), width);
  }
  text += fmt::format("{:>{}}\n", "busiest", width);
  for (Index step = 0; step < P; ++step) {
    text += fmt::format("{:>4}", step);
    for (Index rank = 0; rank < P; ++rank) {
      const Index block = block_of(schedule, step, rank);
      text += fmt::format("{:>{}}", fmt::format("{}:{}", block, work.at(step, rank)), width);
    }
    text += fmt::format("{:>{}}\n", work.busiest(step), width);
  }
  text += " sum";
  for (Index rank = 0; rank < P; ++rank) {
    text += fmt::format("{:>{}}", work.of_rank(rank), width);
  }
  text += fmt::format("{:>{}}\n\n", work.duration(), width);

  Index least = 0, most = 0;
  for (Index rank = 0; rank < P; ++rank) {
    Index sent = 0;
    for (Index step = 0; step < P; ++step) sent += bytes_sent(schedule, step, rank);
    least = rank == 0 ? sent : std::min(least, sent);
    most = std::max(most, sent);
  }
  text +=
      fmt::format("transfers: each rank sends {} blocks, {} bytes\n", P - 1,
                  least == most ? fmt::format("{}", most) : fmt::format("{} to {}", least, most));
  text += fmt::format("balance: busiest rank / mean = {:.4f}; ranks idle {:.1f} % of the time\n",
                      work.imbalance(), 100 * work.idle_fraction());
  return text;
}

std::string schedule_json(const Schedule& schedule) {
  const auto& [sharding, direction, mask, row_bytes, work] = schedule;
  const Index P = sharding.ranks;
  nlohmann::ordered_json root{{"tokens", sharding.rows},
                              {"ranks", P},
                              {"layout", word_of(sharding.layout)},
                              {"order", word_of(direction)},
                              {"mask", word_of(mask)}};
  root["rows"] = nlohmann::ordered_json::array();
  for (Index rank = 0; rank < P; ++rank) root["rows"].push_back(global_rows(sharding, rank));
  root["steps"] = nlohmann::ordered_json::array();
  for (Index step = 0; step < P; ++step) {
    nlohmann::ordered_json entry{{"step", step}};
    for (Index rank = 0; rank < P; ++rank) {
      entry["block"].push_back(block_of(schedule, step, rank));
      entry["pairs"].push_back(work.at(step, rank));
      entry["bytes_sent"].push_back(bytes_sent(schedule, step, rank));
    }
    root["steps"].push_back(entry);
  }
  root["busiest_over_mean"] = work.imbalance();
  root["idle_fraction"] = work.idle_fraction();
  return root.dump() + "\n";
}

bool parse_mask(const std::string& text, PositionMask& mask) {
  mask = {};
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t plus = rest.find('+');
    const std::string_view part = rest.substr(0, plus);
    rest = plus == std::string_view::npos ? "" : rest.substr(plus + 1);
    if (plus != std::string_view::npos && rest.empty()) return false;
    if (part == "causal") {
      mask.causal = true;
    } else if (part.starts_with("window:")) {
      const std::string_view limits = part.substr(7);
      const std::size_t comma = limits.find(',');
      if (!parse_number(limits.substr(0, comma), mask.window_left)) return false;
      if (comma != std::string_view::npos &&
          !parse_number(limits.substr(comma + 1), mask.window_right)) {
        return false;
      }
    } else if (part != "full" || part.size() != text.size()) {
      return false;
    }
  }
  return !text.empty();
}

std::string word_of(Layout layout) {
  return layout == Layout::contiguous ? "contiguous"
         : layout == Layout::zigzag   ? "zigzag"
                                      : "striped";
}

std::string word_of(Direction direction) { return direction == Direction::down ? "down" : "up"; }

std::string word_of(const PositionMask& mask) {
  std::string text = mask.causal ? "causal" : "";
  if (mask.window_left >= 0) {
    text += fmt::format("{}window:{}", text.empty() ? "" : "+", mask.window_left);
    if (mask.window_right >= 0) text += fmt::format(",{}", mask.window_right);
  }
  return text.empty() ? "full" : text;
}

}  // namespace ringproof::reference
