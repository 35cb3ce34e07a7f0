// (39a) (probable_sums.hpp).
#include "oracle/contract/probable_sums.hpp"

#include <algorithm>
#include <cmath>

namespace ringproof::oracle {

namespace {

using Model = Accumulator::Model;

/// So many digits that a sum of 2^20 terms loses nothing beside the inflation of every bound.
constexpr double kExact = 0x1p-53;

double largest_unit(const Accumulator& sum) {
  double largest = sum.model == Model::max || sum.model == Model::mma ? 0 : sum.u;
  for (const Accumulator& inner : sum.of) largest = std::max(largest, largest_unit(inner));
  return largest;
}

Accumulator exact_sum() {
  Accumulator sum;
  sum.model = Model::any_order;
  sum.u = kExact;
  return sum;
}

}  // namespace

bool rounds_to_nearest(const Accumulator& sum) {
  return sum.model != Model::mma && std::all_of(sum.of.begin(), sum.of.end(), rounds_to_nearest);
}

bool lists_sums(const Contract& c) {
  return c.partials.count == 1 && rounds_to_nearest(c.pv.acc) && rounds_to_nearest(c.l.acc);
}

Contract without_sums(const Contract& contract) {
  Contract exact = contract;
  exact.pv.acc = exact.l.acc = exact_sum();
  exact.pv.u = exact.l.u = kExact;
  return exact;
}

double path_roundings(const Accumulator& sum, const Terms& terms, double rescales) {
  const double unit = hat(largest_unit(sum));
  return rescales + (unit > 0 ? gamma(sum, terms) / unit : 0);
}

double probable_sum(double lambda, double u, double largest_budget, double roundings) {
  return lambda * hat(u) * std::exp(std::min(largest_budget, 700.0)) * std::sqrt(roundings);
}

bool mostly_equal(std::span<const double> addends) {
  // The only value that can be in the majority, by Boyer and Moore's vote; then it is counted.
  double candidate = 0;
  std::size_t votes = 0;
  for (const double x : addends) {
    if (votes == 0) candidate = x;
    votes += x == candidate ? 1 : std::size_t(-1);
  }
  const auto equal = std::count(addends.begin(), addends.end(), candidate);
  return 2 * static_cast<std::size_t>(equal) > addends.size();
}

}  // namespace ringproof::oracle
