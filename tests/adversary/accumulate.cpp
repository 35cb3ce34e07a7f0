// Accumulator models on the tape (accumulate.hpp).
#include "tests/adversary/accumulate.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

namespace ringproof::adversary {
namespace {

using Model = oracle::Accumulator::Model;

Traced add(Tape& tape, Sum carry, Traced term, double unit, double underflow) {
  // The first term is copied, not added to zero.
  return carry.empty() ? term : tape.round(carry.value + term, unit, underflow);
}

Sum one_after_the_other(Tape& tape, double unit, double underflow, const std::vector<Term>& terms,
                        Sum carry) {
  for (const Term& term : terms) carry.value = add(tape, carry, term.value, unit, underflow);
  return carry;
}

/// Leaves of `leaf` terms in sequence, then neighbours in pairs: height ceil(log2(number of
/// leaves)).
Sum pairwise(Tape& tape, const oracle::Accumulator& model, double underflow,
             const std::vector<Term>& terms) {
  std::vector<Traced> level;
  const std::size_t leaf = static_cast<std::size_t>(std::max<std::int64_t>(1, model.leaf));
  for (std::size_t first = 0; first < terms.size(); first += leaf) {
    const std::size_t last = std::min(terms.size(), first + leaf);
    const std::vector<Term> part(terms.begin() + static_cast<std::ptrdiff_t>(first),
                                 terms.begin() + static_cast<std::ptrdiff_t>(last));
    level.push_back(one_after_the_other(tape, model.u, underflow, part, {}).value);
  }
  while (level.size() > 1) {
    std::vector<Traced> next;
    for (std::size_t k = 0; k + 1 < level.size(); k += 2)
      next.push_back(tape.round(level[k] + level[k + 1], model.u, underflow));
    if (level.size() % 2 == 1) next.push_back(level.back());
    level = std::move(next);
  }
  return level.empty() ? Sum{} : Sum{level.front()};
}

/// Calls work(terms of one group) for consecutive terms with equal place / size.
template <class Work>
void for_each_group(const std::vector<Term>& terms, std::int64_t size, Work&& work) {
  for (std::size_t first = 0, last = 0; first < terms.size(); first = last) {
    while (last < terms.size() && terms[last].place / size == terms[first].place / size) ++last;
    work(std::vector<Term>(terms.begin() + static_cast<std::ptrdiff_t>(first),
                           terms.begin() + static_cast<std::ptrdiff_t>(last)));
  }
}

/// (3): one step errs by at most rho times the absolute values of its addends, the carry included.
Sum truncating(Tape& tape, const oracle::Accumulator& model, double underflow,
               const std::vector<Term>& terms, Sum carry) {
  const double addends = static_cast<double>(model.b + (model.neab < 0 ? 1 : 0));
  const double rho = 0x1p-23 + std::ldexp(addends, static_cast<int>(-23 - model.neab));
  for_each_group(terms, model.b, [&](const std::vector<Term>& step) {
    double size = carry.empty() ? 0 : std::fabs(carry.value.value());
    for (const Term& term : step) {
      size += std::fabs(term.value.value());
      carry.value = carry.empty() ? term.value : carry.value + term.value;
    }
    if (size > 0) carry.value = tape.shift(carry.value, rho * size + underflow);
  });
  return carry;
}

}  // namespace

double product_unit(const oracle::Accumulator& model) {
  switch (model.model) {
    case Model::any_order:
    case Model::tree:
      return model.products_rounded ? model.u : 0;
    case Model::blocked:
      return product_unit(model.of.at(0));
    default:
      return 0;
  }
}

Sum accumulate(Tape& tape, const oracle::Accumulator& model, double underflow,
               const std::vector<Term>& terms, Sum carry) {
  switch (model.model) {
    case Model::any_order:
      return one_after_the_other(tape, model.u, underflow, terms, carry);
    case Model::tree:
      assert(carry.empty());
      return pairwise(tape, model, underflow, terms);
    case Model::mma:
      return truncating(tape, model, underflow, terms, carry);
    case Model::blocked:
      for_each_group(terms, model.block, [&](const std::vector<Term>& leaf) {
        const Sum sum = accumulate(tape, model.of.at(0), underflow, leaf, {});
        carry.value = add(tape, carry, sum.value, model.u, underflow);
      });
      return carry;
    case Model::max:
      break;
  }
  assert(!"a kernel has one accumulator, not the maximum of several");
  return {};
}

std::int64_t tile_unit(const oracle::Accumulator& model) {
  switch (model.model) {
    case Model::mma:
      return model.b;
    case Model::blocked:
      return std::lcm(model.block, tile_unit(model.of.at(0)));
    default:
      return 1;
  }
}

}  // namespace ringproof::adversary
