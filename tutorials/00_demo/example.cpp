// The worked example (claim C10): equations (6), (7) and (9) of docs/math.md, step by step.
#include "tutorials/00_demo/example.hpp"

#include <array>
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
  figure["A weight 2"] = weight(example.scores_a[1], state.m);
  figure["A l"] = state.l;
  figure["A o"] = state.o[0];

  const Real m_before_b = state.m;
  reference::absorb<Real>(state, example.scores_b, example.values_b);
  figure["B alpha"] = weight(m_before_b, state.m);
  figure["B weight 1"] = weight(example.scores_b[0], state.m);
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

/// Both ends of the interval, each rounded to so many digits behind the point.
std::array<std::string, 2> decimals(const Interval& x, int digits) {
  const auto decimal = [&](mpfr_srcptr end) {
    char text[64];
    mpfr_snprintf(text, sizeof text, "%.*RNf", digits, end);
    const bool zero = mpfr_zero_p(end) != 0;  // both signs of it
    return zero ? std::string("0") : std::string(text);
  };
  return {decimal(&x.backend().data()->left), decimal(&x.backend().data()->right)};
}

/// Do both ends round to this decimal? Rounding is monotone: then all numbers between them do, too.
bool rounds_to(const Interval& x, const std::string& decimal) {
  const std::size_t point = decimal.find('.');
  const std::size_t digits = point == std::string::npos ? 0 : decimal.size() - point - 1;
  const auto ends = decimals(x, static_cast<int>(digits));
  return ends[0] == decimal && ends[1] == decimal;
}

/// The decimal of 24 digits behind the point to which the interval rounds.
std::string certified_decimal(const Interval& x) {
  const auto ends = decimals(x, 24);
  return ends[0] == ends[1] ? ends[0] : "not certified";
}

}  // namespace

std::vector<Figure> worked_example() {
  const auto computed = compute<double>();
  const auto exact = compute<Interval>();
  const std::vector<std::array<std::string, 4>> printed{
      {"A", "alpha", "0", "A alpha"},
      {"A", "exp(1 - 2)", "0.368", "A weight 1"},
      {"A", "exp(2 - 2)", "1.000", "A weight 2"},
      {"A", "l", "1.368", "A l"},
      {"A", "o", "2.368", "A o"},
      {"B", "alpha", "0.368", "B alpha"},
      {"B", "exp(3 - 3)", "1.000", "B weight 1"},
      {"B", "exp(0 - 3)", "0.050", "B weight 2"},
      {"B", "l", "1.553", "B l"},
      {"B", "o", "4.070", "B o"},
      {"end", "out = o / l", "2.621", "out"},
  };
  std::vector<Figure> figures;
  for (const auto& [step, what, digits, key] : printed) {
    const Interval& x = exact.at(key);
    figures.push_back(
        {step, what, digits, computed.at(key), certified_decimal(x), rounds_to(x, digits)});
  }
  const auto direct = direct_softmax<Interval>();
  figures.push_back({"end", "direct softmax", "2.621", direct_softmax<double>(),
                     certified_decimal(direct), rounds_to(direct, "2.621")});
  return figures;
}

}  // namespace ringproof::demo
