// ringproof-adversary: the long run of the adversary. Prints every bound that was exceeded (exit
// 1),
// and with --markdown the table of docs/contract.md.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <fstream>
#include <iostream>

#include "tests/adversary/report.hpp"

using namespace ringproof::adversary;

namespace {

TableRow attacked(const ContractCase& contract, const Effort& effort) {
  TableRow row{.contract = contract.name,
               .ratios = attack_all(contract, effort, true),
               .gross_only = contract.gross_only};
  constexpr std::size_t kShown = 4;
  const std::vector<std::string>& exceeded = row.ratios.exceeded;
  for (std::size_t n = 0; n < std::min(kShown, exceeded.size()); ++n)
    std::cout << "EXCEEDED " << exceeded[n] << std::endl;
  if (exceeded.size() > kShown) std::cout << "and " << exceeded.size() - kShown << " more\n";
  return row;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Attacks every forward bound: rounding errors chosen by gradient, contracts x families x "
      "seeds"};
  Effort effort{.seeds = 4};
  std::string only, markdown;
  bool fields = false;
  app.add_option("--seeds", effort.seeds, "rows of each family and contract");
  app.add_option("--seed", effort.seed, "first seed");
  app.add_option("--longest", effort.longest, "keys of a row");
  app.add_option("--only", only, "contracts whose name contains this");
  app.add_option("--markdown", markdown, "write the table to this file");
  app.add_flag("--fields", fields, "one field at a time instead of whole contracts");
  CLI11_PARSE(app, argc, argv);

  std::vector<ContractCase> cases;
  if (fields) {
    cases = field_cases();
  } else {
    cases = preset_cases();
    for (ContractCase& big : big_unit_cases()) cases.push_back(std::move(big));
  }
  std::vector<TableRow> rows;
  std::size_t exceeded = 0;
  std::int64_t targets = 0, not_applicable = 0;
  for (const ContractCase& contract : cases) {
    if (contract.name.find(only) == std::string::npos) continue;
    rows.push_back(attacked(contract, effort));
    exceeded += rows.back().ratios.exceeded.size();
    targets += rows.back().ratios.targets;
    not_applicable += rows.back().ratios.not_applicable;
  }
  write_markdown(std::cout, rows);
  if (!markdown.empty()) {
    std::ofstream file(markdown);
    write_markdown(file, rows);
  }
  std::cout << rows.size() << " contracts, " << targets << " rows attacked, " << not_applicable
            << " not applicable, " << exceeded << " bounds exceeded\n";
  return exceeded == 0 ? 0 : 1;
}
