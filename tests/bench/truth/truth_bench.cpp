// CPU seconds of the certified path for one head of random numbers, one thread: pack, rows, radius
// and everything the contract asks of a row. Prints one JSON object a line; truth_ratios.py puts
// them beside other people's attention in the same run.
//   truth_bench QUERIES KEYS DIM [fast|tight] [causal] [SIMD target]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "oracle/truth/truth.hpp"
#include "tests/unit/truth/families.hpp"

namespace {

using namespace ringproof;

double cpu_seconds() {
  std::timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Timing {
  double pack = 0, rows = 0, largest_radius = 0;
};

/// One head from stored numbers to answers with their radius.
Timing certify_head(const oracle::Problem& problem, oracle::Precision precision) {
  Timing timing;
  const double start = cpu_seconds();
  const oracle::HeadTruth head(problem, 0, 0, precision);
  timing.pack = cpu_seconds() - start;
  std::vector<oracle::RowTruth> rows(oracle::HeadTruth::kRows);
  std::vector<oracle::HeadTruth::RowId> ids(oracle::HeadTruth::kRows);
  for (std::int64_t i = 0; i < problem.queries; i += oracle::HeadTruth::kRows) {
    const auto count = static_cast<std::size_t>(
        std::min<std::int64_t>(oracle::HeadTruth::kRows, problem.queries - i));
    for (std::size_t r = 0; r < count; ++r) ids[r] = {0, i + static_cast<std::int64_t>(r)};
    head.rows(std::span(ids).first(count), rows.data());
    for (std::size_t r = 0; r < count; ++r) {
      timing.largest_radius = std::max(timing.largest_radius, rows[r].out[0].radius);
    }
  }
  timing.rows = cpu_seconds() - start - timing.pack;
  return timing;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "truth_bench QUERIES KEYS DIM [fast|tight] [causal] [SIMD target]\n");
    return 2;
  }
  test::Shape shape;
  shape.queries = std::atoll(argv[1]);
  shape.keys = std::atoll(argv[2]);
  shape.head_dim = shape.value_dim = std::atoll(argv[3]);
  auto precision = oracle::Precision::fast;
  for (int n = 4; n < argc; ++n) {
    const std::string word = argv[n];
    if (word == "tight") {
      precision = oracle::Precision::tight;
    } else if (word == "causal") {
      shape.causal = true;
    } else if (word != "fast") {
      oracle::force_simd_target(word);
    }
  }
  const test::OwnedProblem owned = test::make_problem(test::Family::randn, shape, 1);
  std::vector<Timing> runs;
  const double budget = cpu_seconds() + 1;
  do {
    runs.push_back(certify_head(owned.problem, precision));
  } while (runs.size() < 3 || (runs.size() < 101 && cpu_seconds() < budget));
  std::sort(runs.begin(), runs.end(),
            [](const Timing& a, const Timing& b) { return a.pack + a.rows < b.pack + b.rows; });
  const Timing& median = runs[runs.size() / 2];
  const double pairs = static_cast<double>(shape.queries) * static_cast<double>(shape.keys);
  std::printf(
      "{\"target\": \"%s\", \"precision\": \"%s\", \"queries\": %ld, \"keys\": %ld, \"dim\": %ld, "
      "\"pack\": %.6f, \"rows\": %.6f, \"seconds\": %.6f, \"best\": %.6f, \"ns_per_pair\": %.2f, "
      "\"radius\": %.3g}\n",
      oracle::simd_target().c_str(), precision == oracle::Precision::tight ? "tight" : "fast",
      static_cast<long>(shape.queries), static_cast<long>(shape.keys),
      static_cast<long>(shape.head_dim), median.pack, median.rows, median.pack + median.rows,
      runs.front().pack + runs.front().rows, (runs.front().pack + median.rows) / pairs * 1e9,
      median.largest_radius);
  return 0;
}
