// The worked example (claim C10): equations (6), (7) and (9) of docs/math.md, step by step.
#include "tutorials/00_demo/example.hpp"

#include <array>
#include <cstdio>
#include <map>

#include "oracle/truth/dense_softmax.hpp"
#include "oracle/truth/interval.hpp"
#include "reference/online_softmax.hpp"

namespace ringproof::demo {
namespace {

using Interval = oracle::Interval<40>;

// [example]
template <class Real>
struct Example {
  std::vector<Real> scores_a{Real(1), Real(2)}, values_a{Real(1), Real(2)};
  std::vector<Real> scores_b{Real(3), Real(0)}, values_b{Real(3), Real(4)};
};

/// Every quantity that the document prints, by its name there.
template <class Real>
std::map<std::string, Real> compute() {
  const Example<Real> example;
  const auto weight = [](const Real& s, const Real& m) {
    return reference::Number<Real>::exponential(s - m);
  };
  std::map<std::string, Real> figure;

  reference::RowState<Real> state(1);  // m = -infinity, l = 0, o = 0
  const Real m_before_a = state.m;
  reference::absorb<Real>(state, example.scores_a, example.values_a);
  figure["A alpha"] = weight(m_before_a, state.m);
  figure["A weight 1"] = weight(example.scores_a[0], state.m);
  figure["A l"] = state.l;
  figure["A o"] = state.o[0];

  const Real m_before_b = state.m;
  reference::absorb<Real>(state, example.scores_b, example.values_b);
  figure["B alpha"] = weight(m_before_b, state.m);
  figure["B weight 2"] = weight(example.scores_b[1], state.m);
  figure["B l"] = state.l;
  figure["B o"] = state.o[0];

  std::vector<Real> out(1);
  reference::finish<Real>(state, Real(0), out);
  figure["out"] = out[0];
  return figure;
}
// [/example]

/// The answer by the judge's own dense softmax, which shares no line with the reference.
template <class Real>
Real direct_softmax() {
  const std::vector<Real> scores{Real(1), Real(2), Real(3), Real(0)};
  const std::vector<std::array<Real, 1>> values{{{Real(1)}}, {{Real(2)}}, {{Real(3)}}, {{Real(4)}}};
  const auto value = [&](std::size_t j) { return values[j]; };
  return oracle::dense_softmax<Real>(scores, 1, value, nullptr, Real(3)).out[0];
}

std::string decimal(double x, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, x + 0.0);  // -0 prints as 0
  return text;
}

/// The longest decimal, up to 15 digits, to which both ends of the interval round. Rounding is
/// monotone, so every number between them rounds to it as well.
std::string common_digits(const Interval& x) {
  const double low = oracle::lower_end(x.backend().data());
  const double high = oracle::upper_end(x.backend().data());
  int digits = 15;
  while (digits > 0 && decimal(low, digits) != decimal(high, digits)) --digits;
  return decimal(low, digits);
}

bool rounds_to(const Interval& x, const std::string& printed) {
  const std::size_t point = printed.find('.');
  const int digits = point == std::string::npos ? 0 : static_cast<int>(printed.size() - point - 1);
  return decimal(oracle::lower_end(x.backend().data()), digits) == printed &&
         decimal(oracle::upper_end(x.backend().data()), digits) == printed;
}

}  // namespace

std::vector<Figure> worked_example() {
  const auto computed = compute<double>();
  const auto exact = compute<Interval>();
  const std::vector<std::array<std::string, 4>> printed{
      {"A", "alpha", "0", "A alpha"},
      {"A", "exp(1 - 2)", "0.368", "A weight 1"},
      {"A", "l", "1.368", "A l"},
      {"A", "o", "2.368", "A o"},
      {"B", "alpha", "0.368", "B alpha"},
      {"B", "exp(0 - 3)", "0.050", "B weight 2"},
      {"B", "l", "1.553", "B l"},
      {"B", "o", "4.070", "B o"},
      {"end", "out = o / l", "2.621", "out"},
  };
  std::vector<Figure> figures;
  for (const auto& [step, what, digits, key] : printed) {
    const Interval& x = exact.at(key);
    figures.push_back(
        {step, what, digits, computed.at(key), common_digits(x), rounds_to(x, digits)});
  }
  const auto direct = direct_softmax<Interval>();
  figures.push_back({"end", "direct softmax", "2.621", direct_softmax<double>(),
                     common_digits(direct), rounds_to(direct, "2.621")});
  return figures;
}

}  // namespace ringproof::demo
