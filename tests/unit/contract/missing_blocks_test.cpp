// (43) of docs/contract.md read literally, for rows whose partials are not merged by LSE: which
// blocks of keys a row would miss, and the bounds with and without them.
#include <algorithm>
#include <cmath>
#include <random>

#include "oracle/contract/power.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/contract/literal_row.hpp"
#include "tests/unit/contract/row_fixture.hpp"

using namespace ringproof;
using namespace ringproof::oracle;

namespace {

using test::literal::hat;
using test::literal::Key;
using test::literal::List;
using test::literal::Real;

constexpr Real kTooNear = 0x1p-20L;  // to a bound, for two evaluations to agree

class LiteralBlocks : test::literal::Literal {
 public:
  LiteralBlocks(const Contract& contract, const test::RowFixture& f)
      : Literal(contract, f.problem, f.row, f.values.data(), f.problem.value_dim) {
    run();
    const Format& format = format_of(c.out.dtype);
    u_out_ = format.unit();
    eta_out_ = std::max(format.smallest() / 2, 0x1p-1074);
    D_ = total([](const Key& k) { return k.p * expl(-k.C - k.B); }) - H / W;
    kC_ = total([](const Key& k) { return k.p * expm1l(k.C); });
    kb_ = total([](const Key& k) { return k.p * expl(k.C) * expm1l(k.B); });
    for (std::size_t t = 0; t < row.out.size(); ++t) {
      o_.push_back(total([&](const Key& k) { return k.p * v(k, t); }));
    }
  }

  /// The smallest length of which every aligned block is refused, and its largest weight; 0, 1:
  /// none.
  std::pair<std::int64_t, Real> smallest() {
    const auto place = [&](const Key& k) { return row.keys.first + k.place; };
    for (std::int64_t length = 1; 2 * length <= row.visible; length *= 2) {
      bool all = true;
      Real largest = 0;
      for (std::int64_t block = 0; block * length < problem.keys && all; ++block) {
        const auto inside = [&](const Key& k) { return place(k) / length == block; };
        const Real weight = total([&](const Key& k) { return inside(k) ? k.p : 0.0L; });
        if (weight == 0) continue;
        largest = std::max(largest, weight);
        all = refused(inside, weight);
      }
      if (all) return {length, largest};
    }
    return {0, 1};
  }

  bool too_near = false;                 // of any decision
  int by_column = 0, by_functional = 0;  // refused blocks

 private:
  template <class Inside>
  bool refused(const Inside& inside, Real weight) {
    List without(o_.size());
    Real largest = 0;
    for (std::size_t t = 0; t < o_.size(); ++t) {
      const Real left = o_[t] - total([&](const Key& k) { return inside(k) ? k.p * v(k, t) : 0; });
      without[t] = left / (1 - weight);
      const Real both = result.out[t] + column_bound(t, without[t], weight);
      const Real accepted =
          both + u_out_ * (fabsl(o_[t]) + fabsl(without[t]) + both) + 2 * eta_out_;
      largest = std::max(largest, fabsl(without[t] - o_[t]) / accepted);
    }
    if (exceeds(largest)) return ++by_column > 0;
    return functional_refuses(without, weight) && ++by_functional > 0;
  }

  bool exceeds(Real ratio) {
    too_near = too_near || fabsl(ratio - 1) < kTooNear;
    return ratio > 1;
  }

  Real column_bound(std::size_t t, Real o, Real weight) const {  // e_S
    if (!(D_ - weight > 0)) return HUGE_VALL;
    const Real abs = total([&](const Key& k) { return fabsl(v(k, t)); });
    const Real kc = total([&](const Key& k) { return k.p * expm1l(k.C) * fabsl(v(k, t) - o_[t]); });
    const Real ka =
        total([&](const Key& k) { return k.p * expl(k.C) * expm1l(k.A) * fabsl(v(k, t)); });
    const Real e0 = (kc + ka + kC_ * fabsl(o - o_[t]) + kb_ * fabsl(o) +
                     (G_v * abs + G_1 + H * fabsl(o)) / W + Pt) /
                    (D_ - weight);
    return expl(tau_d) * e0 + expm1l(tau_d) * fabsl(o) + G2(t);
  }

