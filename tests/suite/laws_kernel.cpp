// What a kernel owes its caller apart from the numbers.
#include "tests/suite/law.hpp"

namespace ringproof::suite {
namespace {

/// Two calls in a row, and a third after other problems.
void determinism(Trial& trial, const Description& d) {
  if (!trial.candidate().promises.deterministic) throw NotSupported{};
  const Draft draft = trial.draw(d);
  const Answer first = trial.run(draft);
  trial.same_bits(draft, trial.run(draft), first, "a second call differs");
  Description other = d;
  other.seed += 1;
  trial.run(trial.draw(other));
  trial.same_bits(draft, trial.run(draft), first, "a call after another problem differs");
}

/// Every element is written, whatever stood there: neither NaN nor a large number shines through.
void written(Trial& trial, const Description& d) {
  const Draft draft = trial.draw(d);
  const Answer over_nan = trial.judged(draft);
  const Answer over_large = trial.run(draft, Fill::large);
  trial.judge(draft, over_large);
  if (trial.candidate().promises.deterministic) {
    trial.same_bits(draft, over_large, over_nan, "what stood in the output before shows");
  }
}

/// Trial::run compares the inputs after every call; here they hold every kind of tensor.
void inputs_stay(Trial& trial, const Description& d) { trial.run(trial.draw(d)); }

constexpr Law kLaws[] = {
    {"determinism", "the same call gives the same bits", {}, nullptr, determinism},
    {"written",
     "every element of every output is written, and nothing beside it",
     {},
     nullptr,
     written},
    {"inputs-stay", "inputs are read, not written", {}, nullptr, inputs_stay},
};

}  // namespace

std::span<const Law> kernel_laws() { return kLaws; }

}  // namespace ringproof::suite
