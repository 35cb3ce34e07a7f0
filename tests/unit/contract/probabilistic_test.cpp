// (39) to (40) of docs/contract.md read literally, on the constants of the literal reading of its
// other sections (literal_row.hpp), and what they say of every row.
#include "oracle/contract/probabilistic.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <string>

#include "oracle/contract/probable_sums.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/contract/literal_row.hpp"
#include "tests/unit/contract/random_row.hpp"

using namespace ringproof;
using namespace ringproof::oracle;
using test::literal::Key;
using test::literal::Literal;
using test::literal::Real;

namespace {

constexpr Real kLambda = 7;

struct Expected {
  std::vector<Real> out, unlisted;  // [Dv] e_prob; the same without (39a)
  std::vector<char> refuted;        // [Dv] (c) for the column
  Real variance = 0, drift = 0, drift_scale = 0, largest_budget = 0;
  bool known = true;
};

bool more_than_half_equal(const std::vector<double>& x) {
  return std::any_of(x.begin(), x.end(), [&](double one) {
    return 2 * std::count(x.begin(), x.end(), one) > static_cast<std::int64_t>(x.size());
  });
}

Real unit_of(const Accumulator& sum) {
  Real unit = sum.model == Accumulator::Model::max ? 0 : sum.u;
  for (const Accumulator& inner : sum.of) unit = std::max(unit, unit_of(inner));
  return unit;
}

/// RN(w) / w - 1 of a cast to so many digits.
double error_of_cast(double w, double u) {
  if (w == 0 || u == 0) return 0;
  w *= 0x1p100;  // the significand of a weight that is no normal number
  const double step = std::exp2(std::floor(std::log2(w))) * 2 * u;
  return std::nearbyint(w / step) * step / w - 1;
}

class Reading {
 public:
  Reading(const Contract& contract, const test::RowFixture& fixture)
      : c_(contract),
        f_(fixture),
        row_(contract, fixture.problem, fixture.row, fixture.values.data(),
             fixture.problem.value_dim) {}

  Expected read() {
    row_.collect();
    row_.scores();
    row_.layout();
    row_.result.out.assign(f_.row.out.size(), 0);
    for (const Merge form : c_.partials.merge) {
      row_.merge = row_.R > 1 ? form : Merge::none;
      row_.leak = row_.leak_growth = 0;
      row_.common_constants();
      note_budgets();
      row_.merge_constants();
      row_.absolute_terms();
      add_form();
      if (row_.R == 1) break;
    }
    find_classes();
    columns();
    whole_row();
    return std::move(result_);
  }

 private:
  static Real more_of(const Key& k) { return expl(k.C) * k.p; }
  std::size_t seen() const { return row_.keys.size() - (row_.keys.back().sink ? 1 : 0); }
  double v(std::size_t k, std::size_t column) const {
    return static_cast<double>(row_.v(row_.keys[k], column));
  }

  /// C_j of a weight when it is cast: a merge comes later.
  void note_budgets() {
    C_.resize(seen());
    for (std::size_t k = 0; k < seen(); ++k) C_[k] = std::max(C_[k], row_.keys[k].C);
  }

  void add_form() {
    const Real den =
        row_.total([](const Key& k) { return k.p * expl(-k.C - k.B); }) - row_.H / row_.W;
    if (!(den > 0)) result_.known = false;
    weight_.resize(seen());
    grown_.resize(seen());
    largest_A_ = row_.maximum([](const Key& k) { return k.A; });
    largest_B_ = row_.maximum([](const Key& k) { return k.B; });
    for (std::size_t k = 0; k < seen(); ++k) {
      const Key& key = row_.keys[k];
      grown_[k] = more_of(key) * expl(row_.tau_d) / den;
      weight_[k] = std::max(weight_[k], grown_[k] * expm1l(key.cast) * expl(largest_A_));
      result_.largest_budget =
          std::max({result_.largest_budget, key.C, key.A, key.B, key.CL + key.B});
    }
  }

  /// A chain of pairs whose significands may agree is one class.
  void find_classes() {
    root_.resize(seen());
    std::iota(root_.begin(), root_.end(), std::size_t{0});
    for (std::size_t a = 0; a < root_.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const Real octaves = (row_.keys[a].s - row_.keys[b].s) / logl(2);
        const Real apart = fabsl(octaves - roundl(octaves));
        if (apart > 2 * (C_[a] + C_[b])) continue;
        const std::size_t from = root_[a], to = root_[b];
        std::replace(root_.begin(), root_.end(), from, to);
      }
    }
  }
  template <class Size>
  Real squares(const Size& size) const {
    Real total = 0;
    for (std::size_t one = 0; one < root_.size(); ++one) {
      Real sum = 0;
      for (std::size_t k = 0; k < root_.size(); ++k) sum += root_[k] == one ? fabsl(size(k)) : 0;
      total += sum * sum;
    }
    return total;
  }
  Real error(std::size_t k) const {
    return error_of_cast(std::exp(static_cast<double>(row_.keys[k].s - row_.M)), c_.p.u);
  }

