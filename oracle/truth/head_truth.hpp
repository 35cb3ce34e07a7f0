// Behind HeadTruth: the packed head, and rows with a look at the working memory of each batch
// before the next one overwrites it, which is how the backward pass gets at the weights.
#pragma once

#include <functional>

#include "oracle/truth/row_batch.hpp"

namespace ringproof::oracle {

/// Sees a computed batch; row r of it is ids[places[r]] of the call.
using AfterBatch = std::function<void(RowBatch&, std::span<const int> places)>;

struct HeadTruth::Impl {
  const Problem& problem;
  std::int64_t b, kv_head;
  PackedHead head;

  /// `after` not null: weights are kept for it.
  void rows(std::span<const RowId> ids, RowTruth* out, const AfterBatch* after) const;
};

}  // namespace ringproof::oracle
