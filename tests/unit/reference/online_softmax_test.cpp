// The row state (m, l, o) in exact arithmetic: no check here has a tolerance.
#include "reference/online_softmax.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "tests/support/property.hpp"
#include "tests/unit/reference/exact.hpp"

using namespace ringproof;
using namespace ringproof::reference;
using test::Exact;
using test::Rational;

namespace {

/// One query's keys: a score (minus infinity: invisible) and a value of two components each.
struct Key {
  std::optional<int> score;  // absent: invisible
  int first = 0, second = 0;
};
using Keys = std::vector<Key>;

std::vector<Exact> scores_of(const Keys& keys) {
  std::vector<Exact> scores;
  for (const Key& key : keys) {
    scores.push_back(key.score ? Exact(*key.score) : Exact::minus_infinity());
  }
  return scores;
}

std::vector<Exact> values_of(const Keys& keys) {
  std::vector<Exact> values;
  for (const Key& key : keys) {
    values.push_back(Exact(key.first));
    values.push_back(Exact(key.second));
  }
  return values;
}

void absorb_keys(RowState<Exact>& state, const Keys& keys) {
  absorb(state, scores_of(keys), values_of(keys));
}

RowState<Exact> state_of(const Keys& keys) {
  RowState<Exact> state(2);
  absorb_keys(state, keys);
  return state;
}

/// The sums of the definition, with no maximum: sum 2^s and sum 2^s v.
struct DenseSums {
  Rational l = 0, first = 0, second = 0;
};
DenseSums dense_sums(const Keys& keys) {
  DenseSums sums;
  for (const Key& key : keys) {
    if (!key.score) continue;
    const Rational weight = test::power_of_two(Rational(*key.score));
    sums.l += weight;
    sums.first += weight * key.first;
    sums.second += weight * key.second;
  }
  return sums;
}

/// The state stands for sums in units of 2^m; is it, exactly, those of `keys`?
bool equals_dense(const RowState<Exact>& state, const Keys& keys) {
  const DenseSums sums = dense_sums(keys);
  if (is_empty(state)) {
    return sums.l == 0 && state.o[0] == Exact(0) && is_minus_infinity(state.m);
  }
  const Rational unit = test::power_of_two(state.m.rational());
  return state.l.rational() * unit == sums.l && state.o[0].rational() * unit == sums.first &&
         state.o[1].rational() * unit == sums.second;
}

bool equal(const RowState<Exact>& a, const RowState<Exact>& b) {
  return a.m == b.m && a.l == b.l && a.o == b.o;
}

rc::Gen<Keys> some_keys() {
  const auto score = rc::gen::maybe(rc::gen::inRange(-12, 13));
  const auto value = rc::gen::inRange(-9, 10);
  return rc::gen::scale(
      0.3,
      rc::gen::container<Keys>(rc::gen::map(
          rc::gen::tuple(score, value, value), [](const std::tuple<rc::Maybe<int>, int, int>& key) {
            const auto& [s, first, second] = key;
            return Key{s ? std::optional<int>(*s) : std::nullopt, first, second};
          })));
}

}  // namespace

namespace rc {
template <>
struct Arbitrary<Key> {
  static Gen<Key> arbitrary() {
    return gen::map(some_keys(), [](const Keys& keys) { return keys.empty() ? Key{} : keys[0]; });
  }
};
}  // namespace rc

TEST_CASE("C3: after every prefix the state equals the dense sums of that prefix, exactly") {
  test::property("state == dense sums at every prefix, keys absorbed in blocks of any size", [] {
    const Keys keys = *some_keys();
    const auto block = static_cast<std::size_t>(*rc::gen::inRange(1, 6));
    RowState<Exact> state(2);
    RC_ASSERT(equals_dense(state, {}));
    for (std::size_t first = 0; first < keys.size(); first += block) {
      const std::size_t last = std::min(keys.size(), first + block);
      absorb_keys(state, Keys(keys.begin() + first, keys.begin() + last));
      RC_ASSERT(equals_dense(state, Keys(keys.begin(), keys.begin() + last)));
    }
  });
}

TEST_CASE("C4: the empty state is neutral: absorbing nothing visible changes no state") {
  test::property("absorb(invisible) == identity == merge with the empty state", [] {
    const Keys keys = *some_keys();
    const RowState<Exact> before = state_of(keys);
    RowState<Exact> state = before;
    absorb_keys(state, Keys(3));  // three invisible keys
    absorb_keys(state, {});
    RC_ASSERT(equal(state, before));
    RC_ASSERT(equal(merge(state, RowState<Exact>(2)), before));
    RC_ASSERT(equal(merge(RowState<Exact>(2), state), before));
  });
}

