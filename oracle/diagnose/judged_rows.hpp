// The query rows that a report is about: what is said about an answer is about the same rows.
#pragma once

#include "oracle/judge/check.hpp"

namespace ringproof::oracle {

/// At most `most` of them.
RowSet judged_rows(const Problem&, const CheckOptions&, const Report&, std::int64_t most);

}  // namespace ringproof::oracle
