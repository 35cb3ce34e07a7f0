// Merging partial results of a ring, a split or a decode kernel on the tape: one function a merge
// of `partials.merge`, with the roundings that (17), (19), (20) and (20a)(20b) count.
#include <cmath>

#include "tests/adversary/exponent.hpp"

namespace ringproof::adversary {
namespace {

using oracle::Contract;

class Merger {
 public:
  Merger(Tape& tape, const Contract& contract, const Exponent& exponent)
      : tape_(tape), contract_(contract), exponent_(exponent) {}

  Merged unnormalized(const std::vector<Partial>& partials) {
    Maximum m = partials.front().m;
    Traced l = partials.front().l;
    std::vector<Traced> acc;
    for (const Traced x : partials.front().acc) acc.push_back(stored_partial(x));
    for (std::size_t r = 1; r < partials.size(); ++r) {
      const Partial& next = partials[r];
      const Maximum highest = next.m.raw.value() > m.raw.value() ? next.m : m;
      const Traced alpha = exponent_.rescale(m, highest), beta = exponent_.rescale(next.m, highest);
      l = tape_.round(scaled_l(l, alpha) + scaled_l(next.l, beta), contract_.l.u, contract_.l.eta);
      for (std::size_t column = 0; column < acc.size(); ++column) {
        const Traced old = scaled_acc(acc[column], alpha);
        const Traced added = scaled_acc(stored_partial(next.acc[column]), beta);
        acc[column] = stored_running(tape_.round(old + added, contract_.pv.u, contract_.pv.eta));
      }
      m = highest;
    }
    Merged merged{.lse = exponent_.lse(m.raw, l, contract_.lse.u)};
    for (const Traced x : acc) merged.out.push_back(divide(tape_, contract_, x, l));
    return merged;
  }

  Merged sequential(const std::vector<Partial>& partials) {
    Normalized running = normalized(partials.front());
    for (std::size_t r = 1; r < partials.size(); ++r) {
      const Normalized next = normalized(partials[r]);
      const bool running_leads = running.lse.value() >= next.lse.value();
      const Traced high = running_leads ? running.lse : next.lse,
                   low = running_leads ? next.lse : running.lse;
      const Traced grown = exponent_.log1p(exponent_.exp(exponent_.round(low - high)));
      const Traced lse = tape_.round(exponent_.round(high + grown), contract_.partials.lse_u);
      const Traced old_weight = exponent_.exp(exponent_.round(running.lse - lse));
      const Traced new_weight = exponent_.exp(exponent_.round(next.lse - lse));
      for (std::size_t column = 0; column < running.out.size(); ++column) {
        const Traced sum = round_output(round_output(running.out[column] * old_weight) +
                                        round_output(next.out[column] * new_weight));
        running.out[column] = stored_running(sum);
      }
      running.lse = lse;
    }
    return {running.out, running.lse};
  }

  Merged once(const std::vector<Partial>& partials) {
    std::vector<Normalized> parts;
    for (const Partial& partial : partials) parts.push_back(normalized(partial));
    Traced highest = parts.front().lse;
    for (const Normalized& part : parts) highest = max(highest, part.lse);
    Traced total;
    for (const Normalized& part : parts) {
      const Traced weight = exponent_.exp(exponent_.round(part.lse - highest));
      total = total.node < 0 ? weight : exponent_.round(total + weight);
    }
    const Traced lse = exponent_.round(highest + exponent_.log(total));
    std::vector<Traced> weights;
    for (const Normalized& part : parts)
      weights.push_back(exponent_.exp(exponent_.round(part.lse - lse)));
    Merged merged{.lse = tape_.round(lse, contract_.partials.lse_u)};
    for (std::size_t column = 0; column < parts.front().out.size(); ++column) {
      Traced sum;
      for (std::size_t r = 0; r < parts.size(); ++r) {
        const Traced term = round_output(parts[r].out[column] * weights[r]);
        sum = sum.node < 0 ? term : round_output(sum + term);
      }
      merged.out.push_back(sum);
    }
    return merged;
  }

