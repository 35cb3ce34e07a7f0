// The two searches (fit.hpp).
#include "oracle/diagnose/fit.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "oracle/diagnose/contract_search.hpp"
#include "oracle/diagnose/declared_elsewhere.hpp"
#include "oracle/diagnose/fit_fields.hpp"

namespace ringproof::oracle {

namespace {

using nlohmann::json;

/// Changes of an answer, and names, that are confirmed on every row and reported.
constexpr std::size_t kChanges = 3, kNames = 2;

struct Candidate {
  FieldChange change;
  std::string contract;  // JSON text
  bool loosens = true;
};

std::string text_of(const json& declared, const json& contract) {
  std::string text;
  for (const auto& [field, value] : differing_fields(declared, contract)) {
    text += (text.empty() ? "" : ", ") + field + " " + value;
  }
  return text;
}

/// The single fields of the declared contract that decide about one answer.
class FieldSearch {
 public:
  FieldSearch(const Case& input, const json& declared, ContractSearch& search)
      : input_(input),
        declared_(declared),
        search_(search),
        shipped_(shipped_contracts(declared.at("inputs").at("dtype"))) {}

  /// Confirmed ones, the least first.
  std::vector<Candidate> decide(AnswerKind kind) {
    for (int round = 0; round < kMostRounds; ++round) {
      std::vector<Candidate> found = candidates(kind);
      found.resize(std::min(found.size(), kChanges));
      const bool all = std::all_of(found.begin(), found.end(), [&](const Candidate& one) {
        return search_.confirm(one.contract, {kind}, one.loosens);
      });
      if (all) return found;  // else what refuted one of them now refutes it from the start
    }
    return {};
  }

 private:
  static constexpr int kMostRounds = 32;

  std::vector<Candidate> candidates(AnswerKind kind) {
    const std::vector<FieldLadder> ladders = field_ladders(input_, declared_, kind);
    std::vector<Candidate> found;
    for (const bool elsewhere : {true, false}) {
      for (const FieldLadder& ladder : ladders) {
        std::size_t count = ladder.rungs.size();
        // What nobody declares is only asked for if nothing else accepts the answer.
        const auto last = [&]() -> const json& { return ladder.rungs[count - 1]; };
        while (elsewhere && ladder.loosens && count > 0 && !is_shipped(last())) --count;
        if (count == 0) continue;
        const std::size_t least = least_rung(ladder, count, kind);
        if (least < count) found.push_back(candidate(ladder, least));
      }
      if (!found.empty()) break;
    }
    std::stable_sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) {
      return a.change.widens < b.change.widens;
    });
    return found;
  }

  bool is_shipped(const json& rung) const {
    return std::any_of(shipped_.begin(), shipped_.end(),
                       [&](const json& contract) { return covers(contract, rung); });
  }

  std::string contract(const json& rung) const {
    json contract = merged_contract(declared_, rung);
    contract["name"] = "fitted";
    return contract.dump();
  }

  /// The first of `count` rungs that accepts the answer; `count` if none does.
  std::size_t least_rung(const FieldLadder& ladder, std::size_t count, AnswerKind kind) {
    const auto accepts = [&](std::size_t rung) {
      return search_.accepts(contract(ladder.rungs[rung]), {kind});
    };
    if (!ladder.loosens) {
      std::size_t rung = 0;
      while (rung < count && !accepts(rung)) ++rung;
      return rung;
    }
    if (!accepts(count - 1)) return count;
    std::size_t refused = 0, accepted = count - 1;  // all below `refused` are refused
    while (refused < accepted) {
      const std::size_t middle = (refused + accepted) / 2;
      if (accepts(middle)) {
        accepted = middle;
      } else {
        refused = middle + 1;
      }
    }
    return accepted;
  }