  /// (26) for signs g, of the row whose truth gives y and S1, with the denominator D.
  Real functional_bound(const List& g, Real y, Real S1, Real D) const {
    if (!(D > 0)) return HUGE_VALL;
    Real y0 = 0, sum_G2 = 0;
    for (std::size_t t = 0; t < g.size(); ++t) y0 += g[t] * o_[t], sum_G2 += G2(t);
    const auto of_key = [&](const Key& k, bool magnitude) {
      Real sum = 0;
      for (std::size_t t = 0; t < g.size(); ++t) {
        sum += magnitude ? fabsl(v(k, t)) : g[t] * v(k, t);
      }
      return sum;
    };
    const Real error = total([&](const Key& k) {
      const Real y_j = of_key(k, false), ay = of_key(k, true);
      return k.p *
             (expm1l(k.C) * fabsl(y_j - y0) +
              expl(k.C) * (expm1l(k.cast) * fabsl(y_j) + expl(k.cast) * expm1l(k.A - k.cast) * ay));
    });
    const Real absolute = total([&](const Key& k) {
      return k.p * (expm1l(k.C) + expl(k.C) * expm1l(k.A)) * of_key(k, true);
    });
    const Real sum_ay = total([&](const Key& k) { return of_key(k, true); });
    const auto columns = static_cast<Real>(g.size());
    const Real each = columns * (G_1 / (W * D) + Pt / D);
    const Real S_U =
        S1 + (absolute + (kC_ + kb_) * S1) / D + (G_v * sum_ay + H * S1) / (W * D) + each;
    return (error + kC_ * fabsl(y - y0) + kb_ * fabsl(y)) / D +
           expm1l(tau_d + hat(static_cast<double>(u_out_))) * S_U +
           (G_v * sum_ay + H * fabsl(y)) / (W * D) + each + expl(hat(u_out_)) * sum_G2 +
           columns * eta_out_;
  }

  bool functional_refuses(const List& without, Real weight) {
    List g(o_.size());
    Real distance = 0, y = 0, y0 = 0, S1 = 0, S0 = 0;
    for (std::size_t t = 0; t < g.size(); ++t) {
      g[t] = without[t] < o_[t] ? -1 : 1;
      distance += fabsl(without[t] - o_[t]);
      y0 += g[t] * o_[t], S0 += fabsl(o_[t]);
      y += g[t] * without[t], S1 += fabsl(without[t]);
    }
    return exceeds(distance /
                   (functional_bound(g, y0, S0, D_) + functional_bound(g, y, S1, D_ - weight)));
  }

  Real u_out_, eta_out_, D_, kC_, kb_;
  List o_;
};

/// Eight visible keys in a range that begins at `first`; which of the others are hidden, how sharp
/// the scores are and how many columns there are comes from the seed.
test::RowFixture eight_keys(std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal;
  const std::int64_t columns = seed % 4 == 0 ? 24 : 1 + static_cast<std::int64_t>(seed % 3);
  test::RowFixture f(11, 16, columns);
  const double sharp = 0.5 + static_cast<double>(seed % 7) / 2;
  const double level = seed % 5 == 0 ? 30 : 0, offset = seed % 3 == 0 ? 2 : 0;
  for (std::size_t j = 0; j < 11; ++j) {
    f.row.dot[j] = level + sharp * normal(generator);
    f.row.abs_dot[j] = std::abs(f.row.dot[j]);
  }
  for (double& x : f.values) x = offset + normal(generator);
  const std::int64_t hidden[][3] = {{0, 1, 10}, {0, 4, 5}, {8, 9, 10}, {2, 5, 7}};
  for (const std::int64_t j : hidden[seed % 4]) f.hide(j);
  f.finish();
  if (seed % 2 == 1) f.put_behind(static_cast<std::int64_t>(seed / 2 % 4));
  return f;
}

}  // namespace

TEST_CASE("blocks of keys that a row would miss are the document's (43), read literally") {
  const char* const contracts[] = {
      "bf16-flash",
      "bf16-eager",
      "bf16-unfused",
      "fp16-flash",
      "fp8-e4m3-flash",
      R"({"base":"fp32","pv":{"acc":{"model":"any_order","u":"0x1p-7","products":"rounded"}}})",
      R"({"base":"fp32-ring3","partials":{"merge":["unnormalized"],"run_u":"0x1p-8"}})"};
  int of_length[9] = {}, by_column = 0, by_functional = 0, near = 0;
  for (const char* name : contracts) {
    const Contract contract = read_contract(name, Spec{});
    for (std::uint64_t seed = 0; seed < 160; ++seed) {
      const test::RowFixture f = eight_keys(seed);
      const RowBound bound = f.bound(contract, true);
      if (!bound.not_applicable.empty()) continue;
      LiteralBlocks literal(contract, f);
      const auto [length, mass] = literal.smallest();
      near += literal.too_near;
      if (literal.too_near) continue;
      CAPTURE(name, seed);
      CHECK(bound.power.missing_block == length);
      CHECK(std::abs(bound.power.missing_mass_out - static_cast<double>(mass)) <= 0x1p-40);
      ++of_length[length];
      by_column += literal.by_column, by_functional += literal.by_functional;
    }
  }
  INFO("lengths " << of_length[0] << " " << of_length[1] << " " << of_length[2] << " "
                  << of_length[4] << ", by a column " << by_column << ", by the functional "
                  << by_functional << ", too near " << near);
  for (const int length : {0, 1, 2, 4}) CHECK(of_length[length] > 20);
  CHECK(by_column > 1000);
  CHECK(by_functional > 20);
  CHECK(near < 5);
}

