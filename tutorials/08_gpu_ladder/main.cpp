// tutorial-08: the GPU ladder, on a CPU. Three small kernels and how often they read, two planted
// mistakes that a GPU might let pass, and the six real steps under the judge.
#include "cuda/host/fault.hpp"
#include "cuda/host/grid.hpp"
#include "tutorials/08_gpu_ladder/kernels.hpp"
#include "tutorials/08_gpu_ladder/real_ladder.hpp"
#include "tutorials/support/parts.hpp"
#include "tutorials/support/svg.hpp"

namespace {

using namespace ringproof;
using namespace ringproof::tutorials;

/// What a launch did, and its answer.
struct Run {
  std::vector<float> out;
  const float* v;  // the values of the head
  Reads reads;
  cuda_host::DeviceCounts counts;
  std::string fault;  // empty: none
};

/// Blocks of `threads` threads, `rows` queries for each of them.
Run run(void (*kernel)(Head), int threads, int rows, const cuda_host::DeviceOptions& options = {}) {
  static const std::vector<float> q = drawn(kN * kD, "q"), k = drawn(kN * kD, "k"),
                                  v = drawn(kN * kD, "v");
  Run result{std::vector<float>(kN * kD), v.data(), {}, {}, {}};
  const Head head{q.data(), k.data(), v.data(), result.out.data()};
  cuda_host::device_options() = options;
  cuda_host::device_counts() = {};
  reads = {};
  try {
    cuda_host::run_grid("kernel", dim3(unsigned(kN / threads / rows)), dim3(unsigned(threads)),
                        sizeof(Tile), [=] { kernel(head); });
  } catch (const cuda_host::Fault& fault) {
    result.fault = fault.what();
  }
  result.reads = reads;
  result.counts = cuda_host::device_counts();
  cuda_host::device_options() = {};
  return result;
}

struct Step {
  const char* name;
  void (*kernel)(Head);
  int rows;
};
constexpr int kThreads = 32;
const std::vector<Step> kSteps{{"naive", naive, 1},
                               {"shared tiles", tiles<1, Barriers::both>, 1},
                               {"4 rows a thread", tiles<4, Barriers::both>, 4}};

void print_reads() {
  const Run first = run(kSteps[0].kernel, kThreads, 1);
  fmt::print("step             blocks  barriers  device reads  shared reads  answer\n");
  for (const auto& [name, kernel, rows] : kSteps) {
    const Run step = run(kernel, kThreads, rows);
    fmt::print("{:<16} {:>6} {:>9} {:>13} {:>13}  {}\n", name, step.counts.blocks,
               step.counts.barriers, step.reads.device, step.reads.shared,
               step.out == first.out ? "the same, bit for bit" : "another");
  }
}

void print_race() {
  const auto without = tiles<1, Barriers::not_after_loading>;
  fmt::print("{}\n\n", run(without, kThreads, 1).fault);
  fmt::print("{}\n", run(tiles<1, Barriers::not_before_loading>, kThreads, 1, {.seed = 1}).fault);
}

/// One kernel in several orders of its threads: its answer if nobody watches, and what is reported.
void print_luck() {
  fmt::print("order of threads   answer, nobody watching   reported\n");
  for (const std::uint64_t seed : {0, 1, 2, 3}) {
    const Run unwatched = run(halves, kThreads, 1, {.seed = seed, .shared_checks = false});
    bool right = true;
    for (int n = 0; n < kN / 2; ++n) {
      right = right && unwatched.out[n] == unwatched.v[n % (kThreads / 2)];
    }
    const std::string fault = run(halves, kThreads, 1, {.seed = seed}).fault;
    fmt::print("{:<18} {:<25} {}\n", seed == 0 ? "ascending" : fmt::format("drawn, {}", seed),
               right ? "right" : "wrong", fault.substr(0, fault.find(':')));
  }
}

void print_divergence() { fmt::print("{}\n", run(early_return, kThreads, 1).fault); }

/// Reads of each step as bars.
void print_figure() {
  constexpr double kLeft = 150, kWidth = 440, kHeight = 22, kMost = 280000;
  Svg svg(kLeft + kWidth + 90, 250, "Reads of device memory and of shared memory, by step");
  svg.text(20, 26, fmt::format("Reads of one head, {} queries and keys, D = {}", kN, kD), "start",
           15);
  double y = 48;
  for (const auto& [name, kernel, rows] : kSteps) {
    const Run step = run(kernel, kThreads, rows);
    svg.text(kLeft - 10, y + 28, name, "end");
    const auto bar = [&](long count, long hue, const char* what) {
      const double width = kWidth * double(count) / kMost;
      svg.rectangle(kLeft, y, width, kHeight, deep_colour(hue, 12));
      svg.text(kLeft + width + 6, y + 16, fmt::format("{} {}", count, what), "start", 12);
      y += kHeight + 2;
    };
    bar(step.reads.device, 0, "device");
    bar(step.reads.shared, 7, "shared");
    y += 16;
  }
  fmt::print("{}", svg.finish());
}

}  // namespace

int main(int argc, char** argv) {
  return run_parts(argc, argv,
                   {{"reads", print_reads},
                    {"race", print_race},
                    {"luck", print_luck},
                    {"divergence", print_divergence},
                    {"ladder", print_ladder},
                    {"svg", print_figure}});
}