TEST_CASE("C4: alpha is 0 on the first visible block: nothing of the empty state survives") {
  CHECK(Number<float>::exponential(Number<float>::minus_infinity() - 2.0f) == 0.0f);
  CHECK(Number<double>::exponential(Number<double>::minus_infinity() - 2.0) == 0.0);
  RowState<double> state(1);
  absorb(state, std::vector<double>{2.0}, std::vector<double>{5.0});
  CHECK(state.m == 2.0);
  CHECK(state.l == 1.0);
  CHECK(state.o[0] == 5.0);
}

TEST_CASE(
    "C4: erratum: as listed, a block without a visible key makes the state NaN; guarded it does "
    "not") {
  const double hidden = Number<double>::minus_infinity();
  const std::vector<double> hidden_scores{hidden, hidden}, scores{1.0, hidden};
  const std::vector<double> values{7.0, 8.0};

  RowState<double> listed(1), guarded(1);
  absorb_as_listed(listed, hidden_scores, values);
  absorb(guarded, hidden_scores, values);
  CHECK(std::isnan(listed.l));  // (-inf) - (-inf)
  CHECK(is_empty(guarded));

  // No later block repairs it.
  absorb_as_listed(listed, scores, values);
  absorb(guarded, scores, values);
  CHECK(std::isnan(listed.l));
  CHECK(std::isnan(listed.o[0]));
  CHECK(guarded.l == 1.0);
  CHECK(guarded.o[0] == 7.0);
}

TEST_CASE("C4: where every block shows a key both forms agree exactly") {
  test::property("absorb == absorb_as_listed", [] {
    RowState<Exact> listed(2), guarded(2);
    for (Keys keys : *rc::gen::scale(0.3, rc::gen::container<std::vector<Keys>>(some_keys()))) {
      keys.push_back({3, 1, 2});  // a visible one in each block
      absorb_keys(guarded, keys);
      absorb_as_listed(listed, scores_of(keys), values_of(keys));
    }
    RC_ASSERT(equal(listed, guarded));
  });
}

TEST_CASE("C4: values of invisible keys are not read: NaN and infinity there change nothing") {
  const double hidden = Number<double>::minus_infinity();
  const double infinity = std::numeric_limits<double>::infinity();
  RowState<double> state(1);
  absorb(state, std::vector<double>{1.0, hidden, 2.0, hidden},
         std::vector<double>{3.0, std::nan(""), 4.0, infinity});
  RowState<double> clean(1);
  absorb(clean, std::vector<double>{1.0, hidden, 2.0, hidden},
         std::vector<double>{3.0, 0.0, 4.0, 0.0});
  CHECK(state.l == clean.l);
  CHECK(state.o == clean.o);
}

TEST_CASE("C10: the worked example gives every figure of the document") {
  // Three decimals as printed there; the demo certifies the same figures with the judge.
  const auto shown = [](double x) { return std::round(x * 1000) / 1000; };
  RowState<double> state(1);
  absorb(state, std::vector<double>{1, 2}, std::vector<double>{1, 2});
  CHECK(state.m == 2);
  CHECK(shown(state.l) == 1.368);
  CHECK(shown(state.o[0]) == 2.368);
  CHECK(shown(Number<double>::exponential(2.0 - 3.0)) == 0.368);  // alpha of step B
  CHECK(shown(Number<double>::exponential(0.0 - 3.0)) == 0.050);
  absorb(state, std::vector<double>{3, 0}, std::vector<double>{3, 4});
  CHECK(state.m == 3);
  CHECK(shown(state.l) == 1.553);
  CHECK(shown(state.o[0]) == 4.070);
  CHECK(shown(0.368 * 2.368 + 3.200) == 4.071);  // what the rounded factors would give
  std::vector<double> out(1);
  finish<double>(state, 0.0, out);
  CHECK(shown(out[0]) == 2.621);
}

TEST_CASE(
    "C11: merging states is associative and commutative, exactly, with the empty state neutral") {
  test::property("(a + b) + c == a + (b + c) and a + b == b + a", [] {
    const RowState<Exact> a = state_of(*some_keys()), b = state_of(*some_keys()),
                          c = state_of(*some_keys());
    RC_ASSERT(equal(merge(merge(a, b), c), merge(a, merge(b, c))));
    RC_ASSERT(equal(merge(a, b), merge(b, a)));
  });
}

TEST_CASE("C11: every order of the blocks gives the same state, bit for bit, in exact arithmetic") {
  test::property("all permutations of up to five blocks agree", [] {
    auto blocks = *rc::gen::resize(5, rc::gen::container<std::vector<Keys>>(some_keys()));
    blocks.resize(std::min<std::size_t>(blocks.size(), 5));
    std::vector<std::size_t> order(blocks.size());
    for (std::size_t n = 0; n < order.size(); ++n) order[n] = n;
    std::optional<RowState<Exact>> first;
    do {
      RowState<Exact> state(2);
      for (const std::size_t n : order) absorb_keys(state, blocks[n]);
      if (!first) first = state;
      RC_ASSERT(equal(state, *first));
    } while (std::next_permutation(order.begin(), order.end()));
  });
}