/// Equal scores over a row that is too long for blocks of one key. Of its three columns the last
/// has too many bits to be summed exactly; `seed` says how far from `level` the keys are. Keys that
/// are hidden lie there.
test::RowFixture equal_keys(std::uint64_t seed, double level) {
  std::mt19937_64 generator(seed);
  const std::int64_t keys = 2 * kSmallestBlock + 4, hidden[] = {0, 9, 10};
  test::RowFixture f(keys, 16, 3);
  const std::int64_t least = 1 + static_cast<std::int64_t>(seed % 8);
  for (std::int64_t j = 0; j < keys; ++j) {
    const auto away = static_cast<double>(least + static_cast<std::int64_t>(generator() % 20));
    double* values = f.values.data() + j * 3;
    values[0] = level + (j % 2 == 0 ? away : -away);
    values[1] = seed % 2 == 0 && j == 7 ? 5 : 1;
    values[2] = 0x1p-30 + 100 * away;
  }
  for (const std::int64_t j : hidden) {
    f.hide(j);
    f.values[static_cast<std::size_t>(j * 3)] = level;
  }
  f.finish();
  return f;
}

/// Whether some exact column of the row refuses its key j to be missing; `division` is the error
/// that these columns have, relative to them.
class LiteralKeys {
 public:
  LiteralKeys(const test::RowFixture& f, const Format& out, Real division)
      : f_(f), out_(out), division_(division) {
    for (std::int64_t j = 0; j < f.problem.keys; ++j) {
      for (int c = 0; c < 2 && seen(j); ++c) sum_[c] += value(j, c);
    }
  }
  bool all() {
    bool every = true;
    for (std::int64_t j = 0; j < f_.problem.keys; ++j) every = (!seen(j) || refused(j)) && every;
    return every;
  }
  bool too_near = false;

 private:
  bool refused(std::int64_t j) {
    Real largest = 0;
    for (int c = 0; c < 2; ++c) {
      const Real n = f_.row.visible, o = sum_[c] / n, without = (sum_[c] - value(j, c)) / (n - 1);
      const Real both = division_ * (fabsl(o) + fabsl(without));
      const Real accepted = both + out_.unit() * (fabsl(o) + fabsl(without) + both);
      largest = std::max(largest, fabsl(o - without) / accepted);
    }
    too_near = too_near || fabsl(largest - 1) < kTooNear;
    return largest > 1;
  }
  bool seen(std::int64_t j) const { return f_.row.score[static_cast<std::size_t>(j)] != -INFINITY; }
  Real value(std::int64_t j, int c) const { return f_.values[static_cast<std::size_t>(j * 3 + c)]; }

  const test::RowFixture& f_;
  const Format& out_;
  Real division_, sum_[2] = {};
};

TEST_CASE("single keys of long rows of equal scores are (26a) and (43), read literally") {
  constexpr const char* kWide = R"({"base":"bf16-flash","out":{"dtype":"fp32"}})";
  for (const auto& [name, level] : {std::pair("bf16-flash", 3.0), std::pair(kWide, 60000.0)}) {
    const Contract contract = read_contract(name, Spec{});
    int refused = 0, not_refused = 0;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      const test::RowFixture f = equal_keys(seed, level);
      const RowBound bound = f.bound(contract, true);
      REQUIRE(bound.not_applicable.empty());
      LiteralKeys literal(f, format_of(contract.out.dtype), bound.out[1] / f.row.out[1].hi);
      const bool all = literal.all();
      if (literal.too_near) continue;
      CAPTURE(name, seed, all);
      CHECK((bound.power.missing_block == 1) == all);
      if (all) {
        const double mass = bound.power.missing_mass_out * static_cast<double>(f.row.visible);
        CHECK(std::abs(mass - 1) < 0x1p-40);
      }
      ++(all ? refused : not_refused);
    }
    CHECK(refused > 20);
    CHECK(not_refused > 20);
  }
}
