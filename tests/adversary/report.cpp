// Writing the verification table (report.hpp).
#include "tests/adversary/report.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringproof::adversary {

double largest(const std::vector<double>& ratios) {
  return ratios.empty() ? 0 : *std::max_element(ratios.begin(), ratios.end());
}

double median(std::vector<double> ratios) {
  if (ratios.empty()) return 0;
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  return *middle;
}

void write_markdown(std::ostream& out, const std::vector<TableRow>& rows) {
  const auto pair = [](const std::vector<double>& ratios) {
    return ratios.empty() ? std::string("-")
                          : fmt::format("{:.3f} ({:.2f})", largest(ratios), median(ratios));
  };
  out << "| contract | rows | out | out, known ring | LSE | functional | worst family for out |\n";
  out << "|---|---|---|---|---|---|---|\n";
  for (const TableRow& row : rows) {
    const Ratios& r = row.ratios;
    if (row.gross_only)
      out << fmt::format("| {} | {} | no gross violation | | | | |\n", row.contract, r.targets);
    else
      out << fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", row.contract, r.targets,
                         pair(r.out), pair(r.known_out), pair(r.lse), pair(r.functional),
                         r.worst_family);
  }
}

}  // namespace ringproof::adversary
