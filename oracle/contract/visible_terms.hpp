// The visible keys of a row as terms of its sums: maximal runs, and where ranks may cut them.
#pragma once

#include "oracle/contract/accumulator.hpp"
#include "oracle/contract/row_keys.hpp"

namespace ringproof::oracle {

/// Runs of the visible keys (the sink is none of them), with the cuts C or the dealing out to ranks
/// that the contract's partials and the spec's ring imply. (3)
void visible_terms(const Contract&, const Problem&, const RowTruth&, const RowKeys&, Terms&);

/// The terms that one partial of at most `max_keys` keys has; 0: all of them. (15)
void partial_terms(const Terms& all, std::int64_t max_keys, Terms& part);

}  // namespace ringproof::oracle
