// CPU seconds of the certified path for one head of random numbers, one thread: pack, rows, radius
// and everything the contract asks of a row; forward, and with `backward` both passes and their
// ratio. Prints one JSON object a line; truth_ratios.py puts them beside other people's attention
// in the same run. Without arguments: a few sizes of everything.
//   truth_bench QUERIES KEYS DIM [fast|tight] [backward] [causal] [input type] [SIMD target]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "oracle/truth/backward.hpp"
#include "tests/unit/truth/families.hpp"

namespace {

using namespace ringproof;

double cpu_seconds() {
  std::timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Run {
  test::Shape shape;
  oracle::Precision precision = oracle::Precision::fast;
  bool backward = false;
};

struct Timing {
  double pack = 0, rows = 0, largest_radius = 0;
  double seconds() const { return pack + rows; }
};

/// Calls visit(ids) for all rows of one head, as many together as go.
template <class F>
void for_each_batch(std::int64_t queries, F&& visit) {
  std::vector<oracle::HeadTruth::RowId> ids;
  for (std::int64_t i = 0; i < queries; ++i) {
    ids.push_back({0, i});
    if (ids.size() < oracle::HeadTruth::kRows && i + 1 < queries) continue;
    visit(std::span<const oracle::HeadTruth::RowId>(ids));
    ids.clear();
  }
}

/// One head from stored numbers to answers with their radius.
Timing certify_forward(const oracle::Problem& problem, oracle::Precision precision) {
  Timing timing;
  const double start = cpu_seconds();
  const oracle::HeadTruth head(problem, 0, 0, precision);
  timing.pack = cpu_seconds() - start;
  std::vector<oracle::RowTruth> rows(oracle::HeadTruth::kRows);
  for_each_batch(problem.queries, [&](auto ids) {
    head.rows(ids, rows.data());
    for (std::size_t r = 0; r < ids.size(); ++r) {
      timing.largest_radius = std::max(timing.largest_radius, rows[r].out[0].radius);
    }
  });
  timing.rows = cpu_seconds() - start - timing.pack;
  return timing;
}

/// The same with the backward pass behind it, down to dk and dv.
Timing certify_backward(const oracle::Problem& problem, const oracle::Upstream& upstream,
                        oracle::Precision precision) {
  Timing timing;
  const double start = cpu_seconds();
  const oracle::HeadTruth forward(problem, 0, 0, precision);
  const oracle::HeadGradients head(problem, upstream, forward);
  oracle::GradientSums sums(problem);
  timing.pack = cpu_seconds() - start;
  std::vector<oracle::RowTruth> rows(oracle::HeadTruth::kRows);
  std::vector<oracle::RowGradients> gradients(oracle::HeadTruth::kRows);
  for_each_batch(problem.queries,
                 [&](auto ids) { head.rows(ids, rows.data(), gradients.data(), &sums); });
  for (std::int64_t j = 0; j < problem.keys; ++j) {
    for (std::int64_t d = 0; d < problem.head_dim; ++d) {
      timing.largest_radius = std::max(timing.largest_radius, sums.dk(j, d).radius);
    }
  }
  timing.rows = cpu_seconds() - start - timing.pack;
  return timing;
}

/// The median of at least three runs, for about a second.
template <class F>
Timing median(F&& once) {
  std::vector<Timing> runs;
  const double end = cpu_seconds() + 1;
  do {
    runs.push_back(once());
  } while (runs.size() < 3 || (runs.size() < 101 && cpu_seconds() < end));
  std::nth_element(runs.begin(), runs.begin() + static_cast<long>(runs.size() / 2), runs.end(),
                   [](const Timing& a, const Timing& b) { return a.seconds() < b.seconds(); });
  return runs[runs.size() / 2];
}

void measure(const Run& run) {
  test::OwnedProblem owned = test::make_problem(test::Family::randn, run.shape, 1);
  const double pairs = static_cast<double>(run.shape.queries) * static_cast<double>(run.shape.keys);
  const Timing forward = median([&] { return certify_forward(owned.problem, run.precision); });
  std::printf(
      "{\"target\": \"%s\", \"precision\": \"%s\", \"queries\": %ld, \"keys\": %ld, "
      "\"dim\": %ld, \"pack\": %.6f, \"seconds\": %.6f, \"ns_per_pair\": %.2f, "
      "\"radius\": %.3g",
      oracle::simd_target().c_str(), run.precision == oracle::Precision::tight ? "tight" : "fast",
      static_cast<long>(run.shape.queries), static_cast<long>(run.shape.keys),
      static_cast<long>(run.shape.head_dim), forward.pack, forward.seconds(),
      forward.seconds() / pairs * 1e9, forward.largest_radius);
  if (run.backward) {
    const oracle::Upstream upstream = test::make_upstream(test::Family::randn, run.shape, 1, owned);
    const Timing both =
        median([&] { return certify_backward(owned.problem, upstream, run.precision); });
    std::printf(
        ", \"backward_seconds\": %.6f, \"backward_over_forward\": %.2f, "
        "\"dk_radius\": %.3g",
        both.seconds(), both.seconds() / forward.seconds(), both.largest_radius);
  }
  std::printf("}\n");
  std::fflush(stdout);
}

test::Shape square(std::int64_t n, std::int64_t dim) {
  test::Shape shape;
  shape.queries = shape.keys = n;
  shape.head_dim = shape.value_dim = dim;
  return shape;
}

}  // namespace

int main(int argc, char** argv) {
  using oracle::Precision;
  if (argc == 1) {
    for (const std::int64_t n : {256, 1024}) {
      for (const Precision precision : {Precision::fast, Precision::tight}) {
        measure({square(n, 64), precision, true});
      }
    }
    return 0;
  }
  if (argc < 4) {
    std::fprintf(stderr,
                 "truth_bench QUERIES KEYS DIM [fast|tight] [backward] [causal] [input type] "
                 "[SIMD target]\n");
    return 2;
  }
  Run run;
  run.shape.queries = std::atoll(argv[1]);
  run.shape.keys = std::atoll(argv[2]);
  run.shape.head_dim = run.shape.value_dim = std::atoll(argv[3]);
  for (int n = 4; n < argc; ++n) {
    const std::string word = argv[n];
    if (word == "tight") {
      run.precision = Precision::tight;
    } else if (word == "causal") {
      run.shape.causal = true;
    } else if (word == "backward") {
      run.backward = true;
    } else if (oracle::parse_dtype(word, run.shape.q_type)) {
      run.shape.kv_type = run.shape.q_type;
    } else if (word != "fast") {
      oracle::force_simd_target(word);
    }
  }
  measure(run);
  return 0;
}