  void columns() {
    const RowBound bound = f_.bound(c_), exact = f_.bound(without_casts(c_));
    const RowBound exact_sums = f_.bound(without_sums(without_casts(c_)));
    std::vector<double> p;
    for (std::size_t k = 0; k < seen(); ++k) p.push_back(static_cast<double>(row_.keys[k].p));
    const bool listed = lists_sums(c_) && !more_than_half_equal(p);
    for (std::size_t c = 0; c < bound.out.size(); ++c) {
      Real drift = 0;
      std::vector<double> addends;
      for (std::size_t k = 0; k < seen(); ++k) {
        drift += row_.keys[k].p * v(k, c) * error(k);
        addends.push_back(p[k] * v(k, c));
      }
      const Real limit =
          4 * c_.p.u * sqrtl(squares([&](std::size_t k) { return row_.keys[k].p * v(k, c); }));
      result_.refuted.push_back(fabsl(drift) > limit);
      const Real casts =
          kLambda * sqrtl(squares([&](std::size_t k) { return weight_[k] * v(k, c); }));
      Real e = std::min<Real>(bound.out[c], exact.out[c] + casts);
      if (result_.refuted.back() != 0) e = bound.out[c];
      result_.unlisted.push_back(e);
      if (listed && result_.refuted.back() == 0 && !more_than_half_equal(addends)) {
        e = std::min(e, expl(largest_B_) * exact_sums.out[c] + casts + of_sums(c));
      }
      result_.out.push_back(e);
    }
  }

  /// What the additions of both sums are likely to do to column c. (39a)
  Real of_sums(std::size_t c) const {
    const auto path = [&](const Accumulator& sum, Real Gamma) {
      return row_.nrs + Gamma / test::literal::hat(unit_of(sum));
    };
    const auto u = [](double unit) { return test::literal::hat(std::max(unit, 0x1p-53)); };
    Real of_values = 0, of_weights = 0;
    for (std::size_t k = 0; k < seen(); ++k) {
      of_values += grown_[k] * fabsl(v(k, c));
      of_weights += grown_[k];
    }
    return kLambda * (of_values * u(c_.pv.u) * expl(largest_A_) * sqrtl(path(c_.pv.acc, row_.Gpv)) +
                      of_weights * u(c_.l.u) * expl(largest_B_) * sqrtl(path(c_.l.acc, row_.Gl)) *
                          fabsl(f_.row.out[c].hi));
  }

  void whole_row() {
    std::vector<Real> y(seen());
    for (std::size_t k = 0; k < seen(); ++k) {
      for (std::size_t c = 0; c < f_.row.out.size(); ++c) {
        y[k] += f_.row.out[c].hi < 0 ? -v(k, c) : v(k, c);
      }
      result_.drift += row_.keys[k].p * y[k] * error(k);
    }
    result_.variance = squares([&](std::size_t k) { return weight_[k] * y[k]; });
    result_.drift_scale =
        c_.p.u * c_.p.u * squares([&](std::size_t k) { return row_.keys[k].p * y[k]; });
  }

  const Contract& c_;
  const test::RowFixture& f_;
  Literal row_;
  std::vector<Real> C_, weight_, grown_;
  std::vector<std::size_t> root_;
  Real largest_A_ = 0, largest_B_ = 0;
  Expected result_;
};

/// Weights a little above a number of eight digits: all casts round down, and where every value is
/// one that is no accident any more.
test::RowFixture on_a_grid() {
  test::RowFixture f(60, 16, 2);
  for (std::size_t j = 0; j < 60; ++j) {
    f.row.dot[j] = j == 0 ? 0.0 : std::log((128.45 + static_cast<double>(2 * j)) / 256);
    f.row.abs_dot[j] = std::abs(f.row.dot[j]);
    f.values[2 * j] = 1;
    f.values[2 * j + 1] = j % 2 == 0 ? 1 : -1;
  }
  f.finish();
  return f;
}

