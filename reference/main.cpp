// ringproof-reference: runs the scalar tier on a case file, or prints the ring's schedule.
//   ringproof-reference CASE -o OUT [--ranks P] [--layout L] [--order down|up]
//       [--backward] [--trace F]
//   ringproof-reference schedule --ranks P --layout L --mask M [--tokens N] [--format F]
// Exit status 2 for bad input or usage; then nothing has been written.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <new>

#include "oracle/case/error.hpp"
#include "oracle/case/mapped_file.hpp"
#include "reference/cli/schedule.hpp"
#include "reference/cli/tier_options.hpp"
#include "reference/cli/usage.hpp"
#include "reference/ring_backward.hpp"

namespace {

using namespace ringproof;
using namespace ringproof::reference;

/// All ranks take turns in this one process; more of them than this only costs time.
constexpr Index kMostRanks = 4096;

struct ScheduleOptions {
  Index ranks = 4, tokens = 0, row_bytes = 512;
  Layout layout = Layout::contiguous;
  Direction direction = Direction::down;
  std::string mask = "full", format = "text", out_path;
};

void add_ranks_option(CLI::App& app, Index& ranks) {
  app.add_option("--ranks", ranks, "ranks in the ring (P)")
      ->check(CLI::Range(Index{1}, kMostRanks));
}

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw oracle::BadInput(path + ": " + what);
}

/// Writes text to a file, or to standard output if no file is named.
void write_text(const std::string& path, const std::string& text) {
  if (path.empty()) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return;
  }
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) refuse(path, "cannot be written");
}

/// The trace is written first, under a name of its own, and gets its own name when the answer is
/// there.
template <class Real>
void write_results(const CaseInput& input, const TierOptions& options, const Answer<Real>& answer,
                   const Gradients<Real>* gradients, const Trace& trace) {
  if (options.trace_path.empty()) {
    write_answer(input, options.plan, answer, options.out_path, gradients);
    return;
  }
  const std::string part = options.trace_path + ".part";
  std::error_code ignored;
  try {
    std::ofstream file(part, std::ios::binary);
    write_trace(file, trace);
    file.close();
    if (!file) refuse(options.trace_path, "cannot be written");
    write_answer(input, options.plan, answer, options.out_path, gradients);
    std::filesystem::rename(part, options.trace_path);
  } catch (...) {
    std::filesystem::remove(part, ignored);
    throw;
  }
}

template <class Real>
void run_case(const CaseInput& input, const TierOptions& options) {
  const CaseProblem<Real> owned(input);
  const Problem<Real> problem = owned.problem();
  Trace trace;
  if (options.backward) {
    const auto [answer, gradients] =
        ring_attention_backward(problem, owned.upstream(), options.plan, trace);
    write_results(input, options, answer, &gradients, trace);
  } else {
    const Answer<Real> answer = ring_attention(problem, options.plan, trace);
    write_results<Real>(input, options, answer, nullptr, trace);
  }
  const std::string contract = contract_for(input, options.plan.ranks, options.pass());
  fmt::print("{}", summary(input, options, contract, traffic_of(trace)));
}

void run(const TierOptions& options) {
  const CaseInput input = read_tier_input(options);
  if (arithmetic_for(input, options.pass()) == Arithmetic::fp64) {
    run_case<double>(input, options);
  } else {
    run_case<float>(input, options);
  }
}

void print_schedule(const ScheduleOptions& options) {
  PositionMask mask;
  if (!parse_mask(options.mask, mask)) {
    refuse("--mask " + options.mask,
           "is none of full, causal, window:L, window:L,R, causal+window:L");
  }
  const Index tokens = options.tokens == 0 ? 8 * options.ranks : options.tokens;
  const Schedule schedule = make_schedule({options.layout, tokens, options.ranks},
                                          options.direction, mask, options.row_bytes);
  write_text(options.out_path, options.format == "json"  ? schedule_json(schedule)
                               : options.format == "svg" ? schedule_svg(schedule)
                                                         : schedule_text(schedule));
}

}  // namespace

int main(int argc, char** argv) try {
  oracle::guard_against_file_signals();
  CLI::App app{"Ring attention, all ranks in one process: the scalar tier of ringproof",
               "ringproof-reference"};
  TierOptions run_options;
  add_tier_options(app, run_options);
  add_ranks_option(app, run_options.plan.ranks);

  ScheduleOptions schedule;
  CLI::App& command = *app.add_subcommand("schedule", "who holds what at each step");
  add_ranks_option(command, schedule.ranks);
  add_layout_options(command, schedule.layout, schedule.direction);
  command.add_option("--mask", schedule.mask, "full, causal, window:L[,R], causal+window:L");
  command.add_option("--tokens", schedule.tokens, "tokens (N); default 8 a rank")
      ->check(CLI::Range(Index{1}, Index{1} << 24));
  command.add_option("--row-bytes", schedule.row_bytes, "bytes of one key and its value")
      ->check(CLI::Range(Index{1}, Index{1} << 24));
  command.add_option("--format", schedule.format, "text, json or svg")
      ->check(CLI::IsMember({"text", "json", "svg"}));
  command.add_option("-o,--output", schedule.out_path, "file instead of standard output");

  try {
    app.parse(argc, argv);
    if (!command && (run_options.case_path.empty() || run_options.out_path.empty())) {
      throw CLI::ValidationError("a case and -o OUT are needed, or the command schedule");
    }
  } catch (const CLI::ParseError& error) {
    return print(usage_of(app, error));
  }
  if (command) {
    print_schedule(schedule);
  } else {
    run(run_options);
  }
  return 0;
} catch (const oracle::BadInput& error) {
  fmt::print(stderr, "ringproof-reference: {}\n", error.what());
  return 2;
} catch (const std::filesystem::filesystem_error& error) {
  fmt::print(stderr, "ringproof-reference: {}\n", error.what());
  return 2;
} catch (const std::bad_alloc&) {
  fmt::print(stderr, "ringproof-reference: not enough memory\n");
  return 2;
}
