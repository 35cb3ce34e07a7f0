// The boxes of wrong gradients are theorems: an adversary that chooses every rounding of a kernel
// with one planted mistake never leaves the box of that mistake, and without a mistake the boxes
// are those of the right gradients. RINGPROOF_ADVERSARY_SEEDS lengthens the run.
#include <fmt/format.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include "tests/adversary/mistakes.hpp"
#include "tests/adversary/report.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/diagnose/boxes.hpp"

namespace ringproof::adversary {
namespace {

using oracle::Contract;
using oracle::GradientMutant;
using oracle::GradientPairs;

constexpr int kAscents = 2;
constexpr std::int64_t kRanks = 3;            // of the mistakes of rings, whatever the contract
constexpr double kRoundingsPerOperation = 4;  // as in attack.cpp

bool long_run() { return std::getenv("RINGPROOF_ADVERSARY_SEEDS") != nullptr; }
int seeds() { return long_run() ? std::atoi(std::getenv("RINGPROOF_ADVERSARY_SEEDS")) : 1; }

std::vector<Traced> together(const TracedGradients& g) {
  std::vector<Traced> all;
  for (const auto* part : {&g.dq, &g.dk, &g.dv, &g.dbias}) {
    all.insert(all.end(), part->begin(), part->end());
  }
  all.push_back(g.dsinks);
  return all;
}

/// Largest error over bound of the gradients that are wrong, and all that lies outside its box.
struct Record {
  std::map<std::string, double> of_class;
  std::vector<double> ratios[kGradients];
  int forms = 0;
  std::vector<std::string> outside;
};

class BoxAttack {
 public:
  BoxAttack(const Contract& contract, const Head& head, std::mt19937_64& random)
      : contract_(contract),
        twin_(emulator_twin(contract)),
        head_(head),
        random_(random),
        judged_(judged_head(head)),
        input_(case_of(head, judged_)),
        pairs_(pairs_of(contract, head, judged_)),
        plan_(draw_backward_plan(contract, head, random)) {
    twin_.backward.mode = contract.backward.mode;
    twin_.backward.ring = contract.backward.ring;
    twin_.backward.ring.acc_u = 0x1p-53;
    twin_.backward.ring.store_u = 0;
    noise_ = pairs_of(twin_, head, judged_);
  }

  bool applies() const { return pairs_ && noise_; }
  std::vector<GradientMutant> forms() const {
    return oracle::gradient_classes({input_, contract_, kRanks, {}});
  }

  void run(const GradientMutant& mutant, const std::string& where, Record& record) {
    // Where a kernel stores P it recomputes none; where dbias lies is not emulated.
    if (mutant.rule.bias_place || (mutant.rule.p_exponent != 1 && plan_.stored)) return;
    boxes_ = boxes_of(contract_, head_, judged_, *pairs_, mutant);
    errors_.assign(boxes_.value.size(), 0);
    plan_.rule = &mutant.rule;
    for (const double direction : {1.0, -1.0}) {
      for (const bool of_random : {false, true}) climb(direction, of_random);
    }
    ++record.forms;
    compare(mutant, where, record);
  }

 private:
  void compare(const GradientMutant& mutant, const std::string& where, Record& record) const {
    const Boxes noise = boxes_of(twin_, head_, judged_, *noise_, mutant);
    const bool wrong[kGradients] = {mutant.dq, mutant.dk, mutant.dv, mutant.dbias, mutant.dsinks};
    std::size_t n = 0;
    for (std::size_t gradient = 0; gradient < kGradients; ++gradient) {
      double worst = 0;
      for (; n < boxes_.last[gradient]; ++n) {
        const Reached reached{errors_[n], boxes_.bound[n], kRoundingsPerOperation * noise.bound[n]};
        if (reached.exceeded()) {
          record.outside.push_back(fmt::format("{}, {}: {}: gradient {} errs by {}, bound {}",
                                               where, mutant.id, mutant.words, gradient,
                                               reached.error, reached.bound));
        }
        if (reached.measurable()) worst = std::max(worst, reached.ratio());
      }
      if (!wrong[gradient] || worst == 0) continue;
      double& largest = record.of_class[mutant.id];
      largest = std::max(largest, worst);
      record.ratios[gradient].push_back(worst);
    }
  }

  void climb(double direction, bool of_random) {
    tape_.all_choices_zero();
    if (of_random) tape_.all_choices_random(random_);
    plan_.stored_before = of_random;
    // An element that has a box, the same for all steps.
    std::size_t element = random_() % boxes_.bound.size();
    for (int n = 0; n < 8 && boxes_.bound[element] == 0; ++n) {
      element = random_() % boxes_.bound.size();
    }
    for (int step = 0; step < kAscents; ++step) {
      tape_.restart();
      const std::vector<Traced> result = together(run_backward(tape_, contract_, head_, plan_));
      REQUIRE(result.size() == boxes_.value.size());
      for (std::size_t n = 0; n < result.size(); ++n) {
        const double error = std::fabs(result[n].value() - boxes_.value[n]);
        errors_[n] = std::isnan(error) ? INFINITY : std::max(errors_[n], error);
      }
      tape_.follow(result[element], direction);
    }
  }

