// The suites as lists: complete, named once, explained, and with power.
#include <set>

#include "oracle/case/sha256.hpp"
#include "oracle/diagnose/catalogue.hpp"
#include "oracle/generate/certified_kills.hpp"
#include "oracle/generate/gradient_kills.hpp"
#include "oracle/generate/notes.hpp"
#include "oracle/generate/power_of_case.hpp"
#include "oracle/generate/suite.hpp"
#include "oracle/generate/write_suite.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace ringproof::oracle;

std::string full_digest(const std::vector<Recipe>& recipes, std::uint64_t seed) {
  std::string digests;
  for (const Recipe& recipe : recipes) {
    for (const OwnedTensor& tensor : generate(recipe, seed).tensors) {
      digests += tensor.name + sha256_hex(tensor.bytes);
    }
  }
  return sha256_hex(digests);
}

}  // namespace

TEST_CASE("a seed gives the same bits everywhere, and another seed others") {
  CHECK(full_digest(suite("quick"), 1) ==
        "995274e2a5d15a3d5f8c22409fd6aaebd9311242f4e19f1b8b79dd4d3344908f");
  CHECK(full_digest(suite("quick"), 2) != full_digest(suite("quick"), 1));
}

TEST_CASE("names of cases are unique in a suite") {
  for (const std::string_view name : suite_names()) {
    std::set<std::string> names;
    for (const Recipe& recipe : suite(name)) CHECK(names.insert(recipe.name).second);
  }
}

TEST_CASE("every family and every semantics is in each suite for short contexts") {
  for (const char* name : {"quick", "full", "vectors"}) {
    std::set<std::string_view> family_names, semantic_names;
    for (const Recipe& recipe : suite(name)) {
      family_names.insert(recipe.family->name);
      semantic_names.insert(recipe.semantics);
    }
    CHECK(family_names.size() == input_families().size());
    CHECK(semantic_names.size() == semantics().size());
  }
}

TEST_CASE("every family and every semantics has a note, and every note belongs to one") {
  std::set<std::string> noted, there;
  for (const char* part : {"families", "semantics"}) {
    for (const auto& [name, note] : notes().at(part).items()) {
      noted.insert(name);
      CHECK(!note.at("shows").get<std::string>().empty());
      for (const auto& fault : note.at("against")) {
        CHECK(notes().at("faults").contains(fault.get<std::string>()));
      }
    }
  }
  for (const InputFamily& one : input_families()) there.insert(std::string(one.name));
  for (const Semantics& one : semantics()) there.insert(std::string(one.name));
  CHECK(noted == there);
  for (const auto& [name, fault] : notes().at("faults").items()) {
    INFO(name);
    CHECK(!fault.at("seen").empty());
  }
}

TEST_CASE("the exact answers of every quick case pass and have power under its contracts") {
  WalkOptions walk;
  walk.threads = 1;
  for (const Recipe& recipe : suite("quick")) {
    const GeneratedCase generated = generate(recipe, 1);
    for (const std::string& contract : contracts_of(recipe)) {
      INFO(recipe.name << ", " << contract);
      const CasePower power = power_of(generated, contract, walk);
      CHECK(power.refusal == "");
      CHECK(power.gradient_refusal == "");
    }
  }
}

TEST_CASE("an average within a hair of a tie is rounded to one of the two right answers") {
  Recipe close;  // a soft cap of 1 makes scores of -100000 equal up to e^-200000
  for (const Recipe& recipe : suite("full")) {
    if (recipe.name == "low.softcap.bf16") close = recipe;
  }
  REQUIRE(close.family != nullptr);
  close.gradients = false;
  WalkOptions walk;
  walk.threads = 1;
  const CasePower power = power_of(generate(close, 1), "bf16-flash", walk);
  CHECK(power.refusal == "");
}

TEST_CASE("a case whose gradients have no power goes without upstream gradients and says why") {
  Recipe small;  // the only key has the weight 1, and the gradient of its score is zero
  for (const Recipe& recipe : suite("full")) {
    if (recipe.name == "cancelling.one-key.f32") small = recipe;
  }
  REQUIRE(small.family != nullptr);
  SuiteOptions options;
  options.walk.threads = 1;
  const CertifiedCase certified = certified_case(small, options);
  CHECK(certified.refusal == "");
  CHECK(certified.without_gradients ==
        "cancelling.one-key.f32: fp32: dk: no power: zeros would pass on every judged element");
  CHECK(certified.generated.find("dout") == nullptr);
  CHECK(certified.generated.about.contains("kills"));
}

