// Joining the tensors of shards, name by name: which rows a tensor has, and what must be equal.
// Places of rows come from row_places.cpp, bytes are moved by join_rows.cpp.
#pragma once

#include <vector>

#include "oracle/case/join_rows.hpp"
#include "oracle/case/row_places.hpp"
#include "oracle/case/spec.hpp"
#include "oracle/case/tensor_table.hpp"

namespace ringproof::oracle {

/// The tensors of all shards as those of one file, at the path of the first shard. positions_* are
/// left out, because a row now is its place. `storage` keeps what is new; the rest stays in the
/// shards' own memory. Throws BadInput naming tensor and shard.
Source join_tensors(const std::vector<Source>& shards, AxisOrder, const RowPlaces& query,
                    const RowPlaces& key, Storage& storage);

}  // namespace ringproof::oracle
