// What happened in a ring: one event for each block, or gradient of one, posted, computed with and
// waited for, in order (C8). Every tier writes the same JSON lines, so one set of checks reads them
// all. An event states what was done, from the data in hand (the origin and the bytes of the
// block), not what was planned.
#pragma once

#include <array>
#include <istream>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "reference/number.hpp"

namespace ringproof::reference {

enum class Action {
  post,           // the rank began to send `block` to `peer`
  compute,        // it folded `block` into its states
  wait,           // `block` from `peer` has arrived
  gradient,       // backward: it computed its part of the gradients with `block`
  post_gradient,  // backward: it began to send the gradient of `block` to `peer`
  wait_gradient,  // backward: the gradient of `block` has arrived from `peer`
};

struct TraceEvent {
  Index step = 0, rank = 0;
  Action action = Action::compute;
  Index block = 0;  // the rank that owns the keys and values concerned
  Index peer = -1;  // the other rank; -1: none
  Index bytes = 0;  // sent (post) or received (wait)
  Index pairs = 0;  // visible (query, key) pairs over all heads (compute)

  bool operator==(const TraceEvent&) const = default;
};

using Trace = std::vector<TraceEvent>;

inline constexpr std::array<const char*, 6> kActionNames{
    "post", "compute", "wait", "gradient", "post_gradient", "wait_gradient"};
constexpr const char* name_of(Action action) {
  return kActionNames[static_cast<std::size_t>(action)];
}

/// One JSON object a line.
inline void write_trace(std::ostream& stream, const Trace& trace) {
  for (const TraceEvent& event : trace) {
    stream << "{\"step\":" << event.step << ",\"rank\":" << event.rank << ",\"action\":\""
           << name_of(event.action) << "\",\"block\":" << event.block << ",\"peer\":" << event.peer
           << ",\"bytes\":" << event.bytes << ",\"pairs\":" << event.pairs << "}\n";
  }
}

/// The text between `"key":` and the next comma or brace.
inline std::string trace_field(const std::string& line, const std::string& key) {
  const std::string quoted = "\"" + key + "\":";
  const std::size_t at = line.find(quoted);
  if (at == std::string::npos)
    throw std::invalid_argument("trace line without " + key + ": " + line);
  const std::size_t first = at + quoted.size();
  const std::size_t last = line.find_first_of(",}", first);
  if (last == std::string::npos) throw std::invalid_argument("trace line not closed: " + line);
  return line.substr(first, last - first);
}

/// Reads what write_trace wrote. Throws std::invalid_argument with the line that it cannot read.
inline Trace read_trace(std::istream& stream) {
  Trace trace;
  for (std::string line; std::getline(stream, line);) {
    if (line.empty()) continue;
    const auto number = [&](const char* key) {
      const std::string text = trace_field(line, key);
      std::size_t used = 0;
      const Index value = std::stoll(text, &used);
      if (used != text.size()) throw std::invalid_argument("not a number in trace line: " + line);
      return value;
    };
    std::string action = trace_field(line, "action");
    std::erase(action, '"');
    std::size_t known = 0;
    while (known < kActionNames.size() && action != kActionNames[known]) ++known;
    if (known == kActionNames.size()) {
      throw std::invalid_argument("unknown action in trace line: " + line);
    }
    const TraceEvent event{number("step"),  number("rank"), static_cast<Action>(known),
                           number("block"), number("peer"), number("bytes"),
                           number("pairs")};
    trace.push_back(event);
  }
  return trace;
}

}  // namespace ringproof::reference
