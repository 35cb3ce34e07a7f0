// Sign-following ascent against the bounds of one row (attack.hpp).
#include "tests/adversary/attack.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "oracle/contract/bound.hpp"
#include "tests/adversary/kernel.hpp"

namespace ringproof::adversary {
namespace {

using oracle::Contract;

constexpr int kAscents = 4;  // sign updates from one start
// Each emulated operation costs at most four binary64 roundings: the operation, the width of its
// rounding, the product of width and choice, the addition.
constexpr double kRoundingsPerOperation = 4;

class Attack {
 public:
  Attack(const Contract& kernel, const Row& row, const Plan& plan, const JudgedRow& judged)
      : kernel_(kernel),
        row_(row),
        plan_(plan),
        judged_(judged),
        out_error_(judged.out.size(), 0.0) {
    const oracle::Format& format = oracle::format_of(kernel.out.dtype);
    out_unit_ = format.unit() * (kernel.out.round == oracle::RoundMode::rn ? 1 : 2);
    out_eta_ = kernel.out.ftz ? std::ldexp(1.0, format.min_exponent) : format.smallest() / 2;
    for (const long double o : judged.out) sign_.push_back(o > 0 ? 1 : -1);
  }

  enum class Target { out, lse, functional };

  void climb(Target target, double direction, std::size_t column) {
    for (int step = 0; step < kAscents; ++step) {
      tape_.restart();
      const TracedRow result = run_kernel(tape_, kernel_, row_, plan_);
      const Traced functional = functional_of(result);
      record(result, functional);
      const Traced aim = target == Target::out   ? result.out[column]
                         : target == Target::lse ? result.lse
                                                 : functional;
      tape_.follow(aim, direction);
    }
  }

  Tape& tape() { return tape_; }
  const std::vector<double>& out_error() const { return out_error_; }
  double lse_error() const { return lse_error_; }
  double functional_error() const { return functional_error_; }

 private:
  /// sum_c sgn(o_c) fl_out(out_c): the functional contains the rounding of the output.
  Traced functional_of(const TracedRow& result) {
    Traced sum = tape_.constant(0);
    for (std::size_t c = 0; c < result.out.size(); ++c)
      sum = sum + sign_[c] * tape_.round(result.out[c], out_unit_, out_eta_);
    return sum;
  }

  void record(const TracedRow& result, Traced functional) {
    long double exact = 0;
    for (std::size_t c = 0; c < result.out.size(); ++c) {
      const double error = static_cast<double>(std::fabs(result.out[c].value() - judged_.out[c]));
      // A NaN is the largest error of all, and must not be lost in a maximum.
      out_error_[c] = std::isnan(error) ? INFINITY : std::max(out_error_[c], error);
      exact += sign_[c] * judged_.out[c];
    }
    const double lse = static_cast<double>(std::fabs(result.lse.value() - judged_.lse));
    lse_error_ = std::isnan(lse) ? INFINITY : std::max(lse_error_, lse);
    const double sum = static_cast<double>(std::fabs(functional.value() - exact));
    functional_error_ = std::isnan(sum) ? INFINITY : std::max(functional_error_, sum);
  }

