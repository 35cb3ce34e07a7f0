// What a rule does to whole gradients, read literally: sums of two, and what is stored where.
#include <cmath>
#include <utility>

#include "oracle/contract/output_format.hpp"
#include "tests/unit/diagnose/literal_boxes.hpp"

namespace ringproof::test {
namespace {

/// A factor that is known up to its spread.
void spread(Real relative, LiteralBox& box) {
  for (std::size_t n = 0; n < box.value.size(); ++n) {
    box.bound[n] += relative * (std::fabs(box.value[n]) + box.bound[n]);
  }
}

/// What is stored at each key is that of another one, or zero.
void move(const std::function<std::int64_t(std::int64_t)>& from_key, std::int64_t keys,
          LiteralBox& box) {
  if (!from_key) return;
  const LiteralBox before = box;
  const std::size_t columns = box.value.size() / static_cast<std::size_t>(keys);
  for (std::size_t n = 0; n < box.value.size(); ++n) {
    const std::int64_t from = from_key(static_cast<std::int64_t>(n / columns));
    const std::size_t place = static_cast<std::size_t>(from) * columns + n % columns;
    box.value[n] = from < 0 ? 0 : before.value[place];
    box.bound[n] = from < 0 ? 0 : before.bound[place];
  }
}

}  // namespace

bool both_added(const oracle::GradientRule& rule) {
  return (rule.dv_in_dk != 0 || rule.dk_in_dv != 0) && rule.factor_k != 0 && rule.factor_v != 0;
}

void store_boxes(const oracle::Contract& contract, const oracle::GradientPairs& pairs,
                 const oracle::GradientRule& rule, LiteralBoxes& all) {
  spread(rule.spread_q, all.dq);
  spread(rule.spread_k, all.dk);
  spread(rule.spread_v, all.dv);
  if (rule.exchanged) std::swap(all.dk, all.dv);
  const LiteralBox dk = all.dk, dv = all.dv;
  const oracle::OutputRounding out = oracle::output_rounding(contract.out);
  const auto add = [&](Real times, const LiteralBox& other, LiteralBox& to) {
    for (std::size_t n = 0; times != 0 && n < to.value.size(); ++n) {
      const auto stored = [&](const LiteralBox& box) {  // either may have been stored before
        if (!both_added(rule)) return box.bound[n];
        return box.bound[n] + out.u * (std::fabs(box.value[n]) + box.bound[n]) + out.eta;
      };
      to.bound[n] = stored(to) + std::fabs(times) * stored(other);
      to.value[n] += times * other.value[n];
      to.bound[n] += 0x1p-52L * std::fabs(to.value[n]);
    }
  };
  add(rule.dv_in_dk, dv, all.dk);
  add(rule.dk_in_dv, dk, all.dv);
  move(rule.dk_from, pairs.keys, all.dk);
  move(rule.dv_from, pairs.keys, all.dv);
}

}  // namespace ringproof::test
