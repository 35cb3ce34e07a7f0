// tutorial-01: the attention of one query, computed twice: from all scores at once, and key by key
// with a state of three numbers. One head, one query, values of one component.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "reference/online_softmax.hpp"
#include "tutorials/support/parts.hpp"
#include "tutorials/support/svg.hpp"

namespace {

using namespace ringproof::reference;
using namespace ringproof::tutorials;

// [input]
constexpr std::size_t N = 4, D = 4;
constexpr std::array<double, D> q{1, 2, 0, 1};
constexpr std::array<std::array<double, D>, N> k{{{0, 1, 5, 0},  // one key a line
                                                  {2, 1, 0, 0},
                                                  {1, 2, 1, 1},
                                                  {-1, 0, 2, 1}}};
constexpr std::array<double, N> v{1, 2, 3, 4};
// [/input]

double dot_product(std::size_t j) {
  double sum = 0;
  for (std::size_t d = 0; d < D; ++d) sum += q[d] * k[j][d];
  return sum;
}

std::vector<double> scores() {
  std::vector<double> s;
  for (std::size_t j = 0; j < N; ++j) s.push_back(dot_product(j) / std::sqrt(double(D)));
  return s;
}

// [dense]
/// Two walks over the scores: one for the largest, one for the sums (2).
double dense(const std::vector<double>& s) {
  double m = s[0];
  for (const double score : s) m = std::max(m, score);
  double l = 0, o = 0;
  for (std::size_t j = 0; j < s.size(); ++j) {
    l += std::exp(s[j] - m);
    o += std::exp(s[j] - m) * v[j];
  }
  return o / l;
}
// [/dense]

/// The same without the maximum, to be shown failing.
double without_maximum(const std::vector<double>& s) {
  double l = 0, o = 0;
  for (std::size_t j = 0; j < s.size(); ++j) {
    l += std::exp(s[j]);
    o += std::exp(s[j]) * v[j];
  }
  return o / l;
}

void print_scores() {
  fmt::print("key j     q.k_j  s_j = q.k_j / 2   v_j\n");
  const std::vector<double> s = scores();
  for (std::size_t j = 0; j < N; ++j) {
    fmt::print("{:>5} {:>9} {:>16} {:>5}\n", j, dot_product(j), s[j], v[j]);
  }
}

void print_dense() {
  const std::vector<double> s = scores();
  const double m = *std::max_element(s.begin(), s.end());
  double l = 0;
  for (const double score : s) l += std::exp(score - m);
  fmt::print("m = {}\nkey j   s_j   exp(s_j - m)    share of l\n", m);
  for (std::size_t j = 0; j < N; ++j) {
    const double w = std::exp(s[j] - m);
    fmt::print("{:>5} {:>5} {:>14.6f} {:>11.1f} %\n", j, s[j], w, 100 * w / l);
  }
  fmt::print("l = {:.6f}\nout = {:.6f}\n", l, dense(s));
}

void print_shift() {
  fmt::print("the largest number of binary64 is exp({:.1f})\n\n",
             std::log(std::numeric_limits<double>::max()));
  fmt::print("added to every score   exp(s_j)      exp(s_j - m)\n");
  for (const double shift : {0.0, 100.0, 700.0, 710.0, -750.0}) {
    std::vector<double> s = scores();
    for (double& score : s) score += shift;
    // abs: the sign of a NaN says nothing, and processors differ in it.
    fmt::print("{:>20} {:>10.6f} {:>17.6f}\n", shift, std::abs(without_maximum(s)), dense(s));
  }
}

void print_pass() {
  fmt::print("key  score    m     alpha         l          o       o / l   dense so far\n");
  // [pass]
  RowState<double> state(1);  // one component of values; m = -infinity, l = 0, o = 0
  std::vector<double> seen;
  for (std::size_t j = 0; j < N; ++j) {
    const double s = scores()[j];
    const double old_m = state.m;
    absorb<double>(state, std::span(&s, 1), std::span(&v[j], 1));  // a block of one key
    const double alpha = std::exp(old_m - state.m);

    seen.push_back(s);
    fmt::print("{:>3} {:>6} {:>4} {:>9.6f} {:>9.6f} {:>10.6f} {:>11.6f} {:>14.6f}\n", j, s, state.m,
               alpha, state.l, state.o[0], state.o[0] / state.l, dense(seen));
  }
  // [/pass]
}

/// One row of bars a key: how much every key seen so far counts in the sums.
void print_figure() {
  constexpr double kLeft = 120, kTop = 56, kRow = 62, kColumn = 90, kHeight = 44;
  Svg svg(kLeft + N * kColumn + 150, kTop + N * kRow + 16,
          "Weights of the keys seen so far, after each key");
  svg.text(12, 24, "Weights exp(s - m) of the keys seen so far. A larger m shrinks all of them.",
           "start", 14);
  const std::vector<double> s = scores();
  double m = s[0];
  for (std::size_t step = 0; step < N; ++step) {
    const double old_m = m;
    m = std::max(m, s[step]);
    const double base = kTop + double(step) * kRow + kHeight;
    svg.text(12, base - 14, fmt::format("after key {}", step), "start");
    svg.text(12, base + 2, fmt::format("m = {}", m), "start");
    svg.line(kLeft, base, kLeft + N * kColumn, base);
    for (std::size_t j = 0; j <= step; ++j) {
      const double w = std::exp(s[j] - m), x = kLeft + double(j) * kColumn + 10;
      svg.rectangle(x, base - w * kHeight, 26, w * kHeight, deep_colour(long(j), N));
      svg.text(x + 32, base - 4, fmt::format("{:.3f}", w), "start", 12);
    }
    if (m > old_m) {
      svg.text(kLeft + N * kColumn + 8, base - 14,
               fmt::format("alpha = {:.3f}", std::exp(old_m - m)), "start");
    }
  }
  fmt::print("{}", svg.finish());
}

}  // namespace

int main(int argc, char** argv) {
  return run_parts(argc, argv,
                   {{"scores", print_scores},
                    {"dense", print_dense},
                    {"shift", print_shift},
                    {"pass", print_pass},
                    {"svg", print_figure}});
}
