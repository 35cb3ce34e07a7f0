// Ascent against the bounds of gradients (backward_attack.hpp).
#include "tests/adversary/backward_attack.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <tuple>

#include "oracle/contract/backward_bound.hpp"
#include "tests/adversary/report.hpp"

namespace ringproof::adversary {
namespace {

using oracle::Contract;

constexpr int kAscents = 4;
constexpr double kRoundingsPerOperation = 4;  // as in attack.cpp

class BackwardAttack {
 public:
  BackwardAttack(const Contract& kernel, const Head& head, const BackwardPlan& plan,
                 const JudgedHead& judged)
      : kernel_(kernel), head_(head), plan_(plan), judged_(judged) {}

  void start() {
    error.dq.assign(judged_.dq.size(), 0);
    error.dk.assign(judged_.dk.size(), 0);
    error.dv.assign(judged_.dv.size(), 0);
  }

  enum class Target { dq, dk, dv, dsinks };

  void climb(Target target, double direction, std::size_t element) {
    for (int step = 0; step < kAscents; ++step) {
      tape_.restart();
      const TracedGradients result = run_backward(tape_, kernel_, head_, plan_);
      record(result.dq, judged_.dq, error.dq);
      record(result.dk, judged_.dk, error.dk);
      record(result.dv, judged_.dv, error.dv);
      record({result.dsinks}, {judged_.dsinks}, sinks_);
      error.dsinks = sinks_.front();
      tape_.follow(target == Target::dq   ? result.dq[element]
                   : target == Target::dk ? result.dk[element]
                   : target == Target::dv ? result.dv[element]
                                          : result.dsinks,
                   direction);
    }
  }

  Tape& tape() { return tape_; }
  GradientBounds error;  // largest errors seen

 private:
  static void record(const std::vector<Traced>& result, const std::vector<long double>& exact,
                     std::vector<double>& errors) {
    for (std::size_t k = 0; k < result.size(); ++k) {
      const double e = static_cast<double>(std::fabs(result[k].value() - exact[k]));
      errors[k] = std::isnan(e) ? INFINITY : std::max(errors[k], e);
    }
  }

