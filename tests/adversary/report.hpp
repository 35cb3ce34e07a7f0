// The table of the numeric verification (docs/contract.md): largest and median error over bound.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "tests/adversary/attack.hpp"

namespace ringproof::adversary {

struct TableRow {
  std::string contract;
  Ratios ratios;
  bool gross_only = false;
};

/// One Markdown table; figures with three decimals, "-" where nothing was measured.
void write_markdown(std::ostream&, const std::vector<TableRow>&);
double largest(const std::vector<double>&);
double median(std::vector<double>);

}  // namespace ringproof::adversary