  /// The base as it would have to be declared: where the spec says one, it is there to be changed.
  std::string renaming(const std::string& value, const json& rung) const {
    if (!input_.problem.spec.lse_base) return value;
    const std::string in_spec = "lse_base " + rung.at("lse").at("base").dump() + " in the spec";
    return declared_.at("lse").at("base") == "spec" ? in_spec : value + ", " + in_spec;
  }

  Candidate candidate(const FieldLadder& ladder, std::size_t rung) {
    const std::string text = contract(ladder.rungs[rung]);
    const bool renames = ladder.field == "lse.base";
    std::string value = text_of(declared_, json::parse(text));
    if (renames) value = renaming(value, ladder.rungs[rung]);
    return {{ladder.field, std::move(value), search_.widening(text),
             !ladder.loosens || is_shipped(ladder.rungs[rung]), renames},
            text,
            ladder.loosens};
  }

  const Case& input_;
  const json& declared_;
  ContractSearch& search_;
  std::vector<json> shipped_;
};

/// One way out for each answer, numbers of AnswerFit::deciding.
using Choice = std::vector<std::size_t>;

/// What the changes of a choice widen together. A kernel is one, and so is its contract: a field
/// that several answers need counts once, with the value of the one that needs most.
double widening_of(const std::vector<AnswerFit*>& answers, const Choice& choice) {
  std::map<std::string, double> fields;
  for (std::size_t n = 0; n < answers.size(); ++n) {
    const FieldChange& change = answers[n]->deciding[choice[n]];
    double& widens = fields[change.field];
    widens = std::max(widens, change.widens);
  }
  double product = 1;
  for (const auto& [field, widens] : fields) product *= std::max(1.0, widens);
  return product;
}

/// Puts the change first that belongs to the choice of the least widening; of equals the one with
/// changes earlier in the lists.
void choose_together(std::vector<AnswerFit>& answers) {
  std::vector<AnswerFit*> open;
  for (AnswerFit& answer : answers) {
    if (!answer.deciding.empty()) open.push_back(&answer);
  }
  Choice choice(open.size(), 0), best = choice;
  double least = widening_of(open, best);
  const auto next = [&] {  // counts through all choices
    std::size_t n = 0;
    while (n < open.size() && ++choice[n] == open[n]->deciding.size()) choice[n++] = 0;
    return n < open.size();
  };
  while (next()) {
    const double widens = widening_of(open, choice);
    if (widens < least) {
      least = widens;
      best = choice;
    }
  }
  for (std::size_t n = 0; n < open.size(); ++n) {
    const auto first = open[n]->deciding.begin();
    const auto chosen = first + static_cast<std::ptrdiff_t>(best[n]);
    std::rotate(first, chosen, chosen + 1);
  }
}

/// Variants that may be added to a name, as far as the case has anything to do with them.
std::vector<std::string> variants(const Case& input) {
  std::vector<std::string> all{"+exp13", "+sumcast", "+ftz"};
  const Problem& p = input.problem;
  if (p.spec.softcap > 0) all.emplace_back("+softcap");
  if (p.bias || p.alibi_slopes) {
    all.emplace_back("+bias");
    all.emplace_back("+biasstore");
  }
  return all;
}

/// A name built on one preset that accepts everything: no variant can be left out of it. Empty if
/// there is none.
std::string fit_preset(const Case& input, const std::string& base, ContractSearch& search) {
  const auto joined = [&](const std::vector<std::string>& parts) {
    std::string name = base;
    for (const std::string& part : parts) name += part;
    return name;
  };
  const auto accepts = [&](const std::vector<std::string>& parts) {
    return search.accepts(joined(parts), search.kinds());
  };
  if (accepts({})) return base;
  std::vector<std::string> ends{""};
  if (search.judges_gradients()) ends = {"", "+gacc256", "+gacc64", "+gacc32"};
  for (const std::string& end : ends) {
    std::vector<std::string> parts = variants(input);
    if (!end.empty()) parts.push_back(end);
    if (!accepts(parts)) continue;
    for (std::size_t n = 0; n < parts.size();) {
      std::vector<std::string> fewer = parts;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(n));
      if (accepts(fewer)) {
        parts = fewer;
      } else {
        ++n;
      }
    }
    // Larger tiles than the preset's smallest one allow less.
    for (const char* block : {"+block512", "+block256", "+block128", "+block64"}) {
      parts.emplace_back(block);
      if (accepts(parts)) break;
      parts.pop_back();
    }
    return joined(parts);
  }
  return "";
}

