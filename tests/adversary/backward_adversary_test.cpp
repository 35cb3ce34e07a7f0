// The adversary of the backward pass as a test: no bound of a gradient is ever exceeded, and what
// is left out of a bound is missed. RINGPROOF_ADVERSARY_SEEDS lengthens the run.
#include <cstdlib>
#include <iostream>

#include "tests/adversary/backward_attack.hpp"
#include "tests/adversary/report.hpp"
#include "tests/support/catch.hpp"

namespace ringproof::adversary {
namespace {

Effort effort() {
  Effort effort{.seeds = 1, .longest = 10, .head_dims = {4, 4}};
  const char* seeds = std::getenv("RINGPROOF_ADVERSARY_SEEDS");
  if (seeds != nullptr) effort.seeds = std::atoi(seeds);
  return effort;
}

/// A quarter of the families, another one for each contract; all of them in a long run.
Effort part_of_families(std::size_t contract) {
  Effort part = effort();
  if (std::getenv("RINGPROOF_ADVERSARY_SEEDS") != nullptr) return part;
  part.every = 4;
  part.first = contract;
  return part;
}

TEST_CASE("the adversary never exceeds a bound of a gradient", "[adversary]") {
  std::vector<BackwardTableRow> rows;
  for (const ContractCase& contract : backward_cases()) {
    const Effort part = part_of_families(rows.size());
    rows.push_back({contract.name, attack_backward_all(contract, part), contract.gross_only});
    const BackwardRatios& ratios = rows.back().ratios;
    for (const std::string& line : ratios.exceeded) FAIL_CHECK(line);
    INFO(contract.name);
    CHECK(ratios.targets > ratios.not_applicable);
  }
  write_markdown(std::cout, rows);
}

TEST_CASE("each field of the backward pass alone is bounded, and its term is needed",
          "[adversary]") {
  std::size_t field_number = 0;
  for (const ContractCase& field : backward_field_cases()) {
    INFO(field.name);
    const Effort part = part_of_families(field_number++);
    for (const std::string& line : attack_backward_all(field, part, true).exceeded)
      FAIL_CHECK(line);
    Effort search = effort();
    search.until_exceeded = true;
    CHECK(!attack_backward_all(field, search).exceeded.empty());
  }
}

TEST_CASE("every trap of the gradients' bounds is one", "[adversary]") {
  const Effort search{.seeds = 4, .longest = 24, .head_dims = {8, 8}};
  for (const ContractCase& trap : backward_trap_cases()) {
    const BackwardRatios ratios = attack_backward_all(trap, search);
    const double worst = std::max(
        {largest(ratios.dq), largest(ratios.dk), largest(ratios.dv), largest(ratios.dsinks)});
    std::cout << trap.name << ": error over bound reaches " << worst << '\n';
    INFO(trap.name);
    CHECK(!ratios.exceeded.empty());
    for (const std::string& line : attack_backward_all(trap, search, true).exceeded)
      FAIL_CHECK(line);
  }
}

}  // namespace
}  // namespace ringproof::adversary
