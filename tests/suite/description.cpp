// Drawing descriptions (description.hpp).
#include "tests/suite/description.hpp"

#include <algorithm>

namespace ringproof::suite {
namespace {

rc::Gen<int> from_to(int low, int high) { return rc::gen::inRange(low, high + 1); }

/// 0 in two of three cases, else one of 1 .. count.
rc::Gen<int> seldom(int count) {
  return rc::gen::map(rc::gen::inRange(0, 3 * count),
                      [count](int n) { return std::max(0, n - 2 * count + 1); });
}

/// -1 in two of three cases, else 0 .. most.
rc::Gen<int> limit(int most) {
  return rc::gen::map(seldom(most + 1), [](int n) { return n - 1; });
}

}  // namespace

rc::Gen<Description> descriptions(const Sizes& sizes) {
  using D = Description;
  const int widths = static_cast<int>(sizes.head_dims.size()) - 1;
  const rc::Gen<D> drawn = rc::gen::build<D>(
      rc::gen::set(&D::batches, from_to(1, 2)), rc::gen::set(&D::kv_heads, from_to(1, 2)),
      rc::gen::set(&D::group, from_to(1, 3)), rc::gen::set(&D::queries, from_to(1, 16)),
      rc::gen::set(&D::keys, from_to(1, sizes.most_keys)),
      rc::gen::set(&D::head_dim, from_to(0, widths)),
      rc::gen::set(&D::value_dim, from_to(0, widths)), rc::gen::set(&D::ranks, from_to(1, 7)),
      rc::gen::set(&D::ring, from_to(0, 3)), rc::gen::set(&D::order, from_to(0, 1)),
      rc::gen::set(&D::causal, from_to(0, 2)), rc::gen::set(&D::window_left, limit(9)),
      rc::gen::set(&D::window_right, limit(9)), rc::gen::set(&D::lengths, seldom(1)),
      rc::gen::set(&D::mask, seldom(kScoreShapes - 1)), rc::gen::set(&D::rows, seldom(3)),
      rc::gen::set(&D::bias, seldom(kScoreShapes - 1)), rc::gen::set(&D::alibi, seldom(1)),
      rc::gen::set(&D::softcap, seldom(2)), rc::gen::set(&D::sinks, seldom(1)),
      rc::gen::set(&D::scale, seldom(2)), rc::gen::set(&D::empty, seldom(1)),
      rc::gen::set(&D::axes, seldom(2)), rc::gen::set(&D::gap, seldom(3)),
      rc::gen::set(&D::at, from_to(0, 999)),
      rc::gen::set(&D::values, from_to(0, count_of_values - 1)),
      rc::gen::set(&D::seed, rc::gen::noShrink(rc::gen::arbitrary<std::uint32_t>())));
  return rc::gen::map(drawn, [sizes](Description description) {
    restrict(description, sizes);
    return description;
  });
}

void restrict(Description& d, const Sizes& sizes) {
  const Features can = sizes.support;
  const int widths = static_cast<int>(sizes.head_dims.size()) - 1;
  d.head_dim = std::clamp(d.head_dim, 0, widths);
  d.value_dim = can.has(Feature::value_dim) ? std::clamp(d.value_dim, 0, widths) : d.head_dim;
  if (!can.has(Feature::batches)) d.batches = 1;
  if (!can.has(Feature::grouped_heads)) d.group = 1;
  if (!can.has(Feature::cross)) d.queries = d.keys = std::max(d.queries, d.keys);
  if (d.axes == 2 && !can.has(Feature::nhd)) d.axes = 0;
  if (d.axes == 1 && !can.has(Feature::bnhd)) d.axes = 0;
  if (!can.has(Feature::strides)) d.gap = 0;
  if (d.causal == 1 && !can.has(Feature::causal_top_left)) d.causal = 0;
  if (d.causal == 2 && !can.has(Feature::causal_bottom_right)) d.causal = 0;
  if (!can.has(Feature::window)) d.window_left = d.window_right = -1;
  if (!can.has(Feature::key_lengths)) d.lengths = 0;
  if (!can.has(Feature::mask)) d.mask = 0;
  if (d.rows == 1 && !can.has(Feature::packed)) d.rows = 0;
  if (d.rows == 2 && !can.has(Feature::documents)) d.rows = 0;
  if (d.rows == 3 && !can.has(Feature::positions)) d.rows = 0;
  if (d.rows == 1 || d.axes == 2) d.batches = 1;  // packed rows and nhd have no batch axis
  if (!can.has(Feature::bias)) d.bias = 0;
  if (!can.has(Feature::alibi)) d.alibi = 0;
  if (!can.has(Feature::softcap)) d.softcap = 0;
  if (!can.has(Feature::sinks)) d.sinks = 0;
  if (!can.has(Feature::scale)) d.scale = 0;
  if (!can.has(Feature::empty_nan)) d.empty = 0;
  if (!can.has(Feature::ranks)) d.ranks = 1;
  if (d.ranks == 1) d.ring = d.order = 0;
  if (d.ring == 2 && !can.has(Feature::zigzag)) d.ring = 1;
  if (d.ring == 3 && !can.has(Feature::striped)) d.ring = 1;
  if (d.ring == 0 || !can.has(Feature::up)) d.order = 0;
}

}  // namespace ringproof::suite
