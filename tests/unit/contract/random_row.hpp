// Random rows of every kind the contract distinguishes, from a seed.
#pragma once

#include <random>

#include "tests/unit/contract/row_fixture.hpp"

namespace ringproof::test {

/// Which features a row has; every combination occurs for some seed.
struct RandomRowOptions {
  std::int64_t most_keys = 40;
  bool with_sink = true, with_softcap = true, with_bias = true, with_mask = true;
};

inline RowFixture random_row(std::uint64_t seed, const RandomRowOptions& options = {}) {
  std::mt19937_64 generator(seed);
  const auto pick = [&](int choices) {
    return static_cast<int>(generator() % static_cast<unsigned>(choices));
  };
  std::normal_distribution<double> normal;
  const std::int64_t n =
      1 + static_cast<std::int64_t>(generator() % static_cast<std::uint64_t>(options.most_keys));
  const std::int64_t dims[] = {1, 16, 64};
  RowFixture f(n, dims[pick(3)], 1 + pick(9));
  const double sharpness[] = {0, 1, 4, 30};
  const double sharp = sharpness[pick(4)], level = pick(4) == 0 ? 1000 * normal(generator) : 0;
  const double value_level = pick(3) == 0 ? 8 : 0;
  const double tiny = pick(8) == 0 ? 0x1p-130 : 1;
  if (pick(2) == 0) f.problem.spec.scale = 0.25;
  for (std::size_t j = 0; j < static_cast<std::size_t>(n); ++j) {
    f.row.dot[j] = sharp == 0 ? 0 : level + sharp * normal(generator);
    f.row.abs_dot[j] =
        sharp == 0 ? 0 : std::fabs(f.row.dot[j]) * (1 + std::fabs(normal(generator)));
    if (options.with_mask && pick(3) == 0 && j > 0) f.hide(static_cast<std::int64_t>(j));
  }
  for (double& v : f.values) v = tiny * (value_level + normal(generator));
  if (pick(6) == 0) {  // integers, for exact rows
    for (double& v : f.values) v = std::round(3 * normal(generator));
  }
  const auto all = static_cast<std::size_t>(n);
  if (options.with_softcap && pick(4) == 0) {
    f.problem.spec.softcap = 5;
    for (const double x : f.row.dot) f.row.capped.push_back(5 * std::tanh(x / 5));
  }
  if (options.with_bias && pick(4) == 0) {
    for (std::size_t j = 0; j < all; ++j)
      f.row.bias.push_back(pick(9) == 0 ? -1e4 : normal(generator));
  }
  if (options.with_bias && pick(4) == 0) {
    for (std::size_t j = 0; j < all; ++j)
      f.row.alibi.push_back(-0.5 * static_cast<double>(n - 1 - static_cast<std::int64_t>(j)));
  }
  if (options.with_sink && pick(4) == 0) {
    f.row.has_sink = true;
    f.row.sink = pick(2) == 0 ? normal(generator) : 500 * normal(generator);
  }
  if (pick(2) == 0) f.row.score_radius = 0x1p-60;
  f.finish();
  return f;
}

}  // namespace ringproof::test