  const Contract& kernel_;
  const Head& head_;
  const BackwardPlan& plan_;
  const JudgedHead& judged_;
  Tape tape_;
  std::vector<double> sinks_{0.0};
};

Reached worst_of(const std::vector<double>& errors, const std::vector<double>& bounds,
                 const std::vector<double>& noise) {
  Reached worst;
  for (std::size_t k = 0; k < errors.size(); ++k) {
    const Reached reached{errors[k], bounds[k], kRoundingsPerOperation * noise[k]};
    const bool worse = reached.ratio() > worst.ratio() || (reached.exceeded() && !worst.exceeded());
    if (k == 0 || worse) worst = reached;
  }
  return worst;
}

constexpr Upstream kUpstreams[] = {Upstream::randn, Upstream::with_lse, Upstream::tiny,
                                   Upstream::huge};

std::string repeat_line(const ContractCase& contract, Family family, int upstream, int seed,
                        const char* what, const Reached& reached) {
  std::ostringstream line;
  line << contract.name << ", " << name(family) << ", upstream " << upstream << ", seed " << seed
       << ": " << what << " error " << reached.error << " bound " << reached.bound << " noise "
       << reached.noise << " ratio " << reached.ratio();
  return line.str();
}

}  // namespace

GradientBounds bounds_of(const Contract& contract, const Head& head, const JudgedHead& judged) {
  const oracle::Problem& problem = judged.owned.problem;
  const oracle::GradientShape shape(contract, problem, 0, 0);
  oracle::GradientBoundSums sums(shape);
  const oracle::BackwardHead arrays(problem, head.keys.data(), head.head_dim, head.values.data(),
                                    head.value_dim);
  GradientBounds bounds;
  oracle::RowGradientBound bound;
  for (std::size_t row = 0; row < head.rows.size(); ++row) {
    bound_row_backward(contract, problem, judged.given, arrays, judged.truth[row],
                       judged.gradients[row], bound, &sums);
    if (!bound.not_applicable.empty()) bounds.not_applicable = bound.not_applicable;
    bounds.dq.insert(bounds.dq.end(), bound.dq.begin(), bound.dq.end());
    bounds.dsinks += bound.dsink;
  }
  sums.finish();
  for (std::int64_t j = 0; j < head.total_keys; ++j) {
    for (std::int64_t d = 0; d < head.head_dim; ++d) bounds.dk.push_back(sums.dk(j, d));
    for (std::int64_t c = 0; c < head.value_dim; ++c) bounds.dv.push_back(sums.dv(j, c));
  }
  return bounds;
}

BackwardResult attack_backward(const Contract& kernel, const Contract& judge, const Head& head,
                               std::mt19937_64& random) {
  using Target = BackwardAttack::Target;
  const JudgedHead judged = judged_head(head);
  const GradientBounds bounds = bounds_of(judge, head, judged);
  BackwardResult result{.not_applicable = bounds.not_applicable};
  if (!result.not_applicable.empty()) return result;
  Contract twin = emulator_twin(kernel);
  twin.backward.mode = kernel.backward.mode;
  twin.backward.ring = kernel.backward.ring;
  twin.backward.ring.acc_u = 0x1p-53;
  twin.backward.ring.store_u = 0;
  const GradientBounds noise = bounds_of(twin, head, judged);
  const BackwardPlan plan = draw_backward_plan(kernel, head, random);
  BackwardAttack attack(kernel, head, plan, judged);
  attack.start();
  const bool sinks = head.rows.front().sink.has_value();
  for (const double direction : {1.0, -1.0}) {
    for (const bool random_start : {false, true}) {
      for (const Target target : {Target::dq, Target::dk, Target::dv, Target::dsinks}) {
        if (target == Target::dsinks && !sinks) continue;
        const std::size_t size = target == Target::dq   ? judged.dq.size()
                                 : target == Target::dk ? judged.dk.size()
                                                        : judged.dv.size();
        attack.tape().all_choices_zero();
        if (random_start) attack.tape().all_choices_random(random);
        attack.climb(target, direction, random() % size);
      }
    }
  }
  result.dq = worst_of(attack.error.dq, bounds.dq, noise.dq);
  result.dk = worst_of(attack.error.dk, bounds.dk, noise.dk);
  result.dv = worst_of(attack.error.dv, bounds.dv, noise.dv);
  if (sinks) {
    result.dsinks = {attack.error.dsinks, bounds.dsinks, kRoundingsPerOperation * noise.dsinks};
  }
  return result;
}

BackwardRatios attack_backward_all(const ContractCase& contract, const Effort& effort,
                                   bool as_emulated) {
  const Contract kernel = oracle::read_contract(contract.kernel, oracle::Spec{});
  const Contract judge =
      as_emulated ? kernel : oracle::read_contract(contract.judged, oracle::Spec{});
  BackwardRatios ratios;
  for (std::size_t n = effort.first % effort.every; n < contract.families.size();
       n += effort.every) {
    const Family family = contract.families[n];
    for (int seed = 0; seed < effort.seeds; ++seed) {
      std::mt19937_64 random(effort.seed + 1000003 * static_cast<std::uint64_t>(seed) +
                             97 * static_cast<std::uint64_t>(family));
      HeadOptions options{.row = contract.row,
                          .group = 1 + static_cast<std::int64_t>(random() % 3)};
      options.row.partials = kernel.partials.count;
      options.row.longest = effort.longest;
      options.row.head_dim = effort.head_dims[seed % 2];
      if (kernel.softmax.exp_eta > 0) options.row.weight_floor = kernel.softmax.exp_eta;
      options.queries = 2 + static_cast<std::int64_t>(random() % 4);
      options.isolated = kernel.backward.mode == oracle::BackwardMode::isolated;
      const int upstream = static_cast<int>(random() % 4);
      const Head head = make_head(family, kUpstreams[upstream], options, random);
      const BackwardResult result = attack_backward(kernel, judge, head, random);
      if (!result.not_applicable.empty()) {
        ++ratios.not_applicable;
        continue;
      }
      ++ratios.targets;
      const std::tuple<const char*, const Reached*, std::vector<double>*> targets[] = {
          {"dq", &result.dq, &ratios.dq},
          {"dk", &result.dk, &ratios.dk},
          {"dv", &result.dv, &ratios.dv},
          {"dsinks", &result.dsinks, &ratios.dsinks}};
      for (const auto& [what, reached, into] : targets) {
        if (reached->exceeded()) {
          ratios.exceeded.push_back(repeat_line(contract, family, upstream, seed, what, *reached));
        }
        if (reached->measurable()) into->push_back(reached->ratio());
      }
      if (effort.until_exceeded && !ratios.exceeded.empty()) return ratios;
    }
  }
  return ratios;
}

void write_markdown(std::ostream& out, const std::vector<BackwardTableRow>& rows) {
  const auto pair = [](const std::vector<double>& ratios) {
    return ratios.empty() ? std::string("-")
                          : fmt::format("{:.3f} ({:.2f})", largest(ratios), median(ratios));
  };
  out << "| contract | heads | dq | dk | dv | dsinks |\n|---|---|---|---|---|---|\n";
  for (const BackwardTableRow& row : rows) {
    const BackwardRatios& r = row.ratios;
    if (row.gross_only) {
      out << fmt::format("| {} | {} | no gross violation | | | |\n", row.contract, r.targets);
    } else {
      out << fmt::format("| {} | {} | {} | {} | {} | {} |\n", row.contract, r.targets, pair(r.dq),
                         pair(r.dk), pair(r.dv), pair(r.dsinks));
    }
  }
}

}  // namespace ringproof::adversary
