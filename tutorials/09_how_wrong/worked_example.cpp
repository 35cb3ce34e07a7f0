#include "tutorials/09_how_wrong/worked_example.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "oracle/generate/random.hpp"
#include "reference/online_softmax.hpp"

namespace ringproof::tutorials {
namespace {

using oracle::DType;
using reference::absorb;
using reference::RowState;

float finished(const RowState<float>& state) { return state.o[0] / state.l; }

/// The reference, one key at a time in the given order.
double key_by_key(const std::vector<std::size_t>& order) {
  RowState<float> state(1);
  for (const std::size_t j : order) {
    const float s = float(kScores[j]), v = float(kValues[j]);
    absorb<float>(state, std::span(&s, 1), std::span(&v, 1));
  }
  return finished(state);
}

/// Softmax of scores times `factor`, in binary64.
double scaled_softmax(double factor) {
  double l = 0, o = 0;
  for (std::size_t j = 0; j < kScores.size(); ++j) {
    l += std::exp(factor * (kScores[j] - 3));
    o += std::exp(factor * (kScores[j] - 3)) * kValues[j];
  }
  return o / l;
}

/// Each block of two keys normalised on its own, then averaged.
double averaged_blocks() {
  const auto block = [](std::size_t j) {
    const double a = std::exp(kScores[j]), b = std::exp(kScores[j + 1]);
    return (a * kValues[j] + b * kValues[j + 1]) / (a + b);
  };
  return (block(0) + block(2)) / 2;
}

std::string verdict(const OneQuery& query, double answer, const std::string& contract) {
  return std::string(word(query.judge({answer}, contract).verdict));
}

}  // namespace

const OneQuery& example() {
  static const OneQuery query(kScores, kValues);
  return query;
}

double exact() { return example().truth().out[0].hi; }

// [kernel]
double kernel(DType p, DType out) {
  float l = 0, o = 0;
  for (std::size_t j = 0; j < kScores.size(); ++j) {
    const float w = float(std::exp(kScores[j] - 3));
    l += w;
    o += float(oracle::round_nearest(p, w)) * float(kValues[j]);
  }
  return oracle::round_nearest(out, o / l);
}
// [/kernel]

std::vector<Candidate> candidates() {
  return {{"a kernel in fp32", kernel(DType::f32, DType::f32)},
          {"a kernel in bf16", kernel(DType::bf16, DType::bf16)},
          {"scores times 1.01, all else exact",
           oracle::round_nearest(DType::f32, scaled_softmax(1.01))},
          {"blocks normalised and averaged", oracle::round_nearest(DType::f32, averaged_blocks())},
          {"the mean of V", 2.5}};
}

double next_up(DType type, double x) { return oracle::round_up(type, std::nextafter(x, INFINITY)); }
double next_down(DType type, double x) {
  return oracle::round_down(type, std::nextafter(x, -INFINITY));
}

void print_answers() {
  fmt::print("exact: {:.9f}\n{:<36} {:>11}   off by\n", exact(), "answer of", "");
  for (const auto& [name, value] : candidates()) {
    fmt::print("{:<36} {:>11.9f}   {:.9f}\n", name, value, std::fabs(value - exact()));
  }
}

void print_orders() {
  std::vector<std::size_t> order(kScores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::map<double, int> orders_of;  // answer -> how many orders give it
  do {
    ++orders_of[key_by_key(order)];
  } while (std::next_permutation(order.begin(), order.end()));
  const double unit = oracle::format_of(DType::f32).unit() * exact();
  fmt::print("answer         orders   off by, in u |o|   verdict under fp32\n");
  for (const auto& [answer, count] : orders_of) {
    fmt::print("{:.10f} {:>8} {:>15.2f}      {}\n", answer, count, (answer - exact()) / unit,
               verdict(example(), answer, "fp32"));
  }
  fmt::print("bound, in u |o|: {:.1f}\n",
             example().bound(example().contract("fp32")).out[0] / unit);
}

void print_verdicts() {
  fmt::print("{:<36} {:>11}   fp32        bf16-flash\n", "answer of", "");
  for (const auto& [name, value] : candidates()) {
    const double stored = oracle::round_nearest(DType::bf16, value);
    fmt::print("{:<36} {:>11.9f}   {:<11} {}\n", name, value, verdict(example(), value, "fp32"),
               verdict(example(), stored, "bf16-flash"));
  }
}

void print_edges() {
  for (const std::string preset : {"fp32", "bf16-flash"}) {
    const oracle::Contract contract = example().contract(preset);
    const DType type = contract.out.dtype;
    const double e = example().bound(contract).out[0];
    double low = oracle::round_nearest(type, exact());
    while (verdict(example(), next_down(type, low), preset) == "PASS") low = next_down(type, low);
    double high = low;
    while (verdict(example(), next_up(type, high), preset) == "PASS") high = next_up(type, high);
    fmt::print("{}: o - e = {:.10f}, o + e = {:.10f}\n", preset, exact() - e, exact() + e);
    std::vector<double> edges{next_down(type, low), low, next_up(type, high)};
    if (high > low) edges.insert(edges.end() - 1, high);
    for (const double x : edges) fmt::print("  {:.10f}  {}\n", x, verdict(example(), x, preset));
  }
}

void print_flip() {
  const oracle::OutputRule bf16{.dtype = DType::bf16};
  const double answer = next_down(DType::bf16, exact());
  const auto passes = [&](double e) {
    return accept(answer, example().truth().out[0], e, bf16) == oracle::Decision::pass;
  };
  double refused = 0, accepted = 1;  // halved until they are neighbours among the binary64 numbers
  while (std::nextafter(refused, 1) < accepted) {
    const double e = refused + (accepted - refused) / 2;
    (passes(e) ? accepted : refused) = e;
  }
  const double middle = (answer + next_up(DType::bf16, exact())) / 2;
  fmt::print("answer {}; halfway to its neighbour {} lies {}\n", answer,
             next_up(DType::bf16, exact()), middle);
  fmt::print("o - {} = {:.19f}\n", middle, exact() - middle);
  for (const double e : {refused, accepted}) {
    fmt::print("bound e = {:.19f}: {}\n", e, passes(e) ? "PASS" : "FAIL");
  }
}

void print_gain() {
  for (const std::string preset : {"fp32", "bf16-flash"}) {
    const DType type = example().contract(preset).out.dtype;
    const double right = oracle::round_nearest(type, exact());
    const double promised = example().judge({right}, preset).power.gain;
    fmt::print("{}: gain errors from {:.2g} on are certainly refused\n", preset, promised);
    for (const double part : {0.25, 0.5, 0.75, 1.0}) {
      const double answer = oracle::round_nearest(type, exact() * (1 + part * promised));
      fmt::print("  answer times 1 + {:.2g}: {:.9f}  {}\n", part * promised, answer,
                 verdict(example(), answer, preset));
    }
  }
}

// [undecided]
/// Two keys whose weighted values nearly cancel: e^2 * (-1) + e^1 * 2.71875 is almost nothing.
const OneQuery& cancelling() {
  static const OneQuery query({2, 1}, {-1, 2.71875});
  return query;
}
// [/undecided]

void print_undecided() {
  const oracle::Contract contract = cancelling().contract("bf16-flash");
  fmt::print("exact {:.9f}, bound {:.9f}\n", cancelling().truth().out[0].hi,
             cancelling().bound(contract).out[0]);
  for (const double answer : {cancelling().truth().out[0].hi, 0.0, 0.5}) {
    const double stored = oracle::round_nearest(DType::bf16, answer);
    const oracle::Report report = cancelling().judge({stored}, "bf16-flash");
    fmt::print("answer {:<12.9f} {}{}{}\n", stored, word(report.verdict),
               report.answers[0].reason.empty() ? "" : ": ", report.answers[0].reason);
  }
}

namespace {

/// One query among N keys, every number drawn and stored in bf16.
OneQuery drawn(std::int64_t N, bool uniform) {
  constexpr std::int64_t D = 64;
  const auto numbers = [&](std::int64_t count, const char* name) {
    oracle::Random random(9, name);
    std::vector<double> result;
    for (std::int64_t n = 0; n < count; ++n) {
      const double x = uniform ? random.uniform() : random.normal();
      result.push_back(oracle::round_nearest(DType::bf16, x));
    }
    return result;
  };
  return {numbers(D, "q"), numbers(N * D, "k"), numbers(N * D, "v"), 0.125};
}

std::string refusals(const OneQuery& query, const std::vector<double>& answer) {
  const oracle::Report report = query.judge(answer, "bf16-flash");
  return fmt::format("{}, {} of {}", word(report.verdict), report.answers[0].tally.failed,
                     answer.size());
}

}  // namespace

// [tolerance]
bool tolerated(double answer, double expected) {
  return std::fabs(answer - expected) <= 0.01 + 0.01 * std::fabs(expected);
}
// [/tolerance]

void print_tolerance() {
  fmt::print("{:<21} {:>6}  {:>9}   {:<22} {:<20} {}\n", "inputs", "N", "largest",
             "mean(V), refused", "mean(V), refused", "right answer");
  fmt::print("{:<21} {:>6}  {:>9}   {:<22} {:<20} {}\n", "", "", "|mean - o|", "by the tolerance",
             "by the bound", "by the bound");
  for (const auto& [uniform, N] : {std::pair{false, 64}, {false, 4096}, {true, 64}, {true, 4096}}) {
    const OneQuery query = drawn(N, uniform);
    std::vector<double> right(query.columns()), means(query.columns());
    double largest = 0;
    int refused = 0;
    for (std::size_t c = 0; c < query.columns(); ++c) {
      const double o = query.truth().out[c].hi;
      for (std::size_t j = 0; j < query.keys(); ++j) means[c] += query.value(j, c) / double(N);
      right[c] = oracle::round_nearest(DType::bf16, o);
      means[c] = oracle::round_nearest(DType::bf16, means[c]);
      largest = std::max(largest, std::fabs(means[c] - o));
      refused += !tolerated(means[c], o);
    }
    fmt::print("{:<21} {:>6}  {:>9.4f}    {:<22} {:<20} {}\n",
               uniform ? "uniform in [0, 1)" : "normal", N, largest,
               fmt::format("{}, {} of {}", refused == 0 ? "accepted" : "refused", refused,
                           query.columns()),
               refusals(query, means), refusals(query, right));
  }
}

}  // namespace ringproof::tutorials