  Merged sigmoid(const std::vector<Partial>& partials) {
    Normalized running = normalized(partials.front());
    for (std::size_t r = 1; r < partials.size(); ++r) {
      const Normalized next = normalized(partials[r]);
      const Traced weight = sigmoid_of(exponent_.round(next.lse - running.lse));
      for (std::size_t column = 0; column < running.out.size(); ++column) {
        const Traced difference = round_output(running.out[column] - next.out[column]);
        const Traced step = round_output(weight * difference);
        running.out[column] = stored_running(round_output(running.out[column] - step));
      }
      const Traced step = log_sigmoid(exponent_.round(running.lse - next.lse));
      running.lse = tape_.round(exponent_.round(running.lse - step), contract_.partials.lse_u);
    }
    return {running.out, running.lse};
  }

 private:
  struct Normalized {
    std::vector<Traced> out;
    Traced lse;
  };

  Traced stored_partial(Traced x) const {
    return tape_.round(x, contract_.partials.o_u, contract_.partials.eta);
  }
  Traced stored_running(Traced x) const {
    return tape_.round(x, contract_.partials.run_u, contract_.partials.eta);
  }
  Traced round_output(Traced x) const {
    return tape_.round(x, contract_.softmax.u, contract_.pv.eta);
  }

  // A product with an exact 1 is exact (H5).
  Traced scaled_l(Traced l, Traced alpha) const {
    return alpha.value() == 1 ? l : tape_.round(l * alpha, contract_.l.u, contract_.l.eta);
  }
  Traced scaled_acc(Traced acc, Traced alpha) const {
    return alpha.value() == 1 ? acc : tape_.round(acc * alpha, contract_.pv.u, contract_.pv.eta);
  }

  Normalized normalized(const Partial& partial) const {
    Normalized result{.out = {},
                      .lse = exponent_.lse(partial.m.raw, partial.l, contract_.partials.lse_u)};
    for (const Traced acc : partial.acc)
      result.out.push_back(
          stored_partial(partial.normalized ? acc : divide(tape_, contract_, acc, partial.l)));
    return result;
  }

  Traced sigmoid_of(Traced x) const {
    const Traced one = tape_.constant(1);
    const Traced value = x.value() > 0 ? one / (one + adversary::exp(-x))
                                       : adversary::exp(x) / (one + adversary::exp(x));
    return tape_.round(value, contract_.partials.sigmoid_rel, contract_.softmax.exp_eta);
  }

  // ln sigmoid(x) = -log1p(e^-x) = x - log1p(e^x): the form whose exponential does not overflow.
  Traced log_sigmoid(Traced x) const {
    const Traced value =
        x.value() > 0 ? -exponent_.log1p(exponent_.exp(-x)) : x - exponent_.log1p(exponent_.exp(x));
    return exponent_.round(exponent_.round(value));
  }

  Tape& tape_;
  const Contract& contract_;
  const Exponent& exponent_;
};

}  // namespace

Traced divide(Tape& tape, const Contract& contract, Traced acc, Traced l) {
  Traced quotient = acc / l;
  for (int k = 0; k < contract.finish.roundings; ++k)
    quotient = tape.round(quotient, contract.finish.u, contract.pv.eta);
  return quotient;
}

Merged merge_partials(Tape& tape, const Contract& contract, const Exponent& exponent,
                      oracle::Merge merge, std::vector<Partial> partials) {
  Merger merger(tape, contract, exponent);
  switch (merge) {
    case oracle::Merge::lse_sequential:
      return merger.sequential(partials);
    case oracle::Merge::lse_once:
      return merger.once(partials);
    case oracle::Merge::lse_sigmoid:
      return merger.sigmoid(partials);
    default:
      return merger.unnormalized(partials);
  }
}

}  // namespace ringproof::adversary