  const Contract& contract_;
  Contract twin_;
  const Head& head_;
  std::mt19937_64& random_;
  JudgedHead judged_;
  oracle::Case input_;
  std::optional<GradientPairs> pairs_, noise_;
  BackwardPlan plan_;
  Tape tape_;
  Boxes boxes_;
  std::vector<double> errors_;
};

/// One form of every class, another one for each head; in a long run one for each choice of wrong
/// gradients.
void attack_head(const ContractCase& one, const Contract& kernel, int seed, Record& record) {
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  const Head head = draw_head(one, kernel, random);
  BoxAttack attack(kernel, head, random);
  if (!attack.applies()) return;
  std::vector<GradientMutant> forms = attack.forms();
  std::shuffle(forms.begin(), forms.end(), random);
  std::set<std::string> done;
  const std::string where = fmt::format("{}, seed {}", one.name, seed);
  for (const GradientMutant& form : forms) {
    std::string kind = form.id;
    if (long_run()) {
      for (const bool wrong : {form.dq, form.dk, form.dv, form.dbias, form.dsinks}) {
        kind += wrong ? '1' : '0';
      }
    }
    if (done.insert(kind).second) attack.run(form, where, record);
  }
}

void write_line(std::ostream& out, const std::string& name, const Record& record) {
  out << fmt::format("| {} | {} |", name, record.forms);
  for (const std::vector<double>& ratios : record.ratios) {
    out << (ratios.empty() ? " - |"
                           : fmt::format(" {:.3f} ({:.2f}) |", largest(ratios), median(ratios)));
  }
  out << '\n';
}

}  // namespace

TEST_CASE("a kernel that makes one mistake and conforms otherwise never leaves its box",
          "[adversary]") {
  std::map<std::string, double> by_class;
  std::ostringstream table;
  table << "| contract | forms | dq | dk | dv | dbias | dsinks |\n|---|---|---|---|---|---|---|\n";
  for (const ContractCase& one : backward_cases()) {
    const Contract kernel = oracle::read_contract(one.kernel, oracle::Spec{});
    Record record;
    for (int seed = 1; seed <= seeds(); ++seed) attack_head(one, kernel, seed, record);
    for (const std::string& line : record.outside) FAIL_CHECK(line);
    if (one.gross_only || record.forms == 0) continue;
    write_line(table, one.name, record);
    for (const auto& [id, ratio] : record.of_class) by_class[id] = std::max(by_class[id], ratio);
  }
  table << "\n| class | error over bound |\n|---|---|\n";
  for (const auto& [id, ratio] : by_class) table << fmt::format("| {} | {:.3f} |\n", id, ratio);
  std::cout << table.str();
  CHECK(by_class.size() >= 12);
}

TEST_CASE("without a mistake the boxes are those of the right gradients", "[adversary]") {
  double largest_quotient = 0;
  const auto compare = [&](const ContractCase& one, std::uint64_t seed) {
    const Contract contract = oracle::read_contract(one.kernel, oracle::Spec{});
    std::mt19937_64 random(seed);
    const Head head = draw_head(one, contract, random);
    const JudgedHead judged = judged_head(head);
    const std::optional<GradientPairs> pairs = pairs_of(contract, head, judged);
    if (!pairs) return;
    const oracle::WrongGradients right = wrong_gradients(*pairs, GradientMutant{});
    const GradientBounds theorem = bounds_of(contract, head, judged);
    double sinks = 0;
    if (head.rows.front().sink) {
      oracle::AdditionSums sums({1, head.group, 1, 1}, {contract, judged.owned.problem, {}});
      sums.add_sinks(*pairs, {});
      for (std::int64_t n = sums.first(); n < sums.last(); ++n) sinks += sums.bound(n);
    }
    CHECK(sinks >= theorem.dsinks * (1 - 0x1p-25));
    CHECK(sinks <= theorem.dsinks * (1 + 0x1p-16));
    const std::tuple<const std::vector<double>*, const std::vector<double>*> all[] = {
        {&right.bound_q, &theorem.dq},
        {&right.bound_k, &theorem.dk},
        {&right.bound_v, &theorem.dv}};
    INFO(one.name << ", seed " << seed);
    for (const auto& [box, bound] : all) {
      REQUIRE(box->size() == bound->size());
      for (std::size_t n = 0; n < box->size(); ++n) {
        CHECK((*box)[n] >= (*bound)[n] * (1 - 0x1p-25));
        if (std::isinf((*bound)[n])) continue;
        if ((*bound)[n] > 0) largest_quotient = std::max(largest_quotient, (*box)[n] / (*bound)[n]);
        if ((*bound)[n] == 0) CHECK((*box)[n] == 0);
      }
    }
  };
  for (const ContractCase& one : backward_cases()) {
    if (one.gross_only) continue;  // binary64 is no more precise than the contract
    for (std::uint64_t seed = 1; seed <= 8; ++seed) compare(one, seed);
  }
  INFO(largest_quotient - 1);  // binary32 and the evaluation in binary64
  CHECK(largest_quotient <= 1 + 0x1p-16);
}

}  // namespace ringproof::adversary
