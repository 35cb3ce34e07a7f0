// Merging partial answers (merge.hpp).
#include "tests/suite/merge.hpp"

#include <algorithm>
#include <cmath>

namespace ringproof::suite {

Answer merged(const Draft& draft, const std::vector<Answer>& parts) {
  Answer joined = parts.front();
  const auto width = static_cast<std::size_t>(draft.value_dim);
  std::vector<double>& out = joined["out"];
  std::vector<double>& lse = joined["lse"];
  for (std::size_t row = 0; row < lse.size(); ++row) {
    double largest = -INFINITY;
    for (const Answer& part : parts) largest = std::max(largest, part.at("lse")[row]);
    if (largest == -INFINITY) continue;  // nobody saw anything: the first part's row
    double sum = 0;
    for (const Answer& part : parts) sum += std::exp(part.at("lse")[row] - largest);
    for (std::size_t c = 0; c < width; ++c) {
      double value = 0;
      for (const Answer& part : parts) {
        value += std::exp(part.at("lse")[row] - largest) / sum * part.at("out")[row * width + c];
      }
      out[row * width + c] = value;
    }
    lse[row] = largest + std::log(sum);
  }
  return joined;
}

void judge_merged(const Trial& trial, const Draft& draft, const std::vector<Answer>& parts,
                  const Answer& answer) {
  std::string head = trial.contract();
  if (head.starts_with('{') || oracle::size_of(trial.wanted(draft).out) < 4) return;
  const std::size_t plus = std::min(head.find('+'), head.size());
  const std::string variants = head.substr(plus);
  head.resize(plus);
  // A ring's own partial results do not count here: the laws ask for one rank.
  if (const std::size_t ring = head.find("-ring"); ring != std::string::npos) head.resize(ring);
  if (parts.size() > 1) head += "-decode" + std::to_string(parts.size());
  trial.judge(draft, answer, head + variants);
}

}  // namespace ringproof::suite
