// The ring's timetable as a picture: who holds which block at each step, how many pairs that is,
// how many bytes move, and how well the work is balanced. Made from the integer functions alone; no
// tensor.
#pragma once

#include <string>

#include "reference/balance.hpp"

namespace ringproof::reference {

struct Schedule {
  Sharding sharding;
  Direction direction = Direction::down;
  PositionMask mask;
  Index row_bytes = 0;  // one key and its value, over all heads
  Workload work;        // of one head
};

Schedule make_schedule(const Sharding& sharding, Direction direction, const PositionMask& mask,
                       Index row_bytes);

std::string schedule_text(const Schedule& schedule);
std::string schedule_json(const Schedule& schedule);
std::string schedule_svg(const Schedule& schedule);

/// "full", "causal", "window:L" or "window:L,R", joined by "+"; false if it is none of these.
bool parse_mask(const std::string& text, PositionMask& mask);

/// The words of the command line.
std::string word_of(Layout layout);
std::string word_of(Direction direction);
std::string word_of(const PositionMask& mask);

}  // namespace ringproof::reference
