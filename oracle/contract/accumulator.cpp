// Log budgets of sums (accumulator.hpp).
#include "oracle/contract/accumulator.hpp"

#include <algorithm>
#include <cmath>

namespace ringproof::oracle {

namespace {

using Model = Accumulator::Model;

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Tiles of b terms that a run of r consecutive terms touches: at a known start, or wherever it
/// starts.
std::int64_t tiles_of_run(std::int64_t r, std::int64_t b, bool starts_a_tile) {
  return starts_a_tile ? divide_up(r, b) : 1 + divide_up(r - 1, b);
}

double gamma_any_order(const Accumulator& accumulator, std::int64_t n) {
  return static_cast<double>(n - 1 + accumulator.products_rounded) * hat(accumulator.u);
}

double gamma_tree(const Accumulator& accumulator, std::int64_t n) {
  const std::int64_t leaves = divide_up(n, accumulator.leaf);
  std::int64_t levels = 0;
  while ((std::int64_t{1} << levels) < leaves) ++levels;
  const std::int64_t leaf = std::min(n, accumulator.leaf) - 1;
  return static_cast<double>(leaf + levels + accumulator.products_rounded) * hat(accumulator.u);
}

double gamma_blocked(const Accumulator& accumulator, const Terms& terms, std::int64_t n) {  // (2)
  // The terms of one block may lie anywhere in it, so its steps are those of the whole block, but
  // never more than its terms.
  const bool dense = terms.runs.size() == 1 && terms.first_at_zero && terms.cuts == 0;
  Terms block = Terms::contiguous(std::min(n, accumulator.block));
  if (!dense) block.runs = {accumulator.block};
  return gamma(accumulator.of.front(), block) +
         static_cast<double>(terms.steps(accumulator.block)) * hat(accumulator.u);
}

/// The share of sum|addends| that one step may lose: alignment cuts at 2^-(23 + neab) of the
/// largest addend, the sum is cut at 24 bits. Without extra bits the largest addend may be cut as
/// well.
double mma_rho(const Accumulator& accumulator) {  // (3)
  const auto cut = static_cast<double>(accumulator.b + (accumulator.neab < 0));
  return 0x1p-23 + cut * std::ldexp(1.0, -23 - static_cast<int>(accumulator.neab));
}

}  // namespace

double hat(double u) { return -std::log1p(-u); }

double sum_of_hats(const std::vector<double>& relative_errors) {
  double sum = 0;
  for (const double u : relative_errors) sum += hat(u);
  return sum;
}

Terms Terms::contiguous(std::int64_t count) {
  Terms terms;
  terms.count = count;
  terms.runs = {count};
  return terms;
}

std::int64_t Terms::steps(std::int64_t b) const {
  std::int64_t total = cuts;
  for (std::size_t k = 0; k < runs.size(); ++k) {
    total += dealt_to > 1 ? std::min(runs[k], 2 * dealt_to + divide_up(runs[k], b))
                          : tiles_of_run(runs[k], b, k == 0 && first_at_zero);
  }
  return std::min(count, total);
}

double gamma(const Accumulator& accumulator, const Terms& terms) {
  const std::int64_t n = std::max<std::int64_t>(1, terms.count);
  switch (accumulator.model) {
    case Model::any_order:
      return gamma_any_order(accumulator, n);
    case Model::tree:
      return gamma_tree(accumulator, n);
    case Model::blocked:
      return gamma_blocked(accumulator, terms, n);
    case Model::mma:
      return static_cast<double>(terms.steps(accumulator.b)) * hat(mma_rho(accumulator));
    case Model::max:
      break;
  }
  double largest = 0;
  for (const auto& alternative : accumulator.of) {
    largest = std::max(largest, gamma(alternative, terms));
  }
  return largest;
}

bool exact_where_representable(const Accumulator& accumulator) {
  if (accumulator.model == Model::mma) return accumulator.neab >= 0;
  return std::all_of(accumulator.of.begin(), accumulator.of.end(), exact_where_representable);
}

int accumulator_digits(const Accumulator& accumulator) {
  const bool has_u = accumulator.model != Model::mma && accumulator.model != Model::max;
  int digits = accumulator.model == Model::mma ? 24 : 53;
  if (has_u && accumulator.u > 0) {
    digits = std::min(digits, static_cast<int>(std::floor(-std::log2(accumulator.u))));
  }
  for (const auto& inner : accumulator.of) digits = std::min(digits, accumulator_digits(inner));
  return digits;
}

}  // namespace ringproof::oracle
