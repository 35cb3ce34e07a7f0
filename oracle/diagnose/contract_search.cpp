// Trying contracts (contract_search.hpp).
#include "oracle/diagnose/contract_search.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "oracle/case/error.hpp"
#include "oracle/judge/decide.hpp"
#include "oracle/judge/gradient_judge.hpp"
#include "oracle/judge/input_types.hpp"

namespace ringproof::oracle {

namespace {

/// Rows and keys at which a contract is tried before it is judged everywhere.
constexpr std::size_t kFirstRows = 16, kFirstKeys = 2;
/// Keys among which the first ones are chosen.
constexpr std::size_t kFarKeys = 64;

bool summed_over_rows(AnswerKind kind) { return kind == AnswerKind::dk || kind == AnswerKind::dv; }

CheckOptions plain(CheckOptions options) {
  options.walk.progress = {};
  options.require.clear();
  options.power.reset();
  options.probabilistic = false;
  options.budget.reset();  // contracts are compared on the same rows
  return options;
}

/// The spec with which a contract is tried: one that names the base of the LSE is tried in that
/// base, also where the spec names the other one.
Spec spec_for(const std::string& contract, Spec spec) {
  if (!contract.starts_with('{')) return spec;
  const auto fields = nlohmann::json::parse(contract);
  if (fields.at("lse").at("base") != "spec") spec.lse_base.reset();
  return spec;
}

struct Ranked {
  bool refused;
  double error;
  std::size_t place;
  bool operator<(const Ranked& other) const {
    return std::pair(other.refused, other.error) < std::pair(refused, error);
  }
};

Places only(const Places& from, const std::vector<Ranked>& ranked, bool keys) {
  Places places;
  for (const Ranked& one : ranked) {
    if (keys) {
      places.keys.push_back(from.keys[one.place]);
    } else {
      places.rows.push_back(one.place);
    }
  }
  return places;
}

}  // namespace

ContractSearch::ContractSearch(const Case& input, const Contract& contract,
                               const CheckOptions& options, const Report& declared)
    : input_(input), options_(plain(options)), declared_(declared) {
  for (const AnswerReport& answer : declared.answers) kinds_.push_back(answer.kind);
  rank_places(contract);
  for (const auto& [kind, places] : first_) {
    const Opinions said = known(contract).judge(contract, {kind}, places, false);
    declared_log_bound_[kind] = said[static_cast<std::size_t>(kind)].mean_log_bound();
  }
}

bool ContractSearch::judges_gradients() const {
  return std::any_of(kinds_.begin(), kinds_.end(), is_gradient);
}

const KnownTruth& ContractSearch::known(const Contract& contract) {
  std::pair<BackwardMode, LseBase> mode{BackwardMode::end_to_end, LseBase::e};
  if (judges_gradients() && contract.backward.mode == BackwardMode::isolated) {
    mode = {BackwardMode::isolated, contract.lse.base};
  }
  std::unique_ptr<KnownTruth>& one = known_[mode];
  if (!one) one = std::make_unique<KnownTruth>(input_, contract, options_, declared_);
  return *one;
}

/// Where the declared contract is furthest off, answer by answer.
void ContractSearch::rank_places(const Contract& contract) {
  const KnownTruth& truth = known(contract);
  std::vector<AnswerKind> held;
  for (const AnswerKind kind : kinds_) {
    if (truth.holds(kind)) held.push_back(kind);
  }
  std::map<AnswerKind, std::vector<Ranked>> ranked;
  truth.judge(contract, held, truth.all(), false,
              [&](AnswerKind kind, std::size_t place, const TensorTally& tally) {
                const auto& worst = tally.worst_element;
                const bool refused = tally.failed > 0 || tally.functional_failed > 0;
                if (worst) ranked[kind].push_back({refused, worst->error_over_bound, place});
              });
  for (auto& [kind, places] : ranked) {
    const bool keys = summed_over_rows(kind);
    std::stable_sort(places.begin(), places.end());
    std::vector<Ranked> refused;
    std::copy_if(places.begin(), places.end(), std::back_inserter(refused),
                 [](const Ranked& one) { return one.refused; });
    refused_[kind] = only(truth.all(), refused, keys);
    if (keys) {
      // A key costs the rows that see it: of those far off, the ones that few rows see.
      std::vector<Ranked>& far = refused.empty() ? places : refused;
      far.resize(std::min(far.size(), kFarKeys));
      std::stable_sort(far.begin(), far.end(), [&](const Ranked& a, const Ranked& b) {
        const auto rows = [&](const Ranked& one) {
          return truth.rows_that_see(truth.all().keys[one.place]);
        };
        return rows(a) < rows(b);
      });
      places = far;
    }
    places.resize(std::min(places.size(), keys ? kFirstKeys : kFirstRows));
    first_[kind] = only(truth.all(), places, keys);
  }
}

ContractSearch::Trial& ContractSearch::trial(const std::string& contract) {
  const auto known = contracts_.find(contract);
  if (known != contracts_.end()) return known->second;
  Trial trial;
  try {
    Contract found = read_contract(contract, spec_for(contract, input_.problem.spec));
    require_loadable(input_, found);
    if (judges_gradients()) upstream_of(input_, found);  // throws without the kernel's out, lse
    trial.contract = &read_.emplace(contract, std::move(found)).first->second;
  } catch (const BadInput&) {  // of other input types, of another number of ranks, isolated
  }
  return contracts_[contract] = trial;
}

bool ContractSearch::passes_check(const Contract& contract, AnswerKind kind) const {
  CheckOptions options = options_;
  options.only = {kind};
  try {
    return check(input_, contract, options).verdict == Verdict::pass;
  } catch (const BadInput&) {
    return false;
  }
}

bool ContractSearch::accepts(const std::string& contract, const std::vector<AnswerKind>& kinds) {
  Trial& one = trial(contract);
  if (one.contract == nullptr) return false;
  for (const AnswerKind kind : kinds) {
    if (one.no.count(kind) != 0 && one.no[kind]) return false;
  }
  const KnownTruth& truth = known(*one.contract);
  for (const AnswerKind kind : kinds) {
    if (!truth.holds(kind)) {
      if (one.no.count(kind) == 0) one.no[kind] = !passes_check(*one.contract, kind);
      if (one.no[kind]) return false;
      continue;
    }
    for (const auto* places : {&first_, &against_}) {
      const auto found = places->find(kind);
      if (found == places->end()) continue;
      const Opinions said = truth.judge(*one.contract, {kind}, found->second, true);
      const Opinion& opinion = said[static_cast<std::size_t>(kind)];
      if (opinion.refused()) {
        one.no[kind] = true;
        return false;
      }
      if (places == &first_) one.log_bound[kind] = opinion.mean_log_bound();
    }
  }
  return true;
}

bool ContractSearch::confirm(Trial& one, AnswerKind kind, bool loosens) {
  if (one.no.count(kind) != 0) return !one.no[kind];
  const KnownTruth& truth = known(*one.contract);
  const auto passes = [&](const Places& places, bool& refused) {
    const bool keys = summed_over_rows(kind);
    std::vector<std::size_t> against;
    const Opinions said = truth.judge(*one.contract, {kind}, places, true,
                                      [&](AnswerKind, std::size_t place, const TensorTally& tally) {
                                        if (tally.failed > 0 || tally.functional_failed > 0)
                                          against.push_back(place);
                                      });
    refused = !against.empty();
    if (refused && keys) against_[kind].keys.push_back(places.keys[against.front()]);
    if (refused && !keys) against_[kind].rows.push_back(against.front());
    AnswerReport report{.kind = kind, .tally = said[static_cast<std::size_t>(kind)].tally};
    decide(report);
    return report.verdict == Verdict::pass;
  };
  bool refused = false, accepted = false;
  if (loosens) accepted = passes(refused_[kind], refused);
  if (!accepted && !refused) accepted = passes(truth.all(), refused);
  one.no[kind] = !accepted;
  return accepted;
}

bool ContractSearch::confirm(const std::string& contract, const std::vector<AnswerKind>& kinds,
                             bool loosens) {
  if (!accepts(contract, kinds)) return false;
  Trial& one = trial(contract);
  return std::all_of(kinds.begin(), kinds.end(),
                     [&](AnswerKind kind) { return confirm(one, kind, loosens); });
}

double ContractSearch::widening(const std::string& contract) {
  Trial& one = trial(contract);
  double sum = 0;
  for (const auto& [kind, places] : first_) {
    if (one.log_bound.count(kind) == 0) {
      const Opinions said = known(*one.contract).judge(*one.contract, {kind}, places, false);
      one.log_bound[kind] = said[static_cast<std::size_t>(kind)].mean_log_bound();
    }
    sum += one.log_bound[kind] - declared_log_bound_[kind];
  }
  return first_.empty() ? 1 : std::exp(sum / static_cast<double>(first_.size()));
}

}  // namespace ringproof::oracle