TEST_CASE("C11: erratum: in floating point the order of the blocks does change the bits") {
  // Two blocks are rescaled in one order and none in the other; every rescaling rounds.
  std::vector<std::pair<float, float>> keys{
      {0.1f, 1.1f}, {0.37f, -2.3f}, {0.9f, 0.7f}, {1.7f, 3.9f}, {2.3f, -1.3f}};
  std::set<float> results;
  do {
    RowState<float> state(1);
    std::vector<float> out(1);
    for (const auto& [score, value] : keys) absorb(state, std::vector{score}, std::vector{value});
    finish<float>(state, 0.0f, out);
    results.insert(out[0]);
  } while (std::next_permutation(keys.begin(), keys.end()));
  CHECK(results.size() > 1);
}

TEST_CASE("C16: tiles inside a rank and blocks between ranks join by the same merge, exactly") {
  test::property("merge of tile states == one absorb of all keys", [] {
    const Keys keys = *some_keys();
    const auto tile = static_cast<std::size_t>(*rc::gen::inRange(1, 5));
    RowState<Exact> tiled(2);
    for (std::size_t first = 0; first < keys.size(); first += tile) {
      const std::size_t last = std::min(keys.size(), first + tile);
      tiled = merge(tiled, state_of(Keys(keys.begin() + first, keys.begin() + last)));
    }
    RC_ASSERT(equal(tiled, state_of(keys)));
  });
}

TEST_CASE(
    "C21: un-normalised states merge exactly; normalised partials do so only with their LSE") {
  test::property("merge by LSE weights == dense over both halves", [] {
    Keys keys = *some_keys();
    Keys other = *some_keys();
    keys.push_back({2, 1, -1});
    other.push_back({-1, 3, 5});
    const auto partial = [](const Keys& some) {
      const RowState<Exact> state = state_of(some);
      NormalizedPartial<Exact> result{std::vector<Exact>(2), log_sum_exp(state)};
      finish<Exact>(state, Exact(0), result.out);
      return result;
    };
    const auto joined = merge(partial(keys), partial(other));
    keys.insert(keys.end(), other.begin(), other.end());
    const auto expected = partial(keys);
    RC_ASSERT(joined.out == expected.out);
    RC_ASSERT(joined.lse == expected.lse);
    // A partial that saw nothing has no weight.
    NormalizedPartial<Exact> nothing{std::vector<Exact>(2), Exact::minus_infinity()};
    RC_ASSERT(merge(joined, nothing).out == expected.out);
    RC_ASSERT(merge(nothing, joined).out == expected.out);
  });
}

TEST_CASE(
    "C24: a maximum that arrives late corrects the provisional answer, it does not break it") {
  test::property("ascending maxima, one key a block, the largest last", [] {
    Keys keys = *some_keys();
    std::stable_sort(keys.begin(), keys.end(),
                     [](const Key& a, const Key& b) { return a.score < b.score; });
    keys.insert(keys.begin(), Key{});  // a first block without a visible key
    keys.push_back({40, 7, -7});       // dwarfs all that came before
    RowState<Exact> state(2);
    std::vector<Exact> provisional(2);
    Keys prefix;
    for (const Key& key : keys) {
      absorb_keys(state, {key});
      prefix.push_back(key);
      finish<Exact>(state, Exact(0), provisional);
      const DenseSums sums = dense_sums(prefix);  // right for the keys seen so far, at every step
      if (sums.l != 0) RC_ASSERT(provisional[0].rational() == sums.first / sums.l);
    }
    RC_ASSERT(state.m == Exact(40));
    RC_ASSERT(equals_dense(state, keys));
  });
}

TEST_CASE("C25: without the running maximum a weight overflows; with it none does") {
  CHECK(std::isinf(Number<float>::exponential(89.0f)));
  CHECK(std::isinf(Number<double>::exponential(710.0)));
  const float largest = std::numeric_limits<float>::max();
  for (const float top : {89.0f, 1e5f, 1e30f, largest}) {
    for (const float step : {0.0f, 1.0f, 50.0f}) {
      RowState<float> state(1);
      for (int n = 4; n >= 0; --n) {
        const float score = top - step * static_cast<float>(n);
        absorb(state, std::vector<float>{score, -largest}, std::vector<float>{2.0f, 4.0f});
        CHECK(state.l >= 1);
        CHECK(state.l <= 10);
        CHECK(std::isfinite(state.o[0]));
      }
      std::vector<float> out(1);
      finish<float>(state, 0.0f, out);
      CHECK(out[0] == 2.0f);
      CHECK(std::isfinite(log_sum_exp(state)));
    }
  }
  // What the maximum cannot help: o itself, with values near the type's limit (assumption H1).
  RowState<float> state(1);
  absorb(state, std::vector<float>{0, 0}, std::vector<float>{largest, largest});
  CHECK(std::isinf(state.o[0]));
}
