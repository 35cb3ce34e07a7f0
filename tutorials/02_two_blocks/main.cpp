// tutorial-02: the document's worked example, every figure beside the one it prints; then what may
// be done with states of blocks (any order, any grouping) and what may not (averaging).
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <set>

#include "reference/online_softmax.hpp"
#include "tutorials/support/exact.hpp"
#include "tutorials/support/parts.hpp"
#include "tutorials/support/svg.hpp"

namespace {

using namespace ringproof::reference;
using namespace ringproof::tutorials;

template <class Real>
struct Block {
  std::vector<Real> scores, values;
};

// [example]
const Block<double> A{{1, 2}, {1, 2}};
const Block<double> B{{3, 0}, {3, 4}};

RowState<double> after(const std::vector<Block<double>>& blocks) {
  RowState<double> state(1);
  for (const auto& [scores, values] : blocks) absorb<double>(state, scores, values);
  return state;
}
// [/example]

/// One figure of the document: where it stands, and what we compute for it.
struct Figure {
  int line;
  const char* what;
  const char* printed;
  double computed;
};

void print_table(const std::vector<Figure>& figures) {
  fmt::print("line  figure          document   computed   to three decimals\n");
  std::size_t same = 0;
  for (const auto& [line, what, printed, computed] : figures) {
    const bool whole = std::string(printed).find('.') == std::string::npos;
    const std::string rounded = fmt::format("{:.{}f}", computed, whole ? 0 : 3);
    fmt::print("{:>4}  {:<14} {:>9} {:>10.6f}   {}\n", line, what, printed, computed,
               rounded == printed ? "the same" : rounded);
    same += rounded == printed ? 1 : 0;
  }
  fmt::print("{} of {} are the same\n", same, figures.size());
}

void print_blocks() {
  const RowState<double> none(1), first = after({A}), both = after({A, B});
  const RowState<double> all = after({{{1, 2, 3, 0}, {1, 2, 3, 4}}});
  print_table({
      {72, "m' after A", "2", first.m},
      {72, "alpha", "0", std::exp(none.m - first.m)},
      {73, "exp(1 - 2)", "0.368", std::exp(A.scores[0] - first.m)},
      {73, "exp(2 - 2)", "1.000", std::exp(A.scores[1] - first.m)},
      {74, "l", "1.368", first.l},
      {74, "o", "2.368", first.o[0]},
      {77, "m' after B", "3", both.m},
      {77, "alpha", "0.368", std::exp(first.m - both.m)},
      {78, "exp(3 - 3)", "1.000", std::exp(B.scores[0] - both.m)},
      {78, "exp(0 - 3)", "0.050", std::exp(B.scores[1] - both.m)},
      {79, "l", "1.553", both.l},
      {80, "o", "4.070", both.o[0]},
      {82, "out = o / l", "2.621", both.o[0] / both.l},
      {83, "all at once", "2.621", all.o[0] / all.l},
  });
}

void print_rounded() {
  const double alpha = 0.368, l = 1.368, o = 2.368;  // as lines 74 and 77 print them
  print_table({
      {79, "l", "1.553", alpha * l + (1.000 + 0.050)},
      {80, "o", "4.070", alpha * o + (1.000 * 3 + 0.050 * 4)},
  });
}

void print_order() {
  fmt::print("order      m   alpha of the second block          l          o        out\n");
  for (const bool a_first : {true, false}) {
    const RowState<double> half = after({a_first ? A : B});
    const RowState<double> both = a_first ? after({A, B}) : after({B, A});
    fmt::print("{} {:>4} {:>27.6f} {:>10.6f} {:>10.6f} {:>10.6f}\n",
               a_first ? "A, then B" : "B, then A", both.m, std::exp(half.m - both.m), both.l,
               both.o[0], both.o[0] / both.l);
  }
}

/// What came out, and of how many orders.
template <class Answer>
struct Outcome {
  long orders = 0;
  std::set<Answer> answers;
};

/// The answers of all orders of some keys, each a block of its own.
template <class Real, class Answer>
Outcome<Answer> answers_of_all_orders(const std::vector<Real>& s, const std::vector<Real>& v,
                                      Answer (*answer)(const RowState<Real>&)) {
  std::vector<std::size_t> order(s.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  Outcome<Answer> outcome;
  do {
    ++outcome.orders;
    RowState<Real> state(1);
    for (const std::size_t j : order) {
      absorb<Real>(state, std::span(&s[j], 1), std::span(&v[j], 1));
    }
    outcome.answers.insert(answer(state));
  } while (std::next_permutation(order.begin(), order.end()));
  return outcome;
}

void print_orders() {
  const std::vector<float> s{0.3F, 1.7F, 2.9F, -0.4F, 2.2F, 0.9F, 3.1F, 1.1F};
  const std::vector<float> v{1.5F, -0.7F, 2.6F, 3.3F, -1.9F, 0.8F, 1.2F, -2.4F};
  const auto [orders, rounded] = answers_of_all_orders<float, float>(
      s, v, [](const RowState<float>& state) { return state.o[0] / state.l; });
  const int steps = std::bit_cast<int>(*rounded.rbegin()) - std::bit_cast<int>(*rounded.begin());
  fmt::print("{} orders of eight keys, binary32: {} different answers\n", orders, rounded.size());
  fmt::print("smallest {:.9f}, largest {:.9f}, {} steps of the last digit apart\n",
             *rounded.begin(), *rounded.rbegin(), steps);

  std::vector<Exact> s2, v2;
  for (const int score : {0, 2, 3, -1, 2, 1, 3, 1}) s2.emplace_back(score);
  for (const int value : {1, -1, 3, 3, -2, 1, 1, -2}) v2.emplace_back(value);
  using State = std::array<double, 3>;
  const auto [as_many, exact] =
      answers_of_all_orders<Exact, State>(s2, v2, [](const RowState<Exact>& state) {
        return State{state.m.x, state.l.x, state.o[0].x};
      });
  fmt::print("{} orders of eight keys, no rounding: {} state, m = {}, l = {}, o = {}\n", as_many,
             exact.size(), (*exact.begin())[0], (*exact.begin())[1], (*exact.begin())[2]);
}

void print_merge() {
  const RowState<double> a = after({A}), b = after({B}), joined = merge(a, b);
  fmt::print("state of       m         l          o\n");
  fmt::print("A         {:>6} {:>9.6f} {:>10.6f}\n", a.m, a.l, a.o[0]);
  fmt::print("B         {:>6} {:>9.6f} {:>10.6f}\n", b.m, b.l, b.o[0]);
  fmt::print("A and B   {:>6} {:>9.6f} {:>10.6f}\n", joined.m, joined.l, joined.o[0]);
  const RowState<double> none(1), same = merge(none, a);
  fmt::print("none, A   {:>6} {:>9.6f} {:>10.6f}\n", same.m, same.l, same.o[0]);
}

void print_average() {
  const RowState<double> a = after({A}), b = after({B});
  const NormalizedPartial<double> out_a{{a.o[0] / a.l}, log_sum_exp(a)};
  const NormalizedPartial<double> out_b{{b.o[0] / b.l}, log_sum_exp(b)};
  const NormalizedPartial<double> joined = merge(out_a, out_b);
  const double share = std::exp(out_a.lse - joined.lse);
  fmt::print("block    out = o / l    LSE = m + ln l    share of the weight\n");
  fmt::print("A     {:>14.6f} {:>17.6f} {:>20.1f} %\n", out_a.out[0], out_a.lse, 100 * share);
  fmt::print("B     {:>14.6f} {:>17.6f} {:>20.1f} %\n", out_b.out[0], out_b.lse, 100 * (1 - share));
  fmt::print("plain mean of the two           {:>9.6f}\n", (out_a.out[0] + out_b.out[0]) / 2);
  fmt::print("mean weighted by exp(LSE)       {:>9.6f}\n", joined.out[0]);
}

/// The state before, between and after the two blocks.
void print_figure() {
  Svg svg(680, 216, "The state (m, l, o) before, between and after the two blocks");
  const std::vector<RowState<double>> states{RowState<double>(1), after({A}), after({A, B})};
  const std::vector<std::string> names{"no key", "after A", "after A and B"};
  for (std::size_t n = 0; n < states.size(); ++n) {
    const double x = 12 + double(n) * 232;
    svg.rectangle(x, 56, 128, 92, colour(long(n), 3), "#555");
    svg.text(x + 64, 46, names[n]);
    const RowState<double>& s = states[n];
    svg.text(x + 14, 80, n == 0 ? "m = -infinity" : fmt::format("m = {}", s.m), "start");
    svg.text(x + 14, 106, fmt::format("l = {:.3f}", s.l), "start");
    svg.text(x + 14, 132, fmt::format("o = {:.3f}", s.o[0]), "start");
    if (n == 0) continue;
    const bool first = n == 1;
    svg.arrow(x - 104, 102, x - 4, 102);
    svg.text(x - 54, 78, first ? "A: s = 1, 2" : "B: s = 3, 0", "middle", 12);
    svg.text(x - 54, 94, first ? "v = 1, 2" : "v = 3, 4", "middle", 12);
    svg.text(x - 54, 122, fmt::format("alpha = {:.3f}", std::exp(states[n - 1].m - s.m)), "middle",
             12);
  }
  const RowState<double>& last = states.back();
  svg.text(540, 186, fmt::format("out = o / l = {:.3f}", last.o[0] / last.l), "middle", 14);
  fmt::print("{}", svg.finish());
}

}  // namespace

int main(int argc, char** argv) {
  return run_parts(argc, argv,
                   {{"blocks", print_blocks},
                    {"rounded", print_rounded},
                    {"order", print_order},
                    {"orders", print_orders},
                    {"merge", print_merge},
                    {"average", print_average},
                    {"svg", print_figure}});
}