  const Contract& kernel_;
  const Row& row_;
  const Plan& plan_;
  const JudgedRow& judged_;
  Tape tape_;
  std::vector<double> out_error_, sign_;
  double lse_error_ = 0, functional_error_ = 0, out_unit_ = 0, out_eta_ = 0;
};

oracle::RowBound bound_of(const Contract& contract, const JudgedRow& judged) {
  oracle::RowBound bound;
  bound_row(contract, judged.owned.problem, judged.truth, judged.values.data(),
            static_cast<std::int64_t>(judged.out.size()), false, bound);
  return bound;
}

void climb_everywhere(Attack& attack, std::mt19937_64& random, std::size_t columns) {
  using Target = Attack::Target;
  const std::size_t column = random() % columns;
  for (const double direction : {1.0, -1.0}) {
    for (const bool random_start : {false, true}) {
      for (const Target target : {Target::out, Target::lse, Target::functional}) {
        if (random_start && target != Target::out) continue;
        attack.tape().all_choices_zero();
        if (random_start) attack.tape().all_choices_random(random);
        attack.climb(target, direction, target == Target::out && random_start ? column : 0);
      }
    }
  }
}

std::string repeat_line(const ContractCase& contract, Family family, int seed, const char* what,
                        const Reached& reached) {
  std::ostringstream line;
  line << contract.name << ", " << name(family) << ", seed " << seed << ": " << what << " error "
       << reached.error << " bound " << reached.bound << " noise " << reached.noise << " ratio "
       << reached.ratio();
  return line.str();
}

}  // namespace

AttackResult attack(const Contract& kernel, const Contract& judge, const Row& row,
                    std::mt19937_64& random, Shown how) {
  const JudgedRow judged = judged_row(row, how);
  const oracle::RowBound bound = bound_of(judge, judged),
                         noise = bound_of(emulator_twin(kernel), judged);
  AttackResult result{.not_applicable = bound.not_applicable};
  if (!result.not_applicable.empty()) return result;
  const Plan plan = draw_plan(kernel, row, random);
  Attack attack(kernel, row, plan, judged);
  climb_everywhere(attack, random, judged.out.size());
  for (std::size_t c = 0; c < judged.out.size(); ++c) {
    const Reached reached{attack.out_error()[c], bound.out[c],
                          kRoundingsPerOperation * noise.out[c]};
    const bool worse =
        reached.ratio() > result.out.ratio() || (reached.exceeded() && !result.out.exceeded());
    if (c == 0 || worse) result.out = reached;
  }
  result.lse = {attack.lse_error(), bound.lse, kRoundingsPerOperation * noise.lse};
  result.functional = {attack.functional_error(), bound.functional,
                       kRoundingsPerOperation * noise.functional};
  return result;
}

Ratios attack_all(const ContractCase& contract, const Effort& effort, bool as_emulated) {
  const Contract kernel = oracle::read_contract(contract.kernel, oracle::Spec{});
  const Contract judge =
      as_emulated ? kernel : oracle::read_contract(contract.judged, oracle::Spec{});
  Ratios ratios;
  double worst = 0;
  for (const Family family : contract.families) {
    for (int seed = 0; seed < effort.seeds; ++seed) {
      std::mt19937_64 random(effort.seed + 1000003 * static_cast<std::uint64_t>(seed) +
                             97 * static_cast<std::uint64_t>(family));
      RowOptions options = contract.row;
      options.partials = kernel.partials.count;
      options.longest = effort.longest;
      if (kernel.softmax.exp_eta > 0) options.weight_floor = kernel.softmax.exp_eta;
      options.head_dim = effort.head_dims[seed % 2];
      options.known_ring = contract.may_know_ring && (seed % 2 == 1 || random() % 2 == 0);
      const Row row = make_row(family, options, random);
      const AttackResult result = attack(kernel, judge, row, random);
      if (!result.not_applicable.empty()) {
        ++ratios.not_applicable;
        continue;
      }
      ++ratios.targets;
      const std::pair<const char*, const Reached*> targets[] = {
          {"out", &result.out}, {"lse", &result.lse}, {"functional", &result.functional}};
      for (const auto& [what, reached] : targets)
        if (reached->exceeded())
          ratios.exceeded.push_back(repeat_line(contract, family, seed, what, *reached));
      const auto measure = [](const Reached& reached, std::vector<double>& into) {
        if (reached.measurable()) into.push_back(reached.ratio());
      };
      measure(result.out, options.known_ring ? ratios.known_out : ratios.out);
      measure(result.lse, ratios.lse);
      measure(result.functional, ratios.functional);
      if (result.out.measurable() && result.out.ratio() > worst)
        worst = result.out.ratio(), ratios.worst_family = name(family);
    }
  }
  return ratios;
}

}  // namespace ringproof::adversary
