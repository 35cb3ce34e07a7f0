#include "oracle/generate/mutation_score.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <mutex>
#include <thread>

#include "oracle/generate/certified_kills.hpp"
#include "oracle/generate/gradient_kills.hpp"
#include "oracle/generate/notes.hpp"
#include "oracle/generate/suite.hpp"
#include "oracle/generate/write_suite.hpp"

namespace ringproof::oracle {
namespace {

/// "A, B" as A and B.
std::vector<std::string> names_in(const std::string& list) {
  std::vector<std::string> names;
  for (std::size_t first = 0; first < list.size();) {
    const std::size_t last = std::min(list.find(", ", first), list.size());
    names.push_back(list.substr(first, last - first));
    first = last + 2;
  }
  return names;
}

/// The cases of one contract, one after the other: what is killed early costs nothing later.
void score_cases(const std::vector<Recipe>& recipes, const ScoreOptions& options,
                 const std::function<void()>& done, ContractScore& score) {
  for (const Recipe& recipe : recipes) {
    const WantsForm first = first_forms(options.forms_per_class);
    const WantsForm wants = [&](const std::string& id, const std::string& words) {
      return !score.classes[id][words].killed && first(id, words);
    };
    SuiteOptions of_suite;
    of_suite.seed = options.seed;
    of_suite.walk.threads = 1;
    const CertifiedCase written = case_with_power(recipe, of_suite);
    done();
    if (!written.refusal.empty()) continue;
    const GeneratedCase& generated = written.generated;
    const Contract contract = read_contract(score.contract, recipe.spec);
    std::vector<FormOutcome> outcomes = certified_kills(generated, contract, wants);
    for (FormOutcome& one : gradient_kills(generated, contract, wants)) {
      outcomes.push_back(std::move(one));
    }
    for (const FormOutcome& outcome : outcomes) {
      FormScore& form = score.classes[outcome.id][outcome.words];
      form.killed = form.killed || outcome.kill.has_value();
      form.differs = form.differs || outcome.differs || outcome.kill.has_value();
      form.margin = std::max(form.margin, outcome.margin);
      if (!outcome.untold.empty()) form.untold = outcome.untold;
      for (const std::string& name : names_in(outcome.also)) {
        FormScore& other = score.also[name];
        other.killed = other.killed || form.killed;
        other.differs = other.differs || form.differs;
      }
    }
    ++score.cases;
  }
}

std::string percent(std::int64_t part, std::int64_t all) {
  return std::to_string(part) + " of " + std::to_string(all);
}

/// Why a form that was never killed was not, in words.
std::string reason(const FormScore& form) {
  if (!form.differs && form.untold.empty()) return "equal to the truth on every case";
  if (!form.differs) return "the theory says nothing: " + form.untold;
  char text[64];
  std::snprintf(text, sizeof text, "inside the bounds, largest margin %.2f", form.margin);
  return text;
}

void add_contract(const ContractScore& score, std::string& text) {
  std::int64_t classes = 0, classes_killed = 0, forms = 0, killed = 0;
  std::string rest;
  for (const auto& [id, all] : score.classes) {
    const std::int64_t changing = score.forms(id), dead = score.killed(id);
    if (changing > 0) ++classes;
    if (dead > 0) ++classes_killed;
    forms += changing;
    killed += dead;
    for (const auto& [words, form] : all) {
      if (form.killed || !form.differs) continue;
      rest += "  " + id + ": " + words + ": " + reason(form) + "\n";
    }
    if (dead == 0 && changing == 0) {
      rest += "  " + id + ": every form: " + reason(all.begin()->second) + "\n";
    }
  }
  text += score.contract + ", " + std::to_string(score.cases) +
          " cases: " + percent(classes_killed, classes) +
          " classes that change an answer are killed, " + percent(killed, forms) +
          " of their forms\n" + rest;
}

}  // namespace

std::int64_t ContractScore::forms(const std::string& id) const {
  const auto& all = classes.at(id);
  return std::count_if(all.begin(), all.end(), [](const auto& one) { return one.second.differs; });
}

std::int64_t ContractScore::killed(const std::string& id) const {
  const auto& all = classes.at(id);
  return std::count_if(all.begin(), all.end(), [](const auto& one) { return one.second.killed; });
}

std::vector<ContractScore> mutation_score(std::string_view name, const ScoreOptions& options) {
  const std::vector<Recipe> recipes = suite(name);
  std::vector<ContractScore> scores;
  std::vector<std::vector<Recipe>> cases;
  for (const Recipe& recipe : recipes) {
    const std::string contract = contracts_of(recipe).back();
    const auto place = std::find_if(scores.begin(), scores.end(), [&](const ContractScore& one) {
      return one.contract == contract;
    });
    const auto n = static_cast<std::size_t>(place - scores.begin());
    if (place == scores.end()) {
      scores.push_back({contract, 0, {}, {}});
      cases.emplace_back();
    }
    cases[n].push_back(recipe);
  }
  std::mutex mutex;
  std::int64_t finished = 0;
  std::exception_ptr failure;
  const auto done = [&] {
    const std::lock_guard lock(mutex);
    ++finished;
    if (options.progress) options.progress(finished, static_cast<std::int64_t>(recipes.size()));
  };
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t n = next++; n < scores.size(); n = next++) {
      try {
        score_cases(cases[n], options, done, scores[n]);
      } catch (...) {
        const std::lock_guard lock(mutex);
        failure = std::current_exception();
      }
    }
  };
  {
    const unsigned machine = std::max(1u, std::thread::hardware_concurrency());
    const int threads = options.threads > 0 ? options.threads : static_cast<int>(machine);
    std::vector<std::jthread> pool;
    for (int n = 1; n < threads; ++n) pool.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
  return scores;
}

std::string to_text(const std::vector<ContractScore>& scores) {
  std::string text;
  for (const ContractScore& score : scores) add_contract(score, text);
  text += "classes without certificates, and why:\n";
  for (const auto& [id, why] : notes().at("without certificates").items()) {
    text += "  " + id + ": " + why.get<std::string>() + "\n";
  }
  return text;
}

}  // namespace ringproof::oracle
