// What a row is apart from its numbers: its position, its document, and how many keys count.
// Implements the paragraph "Positions" of docs/formats.md for files that state any part of it or
// none.
#pragma once

#include "oracle/case/problem.hpp"
#include "oracle/case/tensor_table.hpp"

namespace ringproof::oracle {

/// Fills key_length, position_q, position_k, document_q, document_k and key_runs of `problem`,
/// whose sizes and spec are known, from key_lengths, cu_seqlens_*, positions_* and documents_* of
/// `source`.
void resolve_rows(const Source& source, Problem& problem);

/// Integers of a tensor in C order (any number of axes).
std::vector<std::int64_t> integers(const StoredTensor&);

/// positions_q or positions_k as one row a batch, broadcast from [N] where the file says it once,
/// with every value checked. Precondition: the tensor is there.
std::vector<std::int64_t> read_positions(const Source&, std::string_view name, std::int64_t batches,
                                         std::int64_t rows);  // [B, N]

}  // namespace ringproof::oracle
