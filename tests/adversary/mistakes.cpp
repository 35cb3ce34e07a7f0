// What rules do to whole gradients (mistakes.hpp).
#include "tests/adversary/mistakes.hpp"

#include <algorithm>
#include <cmath>

#include "oracle/contract/output_format.hpp"

namespace ringproof::adversary {
namespace {

using oracle::GradientRule;

class Misplacement {
 public:
  Misplacement(Tape& tape, const oracle::Contract& contract, const Head& head,
               const GradientRule& rule, bool stored_before)
      : tape_(tape), c_(contract), head_(head), rule_(rule), stored_before_(stored_before) {}

  void run(TracedGradients& g) {
    all_times(g.dq, rule_.factor_q);
    all_times(g.dk, rule_.factor_k);
    all_times(g.dv, rule_.factor_v);
    all_times(g.dbias, rule_.factor_bias);
    g.dsinks = times(g.dsinks, rule_.factor_sinks);
    if (head_.head_dim == head_.value_dim) {
      if (rule_.exchanged) std::swap(g.dk, g.dv);
      const std::vector<Traced> dk = g.dk;
      add(g.dv, rule_.dv_in_dk, rule_.factor_k != 0, g.dk);
      add(dk, rule_.dk_in_dv, rule_.factor_v != 0, g.dv);
    }
    move(rule_.dk_from, head_.head_dim, g.dk);
    move(rule_.dv_from, head_.value_dim, g.dv);
  }

 private:
  const oracle::Contract::Backward& b() const { return c_.backward; }

  Traced times(Traced x, double factor) {
    if (factor == 1) return x;
    if (rule_.copies > 1) {
      const double store = std::max(b().ring.store_u, b().group_store_u);
      Traced sum = x;
      for (int n = 1; n < static_cast<int>(rule_.copies); ++n) {
        sum = tape_.round(tape_.round(sum + x, b().ring.acc_u, b().grad_eta), store);
      }
      return sum;
    }
    int exponent = 0;
    if (factor == 0) return tape_.constant(0);
    if (std::fabs(std::frexp(factor, &exponent)) == 0.5) return factor * x;
    const Traced constant = tape_.round(tape_.constant(factor), c_.softmax.u);
    return tape_.round(x * constant, c_.softmax.u, b().grad_eta);
  }
  void all_times(std::vector<Traced>& all, double factor) {
    for (Traced& x : all) x = times(x, factor);
  }

  void add(const std::vector<Traced>& other, double multiple, bool two, std::vector<Traced>& to) {
    if (multiple == 0) return;
    const oracle::OutputRounding out = oracle::output_rounding(c_.out);
    const auto stored = [&](Traced x) {
      return two && stored_before_ ? tape_.round(x, out.u, out.eta) : x;
    };
    for (std::size_t n = 0; n < to.size(); ++n) {
      const Traced sum = stored(to[n]) + multiple * stored(other[n]);
      to[n] = two && !stored_before_ ? tape_.round(sum, b().ring.acc_u, b().grad_eta) : sum;
    }
  }

  void move(const std::function<std::int64_t(std::int64_t)>& from_key, std::int64_t columns,
            std::vector<Traced>& all) {
    if (!from_key) return;
    const std::vector<Traced> before = all;
    for (std::int64_t j = 0; j < head_.total_keys; ++j) {
      const std::int64_t from = from_key(j);
      for (std::int64_t c = 0; c < columns; ++c) {
        all[static_cast<std::size_t>(j * columns + c)] =
            from < 0 ? tape_.constant(0) : before[static_cast<std::size_t>(from * columns + c)];
      }
    }
  }

  Tape& tape_;
  const oracle::Contract& c_;
  const Head& head_;
  const GradientRule& rule_;
  bool stored_before_;
};

}  // namespace

double weight_of(const GradientRule::Pair& counts, std::int64_t h, std::int64_t i, std::int64_t j) {
  return counts ? counts(h, i, j) : 1;
}

void misplace(Tape& tape, const oracle::Contract& contract, const Head& head,
              const GradientRule& rule, bool stored_before, TracedGradients& gradients) {
  Misplacement(tape, contract, head, rule, stored_before).run(gradients);
}

}  // namespace ringproof::adversary
