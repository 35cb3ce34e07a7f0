// ringproof-adversary: the long run of the adversary. Prints every bound that was exceeded (exit
// 1),
// and with --markdown the table of docs/contract.md.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <fstream>
#include <iostream>

#include "tests/adversary/backward_attack.hpp"
#include "tests/adversary/report.hpp"

using namespace ringproof::adversary;

namespace {

void show_exceeded(const std::vector<std::string>& exceeded) {
  constexpr std::size_t kShown = 4;
  for (std::size_t n = 0; n < std::min(kShown, exceeded.size()); ++n)
    std::cout << "EXCEEDED " << exceeded[n] << std::endl;
  if (exceeded.size() > kShown) std::cout << "and " << exceeded.size() - kShown << " more\n";
}

struct Totals {
  std::size_t contracts = 0, exceeded = 0;
  std::int64_t targets = 0, not_applicable = 0;
};

/// Attacks every case whose name contains `only`; writes the table to `markdown` as well, if given.
template <class Row, class AttackAll>
Totals attack_cases(const std::vector<ContractCase>& cases, const std::string& only,
                    const std::string& markdown, const AttackAll& attack_all) {
  std::vector<Row> rows;
  Totals totals;
  for (const ContractCase& contract : cases) {
    if (contract.name.find(only) == std::string::npos) continue;
    rows.push_back({});
    rows.back().contract = contract.name;
    rows.back().ratios = attack_all(contract);
    rows.back().gross_only = contract.gross_only;
    const auto& ratios = rows.back().ratios;
    show_exceeded(ratios.exceeded);
    ++totals.contracts;
    totals.exceeded += ratios.exceeded.size();
    totals.targets += ratios.targets;
    totals.not_applicable += ratios.not_applicable;
  }
  write_markdown(std::cout, rows);
  if (!markdown.empty()) {
    std::ofstream file(markdown);
    write_markdown(file, rows);
  }
  return totals;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Attacks every bound: rounding errors chosen by gradient, contracts x families x "
      "seeds"};
  Effort effort{.seeds = 4};
  std::string only, markdown;
  bool fields = false, gradients = false;
  app.add_option("--seeds", effort.seeds, "rows of each family and contract");
  app.add_option("--seed", effort.seed, "first seed");
  app.add_option("--longest", effort.longest, "keys of a row");
  app.add_option("--only", only, "contracts whose name contains this");
  app.add_option("--markdown", markdown, "write the table to this file");
  app.add_flag("--fields", fields, "one field at a time instead of whole contracts");
  app.add_flag("--gradients", gradients, "the backward pass instead of the forward pass");
  CLI11_PARSE(app, argc, argv);

  Totals totals;
  if (gradients) {
    const auto cases = fields ? backward_field_cases() : backward_cases();
    totals = attack_cases<BackwardTableRow>(
        cases, only, markdown,
        [&](const ContractCase& contract) { return attack_backward_all(contract, effort, true); });
  } else {
    std::vector<ContractCase> cases = fields ? field_cases() : preset_cases();
    if (!fields) {
      for (ContractCase& big : big_unit_cases()) cases.push_back(std::move(big));
    }
    totals = attack_cases<TableRow>(cases, only, markdown, [&](const ContractCase& contract) {
      return attack_all(contract, effort, true);
    });
  }
  std::cout << totals.contracts << " contracts, " << totals.targets << " targets attacked, "
            << totals.not_applicable << " not applicable, " << totals.exceeded
            << " bounds exceeded\n";
  return totals.exceeded == 0 ? 0 : 1;
}
