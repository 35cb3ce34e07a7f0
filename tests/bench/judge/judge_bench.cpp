// How much judging costs beside the truth it needs, and how long rows of 131072 keys take.
//   judge_bench                        both tables
//   judge_bench ratio                  the first alone
//   judge_bench long [N [FAMILY]]      the second alone
//   judge_bench write FAMILY N CONTRACT FILE   a long case for `ringproof check --rows 256 FILE`
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "oracle/judge/check.hpp"
#include "oracle/judge/truth_tensors.hpp"
#include "oracle/report/report.hpp"
#include "tests/bench/judge/long_case.hpp"
#include "tests/unit/case/case_builder.hpp"

using namespace ringproof;
using oracle::DType;

namespace {

constexpr std::int64_t kSampledRows = 256;
constexpr int kRepeats = 3;

/// Processor seconds of all threads: a ratio of them does not depend on who else uses the machine.
double processor_seconds() {
  std::timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Best of a few runs.
template <class Work>
double seconds(int repeats, const Work& work) {
  double best = HUGE_VAL;
  for (int n = 0; n < repeats; ++n) {
    const double start = processor_seconds();
    work();
    best = std::min(best, processor_seconds() - start);
  }
  return best;
}

std::vector<std::byte> rounded(DType type, const std::vector<double>& values) {
  std::vector<std::byte> bytes(values.size() * oracle::size_of(type));
  for (std::size_t n = 0; n < values.size(); ++n) {
    oracle::encode(type, oracle::round_nearest(type, values[n]),
                   bytes.data() + n * oracle::size_of(type));
  }
  return bytes;
}

void ratio(const char* contract_name, DType type, std::int64_t heads, std::int64_t rows,
           const char* causal) {
  std::mt19937_64 generator(1);
  std::normal_distribution<double> normal;
  const auto draw = [&](std::int64_t) { return oracle::round_nearest(type, normal(generator)); };
  test::CaseBuilder builder;
  for (const char* name : {"q", "k", "v"}) {
    builder.set(name, test::make_tensor(type, {1, heads, rows, 64}, draw));
  }
  builder.spec = std::string(R"({"version": 1, "causal": ")") + causal + "\"}";
  const oracle::TruthTensors truth =
      oracle::truth_tensors(builder.assemble().problem, oracle::LseBase::e, 0, {});
  builder.set("out", {type, {1, heads, rows, 64}, rounded(type, truth.out.lo)});
  builder.set("lse", {DType::f32, {1, heads, rows}, rounded(DType::f32, truth.lse.lo)});
  const oracle::Case input = builder.assemble();
  const auto contract = oracle::read_contract(contract_name, input.problem.spec);
  oracle::Report report;
  const double truth_time =
      seconds(kRepeats, [&] { oracle::truth_tensors(input.problem, oracle::LseBase::e, 0, {}); });
  const double check_time = seconds(kRepeats, [&] { report = oracle::check(input, contract, {}); });
  std::printf("%-12s %-9s %2lld heads %5lld rows  truth %8.4f s  check %8.4f s  ratio %.2f  %s\n",
              contract_name, causal, static_cast<long long>(heads), static_cast<long long>(rows),
              truth_time, check_time, check_time / truth_time,
              std::string(oracle::word(report.verdict)).c_str());
}

void long_rows(const std::string& family, const std::string& contract_name, std::int64_t keys) {
  const bench::LongCase made = bench::long_case(family, keys, kSampledRows, 0);
  oracle::CheckOptions options;
  options.rows = kSampledRows;
  const auto contract = oracle::read_contract(contract_name, made.input.problem.spec);
  oracle::Report report;
  const auto start = std::chrono::steady_clock::now();
  const double processor =
      seconds(1, [&] { report = oracle::check(made.input, contract, options); });
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  std::printf("%lld keys, %lld rows: %.1f s, %.1f processor seconds\n%s\n",
              static_cast<long long>(keys), static_cast<long long>(kSampledRows), wall.count(),
              processor, oracle::to_text(report, "").c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "write" && argc == 6) {
    bench::write_long_case(bench::long_case(argv[2], std::atoll(argv[3]), kSampledRows, 0), argv[4],
                           argv[5]);
    return 0;
  }
  if (what.empty() || what == "ratio") {
    ratio("bf16-flash", DType::bf16, 8, 256, "none");
    ratio("fp32", DType::f32, 8, 256, "none");
    ratio("bf16-flash", DType::bf16, 4, 1024, "top_left");
    ratio("bf16-ring4", DType::bf16, 4, 1024, "none");
    ratio("fp32", DType::f32, 1, 4096, "none");
    ratio("bf16-flash", DType::bf16, 1, 4096, "none");
  }
  if (what.empty() || what == "long") {
    const std::int64_t keys = argc > 2 ? std::atoll(argv[2]) : 131072;
    const std::string blocked = "bf16-flash+block128+acc128";
    for (const std::string family : {"randn", "LE", "LD", "LC"}) {
      if (argc > 3 && family != argv[3]) continue;
      long_rows(family, family == "randn" ? "bf16-flash" : blocked, keys);
    }
  }
  return 0;
}