std::vector<std::string> bases(std::int64_t ranks) {
  std::vector<std::string> all;
  for (const std::string& preset : preset_names()) {
    if (ranks > 1) {
      for (const char* suffix : {"-ring", "-ring-lowp", "-split", "-decode"}) {
        all.push_back(preset + suffix);
      }
    } else {
      all.push_back(preset);
    }
  }
  return all;
}

/// The tightest names that accept everything, confirmed; each with how much it allows.
std::vector<std::pair<std::string, double>> accepting_names(const Case& input,
                                                            const std::vector<std::string>& from,
                                                            ContractSearch& search) {
  std::vector<std::pair<std::string, double>> names, confirmed;
  const auto add = [&](const std::string& base) {
    const std::string name = fit_preset(input, base, search);
    if (name.empty()) return;
    const std::pair one(name, search.widening(name));
    const auto looser = [&](const auto& other) { return one.second < other.second; };
    names.insert(std::find_if(names.begin(), names.end(), looser), one);
  };
  for (const std::string& base : from) add(base);
  while (!names.empty() && confirmed.size() < kNames) {
    const auto one = names.front();
    names.erase(names.begin());
    if (search.confirm(one.first, search.kinds(), false)) {
      confirmed.push_back(one);
    } else {  // what refutes it may be in the way of other variants no more
      add(one.first.substr(0, one.first.find('+')));
    }
  }
  return confirmed;
}

}  // namespace

bool renamed(const Fit& fit) {
  return !fit.answers.empty() &&
         std::all_of(fit.answers.begin(), fit.answers.end(), [](const AnswerFit& one) {
           return !one.deciding.empty() && one.deciding.front().renames;
         });
}

bool loosened(const Fit& fit, bool elsewhere) {
  if (renamed(fit)) return false;
  return !fit.accepting.empty() ||
         std::all_of(fit.answers.begin(), fit.answers.end(), [&](const AnswerFit& one) {
           return !one.deciding.empty() && (!elsewhere || one.deciding.front().elsewhere);
         });
}

Fit fit(const Case& input, const std::string& declared, const CheckOptions& options) {
  const Contract contract = read_contract(declared, input.problem.spec);
  Fit result;
  result.declared = check(input, contract, options);
  if (result.declared.answers.empty()) return result;
  const json declared_json = json::parse(expanded_json(declared));
  ContractSearch search(input, contract, options, result.declared);
  FieldSearch fields(input, declared_json, search);
  for (const AnswerReport& answer : result.declared.answers) {
    if (answer.verdict != Verdict::fail) continue;
    AnswerFit one{answer.kind, answer.verdict, {}};
    for (Candidate& way : fields.decide(answer.kind)) one.deciding.push_back(std::move(way.change));
    result.answers.push_back(std::move(one));
  }
  choose_together(result.answers);

  const std::int64_t ranks = input.problem.spec.ranks.value_or(contract.partials.count);
  std::vector<std::string> from = bases(ranks);
  const bool named = declared.find('{') == std::string::npos;
  if (named && std::find(from.begin(), from.end(), declared) == from.end()) {
    from.push_back(declared);
  }
  for (const auto& [name, allows] : accepting_names(input, from, search)) {
    FittedContract one{name, contract_hash(name), allows, {}};
    for (const auto& [field, value] :
         differing_fields(declared_json, json::parse(expanded_json(name)))) {
      one.differs.push_back({field, value});
    }
    result.accepting.push_back(std::move(one));
  }
  result.tried = search.tried();
  return result;
}

}  // namespace ringproof::oracle
