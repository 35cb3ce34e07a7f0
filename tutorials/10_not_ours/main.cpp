// tutorial-10: a kernel that is not ours. What its author's test sees of it, and what the judge
// sees; the commands of the chapter do the rest (as_printed.py runs them).
#include <algorithm>
#include <cmath>

#include "tutorials/10_not_ours/trial.hpp"
#include "tutorials/10_not_ours/versions.hpp"
#include "tutorials/support/parts.hpp"
#include "tutorials/support/svg.hpp"

namespace {

using namespace ringproof::tutorials;

// [own-test]
/// The author's own test: two heads, 64 queries, 64 keys, D = 32.
bool own_test(Kernel kernel) {
  Trial trial(2, 64, 64, 32);
  trial.run(kernel);
  fmt::print("largest difference {:.1g}\n", trial.largest_difference());
  return trial.largest_difference() < 1e-3;
}
// [/own-test]

void print_own() {
  fmt::print("version 1, the author's test: {}\n", own_test(attention_1) ? "ok" : "not ok");
}

const char* word(const ringproof_tensor_result& result) {
  return result.verdict == RINGPROOF_PASS ? "PASS" : "FAIL";
}

void print_sizes() {
  fmt::print(
      "keys   largest difference   the author's rule   judge: out    lse    error / bound\n");
  for (const long keys : {1, 15, 16, 17, 63, 64, 65, 1023, 1024, 1025}) {
    Trial trial(1, 4, keys, 32);
    trial.run(attention_1);
    const double difference = trial.largest_difference();
    const ringproof_result judged = trial.judged();
    fmt::print("{:>4} {:>20.2g} {:>16} {:>18} {:>6} {:>10.2g}, {:.2g}\n", keys, difference,
               difference < 1e-3 ? "ok" : "not ok", word(judged.out), word(judged.lse),
               judged.out.worst.error_over_bound, judged.lse.worst.error_over_bound);
  }
}

void print_rise() {
  fmt::print("scores rise by   answer of version 2   of version 3   judge: 2      3\n");
  for (const float rise : {0.0f, 20.0f, 80.0f, 88.0f, 89.0f, 200.0f}) {
    Trial trial(1, 1, 32, 1);  // two tiles; the query is 1, and keys are scores
    trial.q[0] = 1;
    for (long j = 0; j < 32; ++j) {
      trial.k[j] = j < 16 ? 0 : rise;
      trial.v[j] = j < 16 ? -1 : 1;
    }
    trial.run(attention_2);
    const float second = trial.out[0];
    const char* second_word = word(trial.judged().out);
    trial.run(attention_3);
    fmt::print("{:>14} {:>21} {:>14.7f}   {:>8} {:>6}\n", rise,
               std::isfinite(second) ? fmt::format("{:.7f}", second) : "not a number", trial.out[0],
               second_word, word(trial.judged().out));
  }
}

/// The weights of version 4, read off from outside: two keys with scores 0 and x and values 0 and 1
/// have the answer w / (1 + w).
void print_exponential() {
  double largest = 0;
  for (int n = 0; n <= 2048; ++n) {
    const float x = -float(n) / 1024;
    Trial trial(1, 1, 2, 1);
    trial.q = {1}, trial.k = {0, x}, trial.v = {0, 1};
    trial.run(attention_4);
    const double w = double(trial.out[0]) / (1 - double(trial.out[0]));
    largest = std::max(largest, std::fabs(w / std::exp(double(x)) - 1));
  }
  fmt::print("largest relative error of a weight: 2^{:.1f}\n", std::log2(largest));
}

/// Error over bound of version 1 for 1 to 64 keys, as bars on a scale of decades.
void print_figure() {
  constexpr double kLeft = 60, kBottom = 240, kDecade = 24, kBar = 10;
  Svg svg(kLeft + 64 * (kBar + 1) + 20, 300, "Error over bound of version 1, by number of keys");
  svg.text(kLeft, 24,
           "LSE of version 1, error over bound. Only whole tiles of 16 keys are answered right.",
           "start", 15);
  const auto height = [&](double ratio) { return kDecade * std::max(0.0, std::log10(ratio) + 1); };
  for (long keys = 1; keys <= 64; ++keys) {
    Trial trial(1, 4, keys, 32);
    trial.run(attention_1);
    const double ratio = trial.judged().lse.worst.error_over_bound;
    const double x = kLeft + double(keys - 1) * (kBar + 1);
    const double h = std::max(2.0, height(ratio));
    svg.rectangle(x, kBottom - h, kBar, h, ratio > 1 ? deep_colour(0, 12) : deep_colour(4, 12));
    if (keys % 16 == 0) svg.text(x + kBar / 2, kBottom + 18, fmt::format("{} keys", keys));
  }
  for (int decade = 0; decade <= 7; decade += 1) {
    const double y = kBottom - height(std::pow(10.0, decade));
    svg.text(kLeft - 8, y + 4, decade == 0 ? "1" : fmt::format("1e{}", decade), "end", 11);
    svg.line(kLeft - 4, y, decade == 0 ? kLeft + 64 * (kBar + 1) : kLeft, y, "#222");
  }
  svg.text(kLeft, kBottom + 42,
           "Bars above the line at 1 are proofs that no kernel in fp32 answers so.", "start");
  fmt::print("{}", svg.finish());
}

}  // namespace

int main(int argc, char** argv) {
  return run_parts(argc, argv,
                   {{"own", print_own},
                    {"sizes", print_sizes},
                    {"rise", print_rise},
                    {"exponential", print_exponential},
                    {"svg", print_figure}});
}
