// Command lines and summaries of the tiers (tier_options.hpp).
#include "reference/cli/tier_options.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "oracle/case/error.hpp"
#include "reference/cli/schedule.hpp"
#include "reference/cli/usage.hpp"

namespace ringproof::reference {
namespace {

bool same_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return std::filesystem::equivalent(a, b, ignored);
}

void require_own_files(const TierOptions& options, const std::string& problem) {
  for (const auto& [path, what] : {std::pair(options.out_path, "answer"),  //
                                   std::pair(options.trace_path, "trace")}) {
    for (const std::string& read :
         {options.case_path, problem, options.files.spec_file.value_or("")}) {
      if (path.empty() || read.empty() || !same_file(path, read)) continue;
      throw oracle::BadInput(path + ": is the input; the " + what + " needs a file of its own");
    }
  }
  std::error_code ignored;
  if (!options.trace_path.empty() &&
      std::filesystem::weakly_canonical(options.trace_path, ignored) ==
          std::filesystem::weakly_canonical(options.out_path, ignored)) {
    throw oracle::BadInput(options.trace_path +
                           ": is the answer's file; the trace needs one of its own");
  }
}

}  // namespace

void add_layout_options(CLI::App& app, Layout& layout, Direction& direction) {
  add_choice(app, "--layout", layout, "which rows a rank owns",
             {{"contiguous", Layout::contiguous},
              {"zigzag", Layout::zigzag},
              {"striped", Layout::striped}});
  add_choice(app, "--order", direction, "at step t rank r holds block r - t (down) or r + t (up)",
             {{"down", Direction::down}, {"up", Direction::up}});
}

void add_tier_options(CLI::App& app, TierOptions& options) {
  app.add_option("case", options.case_path, "case file with the problem (safetensors)");
  app.add_option("-o,--output", options.out_path, "file for the answer");
  app.add_option("--trace", options.trace_path, "file for the trace, JSON lines");
  app.add_option("--spec", options.files.spec_file, "file with the spec of the case");
  app.add_option("--problem", options.files.problem_file, "file with the problem of the case");
  app.add_flag("--backward", options.backward, "the gradients, too; they start from dout, dlse");
  add_layout_options(app, options.plan.layout, options.plan.direction);
}

CaseInput read_tier_input(const TierOptions& options) {
  CaseInput input = read_input(options.case_path, options.files);
  require_own_files(options, input.files.problem().path);
  if (options.backward && !input.views.dout && !input.views.dlse) {
    throw oracle::BadInput(options.case_path +
                           ": --backward needs dout or dlse, the gradients it starts from");
  }
  return input;
}

TrafficSum traffic_of(const Trace& trace) {
  TrafficSum sum;
  for (const TraceEvent& event : trace) {
    const bool sent = event.action == Action::post || event.action == Action::post_gradient;
    sum.transfers += sent;
    sum.bytes += sent ? event.bytes : 0;
    sum.pairs += event.pairs;
  }
  return sum;
}

std::string summary(const CaseInput& input, const TierOptions& options, const std::string& contract,
                    const TrafficSum& traffic) {
  const oracle::Problem& problem = input.views.problem;
  return fmt::format("{}: {} of {} queries x {} keys, {} heads, {}; {} visible pairs\n",
                     options.out_path, options.backward ? "out, lse and gradients" : "out and lse",
                     problem.queries, problem.keys, problem.batches * problem.heads, contract,
                     traffic.pairs) +
         fmt::format("ring: {} ranks, {}, order {}; {} transfers, {} bytes in all\n",
                     options.plan.ranks, word_of(options.plan.layout),
                     word_of(options.plan.direction), traffic.transfers, traffic.bytes);
}

}  // namespace ringproof::reference
