// From a description to the numbers of a problem. The same description gives the same problem.
#pragma once

#include <functional>

#include "tests/suite/description.hpp"

namespace ringproof::suite {

/// Types of the drafts, from the contract.
struct Types {
  oracle::DType input = oracle::DType::f32;     // q, k, v, dout
  oracle::DType addition = oracle::DType::f32;  // bias, sinks
};

Draft draw(const Description&, const Sizes&, const Types&);

/// Replaces q and k so that key j has the score score(j) for every query, before masks and
/// additions. Scores should have few binary digits: they are kept exactly where D is a power of 4
/// or the scale a power of two.
void prescribe_scores(Draft&, const std::function<double(Index)>& score);

/// Replaces v: element (b, h, j, c) of KV head h.
void prescribe_values(Draft&, const std::function<double(Index, Index, Index, Index)>& value);

/// Adds dout and dlse with random numbers, and asks for gradients.
void ask_for_gradients(Draft&, const Types&, std::uint32_t seed, bool with_lse);

/// Makes every key with visible(j) false invisible to all queries, by the mask.
void hide_keys(Draft&, const std::function<bool(Index)>& visible);

}  // namespace ringproof::suite
