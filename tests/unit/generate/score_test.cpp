// The certified mutation score: the page about it is of today's inputs, and the small suite alone
// kills every class of which it has a form.
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "oracle/generate/mutation_score.hpp"
#include "oracle/generate/notes.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace ringproof::oracle;

/// Faults of the notes that a suite kills under some contract, and those that it could.
struct Faults {
  std::set<std::string> killed, changing;
  explicit Faults(const std::vector<ContractScore>& scores) {
    for (const ContractScore& score : scores) {
      for (const auto& [id, forms] : score.classes) {
        if (score.forms(id) > 0) changing.insert(id);
        if (score.killed(id) > 0) killed.insert(id);
      }
    }
  }
};

}  // namespace

TEST_CASE("the small suite kills every class of which it holds a form that changes an answer") {
  ScoreOptions options;
  options.forms_per_class = 2;
  options.threads = 2;
  const std::vector<ContractScore> scores = mutation_score("quick", options);
  const Faults faults(scores);
  CHECK(faults.killed == faults.changing);
  CHECK(faults.killed.size() >= 30);
  // A class without a certificate is listed with its reason, one with a form in the table.
  const std::string table = to_table(scores);
  for (const auto& [fault, note] : notes().at("faults").items()) {
    INFO(fault);
    const bool line = table.find("| " + fault + " |") != std::string::npos;
    const bool reason = table.find("* " + fault + ": ") != std::string::npos;
    CHECK(line != reason);
  }
}

TEST_CASE("a table says of each fault how many of its forms are killed under each contract") {
  ContractScore score{"fp32", 7, {}, {}};
  auto& forms = score.classes["SCALE"];
  forms["a"].killed = forms["a"].differs = forms["b"].differs = true;
  forms["c"].differs = false;
  score.also["STALE-MAX"].killed = score.also["STALE-MAX"].differs = true;
  CHECK(score.forms("SCALE") == 2);
  CHECK(score.killed("SCALE") == 1);
  const std::string table = to_table({score});
  CHECK(table.find("| cases | 7 |") != std::string::npos);
  CHECK(table.find("| SCALE | 1 / 2 |") != std::string::npos);
  CHECK(table.find("| STALE-MAX | killed |") != std::string::npos);
  CHECK(table.find("* SOFTCAP-ORDER: no form of it") != std::string::npos);
}

TEST_CASE("the page of the score is of the inputs that are generated today") {
  std::ifstream file("docs/score.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const std::regex date("Suite `([a-z]+)`, seed ([0-9]+), inputs ([0-9a-f]{12})\\.");
  int tables = 0;
  for (std::sregex_iterator one(page.begin(), page.end(), date), end; one != end; ++one) {
    const std::smatch& match = *one;
    INFO(match.str());
    CHECK(match[3] == digest_of(match[1].str(), std::stoull(match[2])));
    ++tables;
  }
  CHECK(tables >= 1);
}
