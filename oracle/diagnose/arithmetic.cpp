// The contracts of too few digits (arithmetic.hpp).
#include "oracle/diagnose/arithmetic.hpp"

#include <cmath>

namespace ringproof::oracle {

namespace {

/// A storage type that is narrower than the contract's, in the contract's own terms.
struct Narrow {
  const char* name;
  double u, eta;
};
constexpr Narrow kNarrow[] = {{"fp16", 0x1p-11, 0x1p-25}, {"bf16", 0x1p-8, 0x1p-134}};

struct Looser {
  std::string id, words;
  Contract contract;
};

/// Forms of one class and one type, tightest first: the first that accepts is the finding.
using Ladder = std::vector<Looser>;

/// A sum that is rounded to the type after every `block` terms.
void keep_sum(Contract::Sum& sum, const Narrow& type, std::int64_t block) {
  const Accumulator inner = sum.acc;
  sum.acc = Accumulator{};
  sum.acc.model = Accumulator::Model::blocked;
  sum.acc.u = type.u;
  sum.acc.block = block;
  sum.acc.of = {inner};
  sum.u = type.u;
  sum.eta = type.eta;
}

Ladder sum_ladder(const Contract& contract, const Narrow& type, bool output) {
  Ladder ladder;
  if (type.u <= (output ? contract.pv.u : contract.l.u)) return ladder;
  for (std::int64_t block = 512; block >= 1; block /= 2) {
    Looser one{output ? "LOWP-O" : "LOWP-L",
               std::string(output ? "the output accumulator" : "the row sum") + " kept in " +
                   type.name + ", tiles of " + std::to_string(block) + " keys or more",
               contract};
    one.contract.softmax.block = block;
    keep_sum(output ? one.contract.pv : one.contract.l, type, block);
    if (output && contract.partials.count > 1) {
      one.contract.partials.o_u = one.contract.partials.run_u = type.u;
      one.contract.partials.eta = type.eta;
    }
    ladder.push_back(std::move(one));
  }
  return ladder;
}

Ladder partial_ladder(const Contract& contract, const Narrow& type) {
  Ladder ladder;
  for (const std::int64_t count : {2, 4, 8, 16, 32}) {
    if (contract.partials.count > 1 && count != 2) break;
    Looser one{"LOWP-PART", std::string("partial results stored in ") + type.name, contract};
    auto& partials = one.contract.partials;
    if (partials.count == 1) {
      partials.count = count;
      partials.merge = {Merge::unnormalized, Merge::lse_sequential, Merge::lse_once};
      one.words += ", " + std::to_string(count) + " of them";
    }
    partials.o_u = partials.run_u = type.u;
    partials.eta = type.eta;
    ladder.push_back(one);
    one.words += ", their LSE too";
    one.contract.partials.lse_u = type.u;
    ladder.push_back(std::move(one));
  }
  return ladder;
}

Ladder score_ladder(const Contract& contract, const Narrow& type) {
  Ladder ladder;
  Looser one{"LOWP-S", std::string("scores rounded to ") + type.name, contract};
  if (!contract.score.store.empty()) return ladder;
  one.contract.score.store_eta = type.eta;
  for (int times = 1; times <= 2; ++times) {
    one.contract.score.store.push_back(type.u);
    if (times == 2) one.words += " twice";
    ladder.push_back(one);
  }
  return ladder;
}

Ladder probability_ladder(const Contract& contract, const Narrow& type, RoundMode round) {
  const double u = round == RoundMode::rn ? type.u : 2 * type.u;
  if (u <= contract.p.u) return {};
  Looser one{"P-TRUNC",
             std::string("probabilities ") + (round == RoundMode::rn ? "rounded" : "truncated") +
                 " to " + type.name,
             contract};
  one.contract.p.u = u;
  one.contract.p.eta = type.eta;
  one.contract.p.round = round;
  return {one};
}

Ladder exponential_ladder(const Contract& contract) {
  Ladder ladder;
  for (int digits = 20; digits >= 7; --digits) {  // contracts take no larger errors
    Looser one{"EXP-APPROX", "exponentials with relative errors of 2^-" + std::to_string(digits),
               contract};
    one.contract.softmax.exp_rel = std::ldexp(1.0, -digits);
    if (one.contract.softmax.exp_rel <= contract.softmax.exp_rel) continue;
    ladder.push_back(one);
    one.words += ", exp(0) among them";
    one.contract.softmax.exp_zero_exact = false;
    ladder.push_back(std::move(one));
  }
  return ladder;
}

Ladder output_ladder(const Contract& contract) {
  Ladder ladder;
  for (const DType type : {DType::f16, DType::bf16}) {
    if (type == contract.out.dtype || contract.out.dtype == DType::f64) continue;
    Looser one{"DTYPE", "out rounded to " + std::string(name(type)), contract};
    one.contract.out.dtype = type;
    ladder.push_back(std::move(one));
  }
  return ladder;
}

std::vector<Ladder> ladders(const Contract& contract) {
  std::vector<Ladder> all{output_ladder(contract), exponential_ladder(contract)};
  for (const Narrow& type : kNarrow) {
    all.push_back(score_ladder(contract, type));
    all.push_back(probability_ladder(contract, type, RoundMode::rn));
    all.push_back(probability_ladder(contract, type, RoundMode::rz));
    all.push_back(sum_ladder(contract, type, false));
    all.push_back(sum_ladder(contract, type, true));
    all.push_back(partial_ladder(contract, type));
  }
  return all;
}

/// Asks contracts about the answers to out and lse, about more and more rows.
class Acceptance {
 public:
  Acceptance(const Case& input, const Contract& declared, const CheckOptions& options,
             std::vector<AnswerKind> kinds, const std::vector<Row>& worst,
             const ComparedRows& compared)
      : input_(input), options_(options), kinds_(std::move(kinds)) {
    options_.walk.progress = {};
    steps_ = {{worst}, {compared.spread(kFewRows)}, {compared.rows}};
    for (Step& step : steps_) {
      judge_rows(input_, declared, options_, kinds_, step.rows, step.elements);
    }
  }

