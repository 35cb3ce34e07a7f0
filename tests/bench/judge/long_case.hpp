// Long cases of one head, in the families of docs/contract.md, section "power", answered correctly
// on the rows that a seeded sample will ask for (and nowhere else: an answer for every row would
// take hours).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "oracle/case/case_file.hpp"

namespace ringproof::bench {

/// randn: normal scores and values. LE: equal scores, integers that cancel. LD: scores on multiples
/// of ln 2. LC: normal scores. The values of LD and LC are 16 positive columns and 48 coded by
/// blocks of keys.
struct LongCase {
  std::vector<std::byte> q, k, v, out, lse;  // BF16 [N, D], [N, D], [N, 64], [N, 64]; F32 [N]
  oracle::Case input;                        // views of them
};

LongCase long_case(const std::string& family, std::int64_t keys, std::int64_t sampled_rows,
                   std::uint64_t seed);

/// The same as a case file whose spec names `contract`.
void write_long_case(const LongCase&, const std::string& contract, const std::string& path);

}  // namespace ringproof::bench
