// Ranges that hold every refused element (histogram.hpp).
#include "oracle/diagnose/histogram.hpp"

#include <algorithm>

namespace ringproof::oracle {

namespace {

std::string range_text(std::size_t first, std::size_t last) {
  if (first == last) return " = " + std::to_string(first);
  return " from " + std::to_string(first) + " to " + std::to_string(last);
}

}  // namespace

std::optional<Finding> narrow(const std::string& name, const Histogram& histogram) {
  std::size_t first = histogram.refused.size(), last = 0;
  std::int64_t judged = 0, refused = 0, inside = 0;
  for (std::size_t n = 0; n < histogram.refused.size(); ++n) {
    judged += histogram.judged[n];
    refused += histogram.refused[n];
    if (histogram.refused[n] == 0) continue;
    first = std::min(first, n);
    last = n;
  }
  if (refused == 0) return std::nullopt;
  for (std::size_t n = first; n <= last; ++n) inside += histogram.judged[n];
  // Only the few values that hold refused elements, if they do not make up a range.
  std::int64_t marked = 0, values = 0, holes = 0;
  std::string list;
  for (std::size_t n = first; n <= last; ++n) {
    if (histogram.refused[n] == 0) {
      holes += histogram.judged[n] > 0;
      continue;
    }
    marked += histogram.judged[n];
    list += (values++ == 0 ? " " : ", ") + std::to_string(n);
  }
  const bool as_list = values <= 4 && holes > 0;
  // A residue is worth a line for its pattern: a range of which much is missing has none.
  const bool gaps = holes > 0 && !as_list;
  const bool residue = name.find(" mod ") != std::string::npos;
  if (residue && gaps && 8 * holes > values) return std::nullopt;
  const auto share = [&](std::int64_t part) {
    return static_cast<double>(part) / static_cast<double>(judged);
  };
  const std::int64_t part = as_list ? marked : inside;
  if (share(part) > 0.75) return std::nullopt;
  const std::string where = as_list ? " in" + list : range_text(first, last);
  return Finding{name + where + (gaps ? ", with gaps" : ""), share(part),
                 static_cast<double>(refused) / static_cast<double>(part)};
}

namespace {

/// True if a residue says less than what is said of the number itself: "query mod 64 = 21" beside
/// "query = 21".
bool is_redundant(const Finding& finding, const std::vector<Finding>& all) {
  const std::size_t mod = finding.words.find(" mod ");
  if (mod == std::string::npos) return false;
  const std::string number = finding.words.substr(0, mod) + " ";
  return std::any_of(all.begin(), all.end(), [&](const Finding& other) {
    return other.words.starts_with(number) && other.words.find(" mod ") == std::string::npos &&
           other.judged_share <= finding.judged_share;
  });
}

}  // namespace

void keep_narrowest(std::vector<Finding>& findings) {
  const std::vector<Finding> all = findings;
  findings.erase(std::remove_if(findings.begin(), findings.end(),
                                [&](const Finding& one) { return is_redundant(one, all); }),
                 findings.end());
  constexpr std::size_t kMostFindings = 6;
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    return a.judged_share < b.judged_share;
  });
  if (findings.size() > kMostFindings) findings.resize(kMostFindings);
}

}  // namespace ringproof::oracle