  /// FAIL, UNDECIDED without power, or PASS on all rows that are compared. A contract that judges
  /// fewer elements than the declared one accepts nothing: those that it refused may be among them.
  Verdict ask(const Contract& contract, std::int64_t& elements) const {
    Verdict verdict = Verdict::fail;
    for (const Step& step : steps_) {
      verdict = judge_rows(input_, contract, options_, kinds_, step.rows, elements);
      if (verdict == Verdict::fail) return verdict;
      if (elements < step.elements) return Verdict::undecided;
    }
    return verdict;
  }

 private:
  static constexpr std::size_t kFewRows = 48;

  const Case& input_;
  CheckOptions options_;
  std::vector<AnswerKind> kinds_;
  struct Step {
    std::vector<Row> rows{};
    std::int64_t elements = 0;  // that the declared contract judges
  };
  std::vector<Step> steps_;
};

/// The first form that accepts. Of two forms without power in a row every later one is looser than
/// one of them, and has none either.
void climb(const Ladder& ladder, const Acceptance& acceptance, Diagnosis& diagnosis) {
  int powerless = 0;
  for (std::size_t n = 0; n < ladder.size(); ++n) {
    std::int64_t elements = 0;
    const Verdict verdict = acceptance.ask(ladder[n].contract, elements);
    if (verdict == Verdict::pass) {
      diagnosis.explanations.push_back({ladder[n].id, "", ladder[n].words, "", elements, 0});
      return;
    }
    ++diagnosis.refuted;
    powerless = verdict == Verdict::undecided ? powerless + 1 : 0;
    if (powerless == 2) {
      diagnosis.refuted += static_cast<std::int64_t>(ladder.size() - n - 1);
      return;
    }
  }
}

}  // namespace

void add_arithmetic(const Case& input, const Contract& contract, const CheckOptions& options,
                    const Report& report, const std::vector<Row>& worst,
                    const ComparedRows& compared, Diagnosis& diagnosis) {
  std::vector<AnswerKind> kinds;
  bool refused = false;
  for (const AnswerReport& answer : report.answers) {
    if (answer.kind != AnswerKind::out && answer.kind != AnswerKind::lse) continue;
    kinds.push_back(answer.kind);
    refused = refused || answer.verdict == Verdict::fail;
  }
  if (!refused) return;  // gradients alone: that is a question for fit
  const Acceptance acceptance(input, contract, options, kinds, worst, compared);
  const std::vector<Ladder> all = ladders(contract);
  for (std::size_t n = 0; n < all.size(); ++n) {
    climb(all[n], acceptance, diagnosis);
    if (options.walk.progress) {
      options.walk.progress(static_cast<std::int64_t>(n + 1),
                            static_cast<std::int64_t>(all.size()));
    }
  }
}

}  // namespace ringproof::oracle
