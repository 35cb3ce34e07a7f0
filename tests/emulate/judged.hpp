// Drawn cases before the judge: how many are accepted, and how near to their bounds they come.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "oracle/judge/check.hpp"
#include "tests/emulate/draw.hpp"

namespace ringproof::emulate {

/// One drawn case after check(): a conforming kernel, so anything refused is a false alarm.
struct Judged {
  oracle::Report report;
  bool refused() const { return report.verdict == oracle::Verdict::fail; }
  /// Largest error over bound of a tensor, the output's rounding counted as allowed; 0 if not
  /// judged.
  double worst(oracle::AnswerKind) const;
  double worst_functional() const;
  std::int64_t elements(oracle::AnswerKind) const;
  /// Of dq, dk, dv, dbias and dsinks together.
  double worst_gradient() const;
  std::int64_t gradient_elements() const;
  std::int64_t not_applicable() const;
  /// What was refused, in one line.
  std::string complaint() const;
};
Judged judge(const Draw&);

/// Figures of many draws of one contract.
struct ContractFigures {
  std::int64_t cases = 0, passed = 0, undecided = 0, refused = 0;
  std::int64_t out_elements = 0, lse_elements = 0, gradient_elements = 0, not_applicable_rows = 0;
  double out = 0, lse = 0, functional = 0, gradients = 0;
  void add(const Judged&);
  void add(const ContractFigures&);
};

struct Campaign {
  std::map<std::string, ContractFigures> by_contract;
  std::vector<std::string>
      refused;  // one line each: what was drawn, what was refused, how to repeat it
  std::map<std::string, std::int64_t> undecided_because;
  std::int64_t count() const;
};

struct CampaignOptions {
  std::uint64_t first_seed = 0;
  std::int64_t count = 100;
  int threads = 1;
  bool gradients = true;  // also a backward pass, where draw_gradients() has one
  std::string only = {};  // entries whose contract contains this
  std::function<void(const Draw&)> refused = {};  // called for every false alarm, one at a time
};
Campaign run_campaign(const CampaignOptions&);

/// Markdown: a row a preset (or a contract, with `every_contract`).
void write_markdown(std::ostream&, const Campaign&, bool every_contract);

}  // namespace ringproof::emulate