/// A long row, most of whose weights or, in the second column, most of whose addends are equal.
test::RowFixture mostly_equal_row(bool equal_weights) {
  test::RowFixture f(600, 16, 2);
  std::mt19937_64 generator(7);
  std::uniform_real_distribution<double> draw(-1, 1);
  for (std::size_t j = 0; j < 600; ++j) {
    if (!equal_weights) f.row.dot[j] = draw(generator);
    f.row.abs_dot[j] = std::abs(f.row.dot[j]);
    f.values[2 * j] = draw(generator);
    f.values[2 * j + 1] = equal_weights || j % 3 == 0 ? draw(generator) : 0;
  }
  f.finish();
  return f;
}

/// Random rows, then those whose casts or sums are no random experiment.
test::RowFixture row_number(std::uint64_t n) {
  if (n < 80) return test::random_row(n);
  return n == 80 ? on_a_grid() : mostly_equal_row(n == 81);
}

/// True if the squares of all shares are numbers of binary64; else nothing is refuted but in it.
bool has_squares(const RowTruth& row) { return !row.has_sink || row.sink < 100; }

bool near(double found, Real expected, double scale = 0) {
  const auto value = static_cast<double>(expected);
  return std::abs(found - value) <= 0x1p-28 * (std::abs(value) + scale);
}

}  // namespace

TEST_CASE("likely bounds are the document's, read literally") {
  std::int64_t compared = 0, smaller = 0, refuted = 0, of_sums = 0;
  const std::string contracts[] = {
      "bf16-flash",
      "fp16-flash",
      "fp8-e4m3-flash",
      "bf16-ring4",
      R"({"base":"bf16-flash","pv":{"acc":{"model":"any_order","u":"0x1p-24","products":"exact"}},)"
      R"("l":{"acc":{"model":"tree","u":"0x1p-24","products":"exact","leaf":4}}})",
      R"({"base":"bf16-io+block128","pv":{"u":"0x1p-12"},"l":{"u":"0x1p-14"}})"};
  for (const std::string& name : contracts) {
    const Contract contract = read_contract(name, Spec{});
    for (std::uint64_t seed = 0; seed <= 82; ++seed) {
      const test::RowFixture f = row_number(seed);
      CAPTURE(name, seed);
      const RowBound bound = f.bound(contract);
      if (!bound.not_applicable.empty() || f.row.visible == 0 || !has_squares(f.row)) continue;
      const Expected expected = Reading(contract, f).read();
      if (!expected.known || expected.largest_budget > 0.5L) continue;
      ProbabilisticBound found;
      bound_row_probabilistic(contract, without_casts(contract), f.problem, f.row, f.values.data(),
                              f.problem.value_dim, bound, static_cast<double>(kLambda), found);
      for (std::size_t c = 0; c < bound.out.size(); ++c) {
        CAPTURE(c, f.row.has_sink, found.out[c], static_cast<double>(expected.out[c]));
        CHECK(near(found.out[c], expected.out[c]));
        ++compared;
        smaller += found.out[c] < bound.out[c];
        refuted += expected.refuted[c];
        of_sums += expected.out[c] < expected.unlisted[c];
      }
      const double spread = std::sqrt(static_cast<double>(expected.drift_scale));
      CHECK(near(found.variance, expected.variance));
      CHECK(near(found.drift_scale, expected.drift_scale));
      CHECK(near(found.drift, expected.drift, 0x1p12 * spread));
      CHECK(found.remainder == f.bound(without_casts(contract)).functional);
    }
  }
  CHECK(compared > 1000);
  CHECK(smaller > 30);
  CHECK(refuted > 0);
  CHECK(of_sums > 10);
}

TEST_CASE("what an exact contract leaves out is what the level lists") {
  const Contract contract = read_contract("bf16-flash", Spec{});
  CHECK(without_casts(contract).p.u == 0);
  CHECK(without_casts(contract).backward.ds_u == contract.backward.ds_u);
  CHECK(without_gradient_casts(contract).p.u == 0);
  CHECK(without_gradient_casts(contract).backward.ds_u == 0);
  CHECK(no_probabilistic_level(contract).empty());
  for (const char* changed : {R"({"base":"bf16-flash","p":{"round":"faithful"}})",
                              R"({"base":"bf16-flash","p":{"sum_from":"cast"}})",
                              R"({"base":"bf16-flash","out":{"round":"rz"}})"}) {
    CHECK_FALSE(no_probabilistic_level(read_contract(changed, Spec{})).empty());
    CHECK_FALSE(no_gradient_level(read_contract(changed, Spec{})).empty());
  }
}
