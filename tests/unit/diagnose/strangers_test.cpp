// The strangers' files beside the repository, where they are: the share of refused answers whose
// class is named, and that no accepted answer is explained.
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <fstream>
#include <iostream>

#include "tests/unit/diagnose/planted.hpp"

using namespace ringproof::oracle;
using namespace ringproof::test;

namespace {

namespace fs = std::filesystem;

fs::path strangers() {
  const char* named = std::getenv("RINGPROOF_SHARED");
  return fs::path(named != nullptr ? named : RINGPROOF_SHARED) / "cases" / "strangers";
}

bool only_forward(const Case& input) {
  for (const Answer& answer : input.answers) {
    if (answer.kind != AnswerKind::out && answer.kind != AnswerKind::lse) return false;
  }
  return true;
}

}  // namespace

TEST_CASE(
    "at least 85 % of the strangers' refused forward answers are named, accepted ones never") {
  std::ifstream list(strangers() / "cases.json");
  if (!list) {
    std::cout << "skipped: " << strangers().string() << " is absent\n";
    return;
  }
  int refused = 0, named = 0;
  for (const auto& entry : nlohmann::json::parse(list)) {
    const std::string expected = entry["expected"].is_null() ? "" : entry["expected"];
    if (expected != "FAIL" && expected != "PASS") continue;
    const std::string file = (strangers() / std::string(entry["file"])).string();
    const Case input = read_case(file);
    if (!only_forward(input)) continue;
    const Contract contract = read_contract(input.problem.spec.contract, input.problem.spec);
    Diagnosed result{check(input, contract, {}), {}};
    result.diagnosis = diagnose(input, contract, {}, result.report);
    INFO(file);
    if (expected == "PASS") {
      CHECK(result.ids().empty());
      continue;
    }
    if (entry["diagnosis"].is_null()) continue;
    ++refused;
    named += static_cast<int>(result.ids().count(entry["diagnosis"]));
  }
  std::cout << "named " << named << " of " << refused << " refused forward answers\n";
  CHECK(100 * named >= 85 * refused);
}
