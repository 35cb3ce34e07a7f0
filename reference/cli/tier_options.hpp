// What the programs of all tiers have in common on their command lines, and in what they print.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "reference/cli/answer_file.hpp"

namespace ringproof::reference {

struct TierOptions {
  std::string case_path, out_path, trace_path;
  oracle::CaseOptions files;
  RingPlan plan;
  bool backward = false;

  Pass pass() const { return backward ? Pass::backward : Pass::forward; }
};

/// --layout and --order.
void add_layout_options(CLI::App& app, Layout& layout, Direction& direction);
/// CASE, -o, --trace, --spec, --problem, --backward, --layout and --order.
void add_tier_options(CLI::App& app, TierOptions& options);

/// Reads the case. Throws oracle::BadInput also if answer or trace would overwrite it, or if
/// gradients are wanted of a case without upstream gradients.
CaseInput read_tier_input(const TierOptions& options);

/// What went round a ring.
struct TrafficSum {
  Index transfers = 0, bytes = 0, pairs = 0;
};
TrafficSum traffic_of(const Trace& trace);

/// Two lines: what was computed, and what went round.
std::string summary(const CaseInput& input, const TierOptions& options, const std::string& contract,
                    const TrafficSum& traffic);

}  // namespace ringproof::reference
