// The long rows of docs/contract.md, section "power": five families of 64 columns, drawn in a fixed
// order from one generator, so that their figures can be compared with the printed ones.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/contract/row_fixture.hpp"

namespace ringproof::test {

enum class Family { randn, pos, LC, LE, LD };
inline constexpr Family kFamilies[] = {Family::randn, Family::pos, Family::LC, Family::LE,
                                       Family::LD};
std::string name(Family);

/// Rows of 8192, 32768, 131072, ... keys; each call of next_length() moves on.
class LongRows {
 public:
  void next_length();
  std::int64_t length() const { return length_; }
  const RowFixture& row(Family family) const { return rows_[static_cast<std::size_t>(family)]; }

 private:
  std::mt19937_64 generator_{17};
  std::normal_distribution<float> normal_;
  std::uniform_real_distribution<float> uniform_{0.5F, 1.5F};
  std::int64_t length_ = 2048;
  std::vector<RowFixture> rows_;
};

}  // namespace ringproof::test
