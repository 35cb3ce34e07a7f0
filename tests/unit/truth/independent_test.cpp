// A dense softmax written a second time, on binary floating-point numbers of 60 decimal digits,
// with its own score rule and another order of summation (keys from the last to the first,
// dimensions in pairs): it must fall inside the radius of the double-double rows.
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <optional>

#include "oracle/truth/truth.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/truth/families.hpp"

namespace ringproof::test {
namespace {

using namespace oracle;
using Digits60 = boost::multiprecision::number<boost::multiprecision::cpp_bin_float<60>,
                                               boost::multiprecision::et_off>;

struct Answer {
  std::vector<Digits60> out;
  Digits60 lse;
};

/// Sum of terms [first, last) by halves.
template <class Term>
Digits60 pairwise(std::int64_t first, std::int64_t last, const Term& term) {
  if (last - first == 1) return term(first);
  const std::int64_t middle = first + (last - first) / 2;
  return pairwise(middle, last, term) + pairwise(first, middle, term);
}

/// The score of a visible key, straight from the definition.
Digits60 score(const Problem& p, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  const std::int64_t kv = h / (p.heads / p.kv_heads);
  const Digits60 dot = pairwise(0, p.head_dim, [&](std::int64_t t) {
    return Digits60(p.q.at(b, h, i, t)) * p.q_scale.at(b, h, i, t) * p.k.at(b, kv, j, t) *
           p.k_scale.at(b, kv, j, t);
  });
  Digits60 s =
      p.spec.scale ? Digits60(dot * *p.spec.scale) : Digits60(dot / sqrt(Digits60(p.head_dim)));
  if (p.spec.softcap > 0) s = p.spec.softcap * tanh(Digits60(s / p.spec.softcap));
  if (p.bias) s += p.bias.at(b, h, i, j);
  if (p.alibi_slopes) {
    const auto difference = p.position_q[static_cast<std::size_t>(b * p.queries + i)] -
                            p.position_k[static_cast<std::size_t>(b * p.keys + j)];
    s -= Digits60(p.alibi_slopes.at(b, h, 0, 0)) * std::abs(difference);
  }
  return s;
}

std::optional<Answer> answer(const Problem& p, std::int64_t b, std::int64_t h, std::int64_t i) {
  const std::int64_t kv = h / (p.heads / p.kv_heads);
  std::vector<std::pair<std::int64_t, Digits60>> scores;
  for (std::int64_t j = p.keys - 1; j >= 0; --j) {
    if (visible(p, b, h, i, j)) scores.emplace_back(j, score(p, b, h, i, j));
  }
  if (scores.empty()) return std::nullopt;
  const Digits60 shift = scores.front().second;  // any shift will do
  Digits60 denominator =
      p.sinks ? Digits60(exp(Digits60(p.sinks.at(0, h, 0, 0) - shift))) : Digits60(0);
  Answer result{std::vector<Digits60>(static_cast<std::size_t>(p.value_dim), Digits60(0)), {}};
  for (const auto& [j, s] : scores) {
    const Digits60 weight = exp(Digits60(s - shift));
    denominator += weight;
    for (std::int64_t c = 0; c < p.value_dim; ++c) {
      result.out[static_cast<std::size_t>(c)] +=
          weight * p.v.at(b, kv, j, c) * p.v_scale.at(b, kv, j, c);
    }
  }
  for (Digits60& element : result.out) element /= denominator;
  result.lse = shift + log(denominator);
  return result;
}

bool holds(const Certified& certified, const Digits60& value) {
  const Digits60 distance = abs(Digits60(value - certified.hi - certified.lo));
  return distance <=
         Digits60(certified.radius) + abs(value) * Digits60("1e-52") + Digits60("1e-320");
}

TEST_CASE("an independent dense softmax of 60 digits falls inside the radius") {
  // Families whose scores keep 60 digits meaningful.
  constexpr Family kTame[] = {Family::randn,           Family::equal_scores,
                              Family::value_ones,      Family::ascending,
                              Family::descending,      Family::sharp,
                              Family::dominant_key,    Family::unequal_mass,
                              Family::repeated_maxima, Family::huge_scores_tiny_gaps,
                              Family::dot_cancels,     Family::value_cancels,
                              Family::exponent_spread};
  std::mt19937_64 random(31);
  long elements = 0, rows = 0;
  for (std::uint64_t seed = 1; seed <= 52; ++seed) {
    const Family family = kTame[seed % std::size(kTame)];
    Shape shape = random_shape(random);
    shape.head_dim = std::min<std::int64_t>(shape.head_dim, 20);
    shape.keys = std::min<std::int64_t>(shape.keys, 60);
    shape.queries = std::min<std::int64_t>(shape.queries, 4);
    shape.finite_mask_bias = shape.poison = false;
    INFO(describe(family, shape, seed));
    const OwnedProblem owned = make_problem(family, shape, seed);
    const Problem& p = owned.problem;
    for (std::int64_t b = 0; b < p.batches; ++b) {
      for (std::int64_t h = 0; h < p.heads; ++h) {
        const HeadTruth head(p, b, p.kv_head(h),
                             seed % 2 == 0 ? Precision::fast : Precision::tight);
        for (std::int64_t i = 0; i < p.queries; ++i) {
          const HeadTruth::RowId id{h, i};
          RowTruth row;
          head.rows({&id, 1}, &row);
          const std::optional<Answer> expected = answer(p, b, h, i);
          if (!expected || !std::isfinite(row.lse.radius)) continue;
          ++rows;
          CHECK(holds(row.lse, expected->lse));
          for (std::size_t c = 0; c < row.out.size(); ++c) {
            CHECK(holds(row.out[c], expected->out[c]));
            ++elements;
          }
        }
      }
    }
  }
  CHECK(rows > 150);
  CHECK(elements > 1500);
}

}  // namespace
}  // namespace ringproof::test
