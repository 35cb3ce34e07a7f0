// A case from tensors: every shape and cross-condition of the table in docs/formats.md. Files,
// shards and the C interface all end here, so a problem that this function accepts is sound
// wherever it came from.
#pragma once

#include "oracle/case/tensor_table.hpp"

namespace ringproof::oracle {

/// Precondition: check_table accepted both sources. `problem` gives the tensors of the problem,
/// `answers` the answers; they may be the same source; upstream gradients come from the one that
/// has them. The result points into the tensors; its name is the path of `answers`. Throws
/// BadInput.
Case assemble_case(const Source& problem, const Source& answers, const Spec&);

}  // namespace ringproof::oracle