TEST_CASE(
    "every fault of the notes is a mistake of the catalogue, or says why it has no certificate") {
  std::set<std::string> known;
  const WantsForm collect = [&](const std::string& id, const std::string&) {
    known.insert(id);
    return false;
  };
  for (const Recipe& recipe : suite("quick")) {
    const GeneratedCase generated = generate(recipe, 1);
    gradient_kills(generated, read_contract(contracts_of(recipe).back(), recipe.spec), collect);
    const Case problem = generated.as_case();
    const Contract contract = read_contract(contracts_of(recipe).back(), recipe.spec);
    const Subject subject{problem, contract, contract.partials.count, {}};
    for (const Family& family : mutant_catalogue(subject)) {
      for (const Mutant& mutant : family.mutants) {
        known.insert(mutant.id);
        for (std::size_t first = 0; first < mutant.also.size();) {  // "A, B"
          const std::size_t last = std::min(mutant.also.find(", ", first), mutant.also.size());
          known.insert(mutant.also.substr(first, last - first));
          first = last + 2;
        }
      }
    }
  }
  for (const auto& [fault, note] : notes().at("faults").items()) {
    INFO(fault);
    CHECK(known.count(fault) + notes().at("without certificates").count(fault) >= 1);
  }
}

TEST_CASE("mistakes of the backward pass are certainly refused") {
  const GeneratedCase generated = generate(suite("quick")[1], 1);
  const Contract contract = read_contract("fp16-ring4", generated.recipe.spec);
  std::set<std::string> killed;
  for (const FormOutcome& outcome : gradient_kills(generated, contract, first_forms(9))) {
    INFO(outcome.id << ": " << outcome.words);
    CHECK(outcome.differs);
    if (!outcome.kill) continue;
    killed.insert(outcome.id);
    const Certificate& kill = *outcome.kill;
    const bool overlap = kill.truth.low <= kill.mutant.high && kill.mutant.low <= kill.truth.high;
    CHECK(!overlap);
  }
  for (const char* id : {"DQ-ZERO", "DKV-SWAP", "DOUT-IGNORED", "LSE-GRAD", "DELTA", "RING-HOPS"}) {
    INFO(id);
    CHECK(killed.count(id) == 1);
  }
}

TEST_CASE("a mask that is dropped is certainly refused, and an equal function never") {
  const GeneratedCase generated = generate(suite("quick")[1], 1);
  REQUIRE(generated.recipe.semantics == "causal");
  const Contract contract = read_contract("fp16-flash", generated.recipe.spec);
  bool mask_dropped = false;
  for (const FormOutcome& outcome : certified_kills(generated, contract, first_forms(3))) {
    INFO(outcome.id << ": " << outcome.words);
    if (outcome.kill) {
      const Certificate& kill = *outcome.kill;
      const bool overlap = kill.truth.low <= kill.mutant.high && kill.mutant.low <= kill.truth.high;
      CHECK(!overlap);
      CHECK(kill.margin > 1);
      CHECK(outcome.differs);
    }
    mask_dropped = mask_dropped || (outcome.id == "MASK-DROP" && outcome.kill);
  }
  CHECK(mask_dropped);
}

TEST_CASE("an empty row is certainly refused where it holds NaN for zeros or zeros for NaN") {
  const auto killed = [](EmptyRow demanded) {
    Recipe recipe = suite("quick")[1];
    recipe.spec.causal = Causal::bottom_right;
    recipe.queries = recipe.keys + 3;
    recipe.spec.empty_row = demanded;
    const GeneratedCase generated = generate(recipe, 1);
    const Contract contract = read_contract("fp16-flash", generated.recipe.spec);
    std::set<std::string> words;
    for (const FormOutcome& outcome : certified_kills(
             generated, contract, [](const auto&id, auto&) { return id == "EMPTY-ROW"; })) {
      if (outcome.kill && outcome.words.find("see nothing") != std::string::npos) {
        words.insert(outcome.words);
      }
    }
    return words;
  };
  const std::string mean = "rows that see nothing are the mean of V";
  CHECK(killed(EmptyRow::zero) == std::set<std::string>{"rows that see nothing are NaN", mean});
  CHECK(killed(EmptyRow::nan) == std::set<std::string>{mean, "rows that see nothing are zero"});
  CHECK(killed(EmptyRow::any).empty());
}
