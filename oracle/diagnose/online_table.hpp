// The lists of wrong rescalings and wrong merges, for tiles of one device and for ranks of a ring.
#pragma once

#include <string>

#include "oracle/diagnose/mutant.hpp"

namespace ringproof::oracle {

/// Adds every OnlineRule, with `where` behind its words.
void add_online_rules(Family&, const std::string& where, bool descending);
/// Adds every MergeRule.
void add_merge_rules(Family&, const std::string& where);

}  // namespace ringproof::oracle
