// The adversary as a test: no bound is ever exceeded, and every term of the bounds is needed.
// RINGPROOF_ADVERSARY_SEEDS lengthens the run; ringproof-adversary writes the table of
// docs/contract.md.
#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "tests/adversary/report.hpp"
#include "tests/support/catch.hpp"

namespace ringproof::adversary {
namespace {

Effort effort() {
  const char* seeds = std::getenv("RINGPROOF_ADVERSARY_SEEDS");
  if (seeds != nullptr) return {.seeds = std::atoi(seeds)};
  return {.seeds = 1, .longest = 32, .head_dims = {8, 8}};
}

void check_never_exceeded(const std::vector<ContractCase>& cases) {
  std::vector<TableRow> rows;
  for (const ContractCase& contract : cases) {
    rows.push_back({contract.name, attack_all(contract, effort()), contract.gross_only});
    const Ratios& ratios = rows.back().ratios;
    for (const std::string& line : ratios.exceeded) FAIL_CHECK(line);
    INFO(contract.name);
    CHECK(ratios.targets > ratios.not_applicable);
  }
  write_markdown(std::cout, rows);
}

TEST_CASE("the adversary never exceeds a bound of a preset", "[adversary]") {
  check_never_exceeded(preset_cases());
}

TEST_CASE("the adversary never exceeds a bound of a contract with big units", "[adversary]") {
  check_never_exceeded(big_unit_cases());
}

TEST_CASE("each field alone is bounded, and its term is needed", "[adversary]") {
  for (const ContractCase& field : field_cases()) {
    INFO(field.name);
    for (const std::string& line : attack_all(field, effort(), true).exceeded) FAIL_CHECK(line);
    CHECK(!attack_all(field, effort()).exceeded.empty());
  }
}

TEST_CASE("every trap of the bounds is one: what is left out is missed", "[adversary]") {
  const Effort search{.seeds = 24, .longest = 48, .head_dims = {8, 8}};
  for (const ContractCase& trap : trap_cases()) {
    const Ratios ratios = attack_all(trap, search);
    const double worst =
        std::max({largest(ratios.out), largest(ratios.lse), largest(ratios.functional)});
    std::cout << trap.name << ": error over bound reaches " << worst << '\n';
    INFO(trap.name);
    CHECK(!ratios.exceeded.empty());
    for (const std::string& line : attack_all(trap, search, true).exceeded) FAIL_CHECK(line);
  }
}

/// Largest error over bound of out when the judge is shown the rows of a family in the wrong way.
double worst_shown(const std::string& contract, Family family, std::int64_t longest, Shown how) {
  const oracle::Contract kernel = oracle::read_contract(contract, oracle::Spec{});
  double worst = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    const Row row = make_row(family, {.longest = longest}, random);
    worst = std::max(worst, attack(kernel, kernel, row, random, how).out.ratio());
  }
  return worst;
}

TEST_CASE("scattered keys cost more steps than consecutive ones", "[adversary]") {
  // Judged as if the visible keys were neighbours, the steps of a truncating unit are too few: (3).
  const std::string contract =
      R"({"base":"bf16-io","p":{"u":"0"},"pv":{"acc":{"model":"mma","b":16,"neab":-10}}})";
  CHECK(worst_shown(contract, Family::scattered, 96, Shown::without_holes) > 1);
  CHECK(worst_shown(contract, Family::scattered, 96, Shown::as_it_is) <= 1);
}

TEST_CASE("a sink judged as a key lacks its shift", "[adversary]") {
  // The constant's error is a temperature that does not act on the sink: t_c max(|M|, |s - M|) in
  // (7), (10).
  const std::string contract = R"({"base":"fp32-gpu","score":{"scale_const_u":"0x1p-10"}})";
  CHECK(worst_shown(contract, Family::sink_large_maximum, 16, Shown::sink_as_key) > 1);
  CHECK(worst_shown(contract, Family::sink_large_maximum, 16, Shown::as_it_is) <= 1);
}

}  // namespace
}  // namespace ringproof::adversary
