// Joining the rows of stored tensors: bytes are moved, and compared where shards repeat each other.
// Which tensor has which kind of rows is known to shards.cpp.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "oracle/case/row_places.hpp"
#include "oracle/case/safetensors.hpp"

namespace ringproof::oracle {

/// Memory that joined tensors own.
using Storage = std::vector<std::shared_ptr<const void>>;

/// The same tensor in every shard, for messages with name and paths.
struct Pieces {
  std::string name;
  std::vector<std::string> paths;     // [R]
  std::vector<StoredTensor> tensors;  // [R], C order, equal types
  bool batched = false;               // the first axis is the batch, full or 1
};

/// A tensor of C order in new memory that `storage` keeps. `data` may be written through the
/// second.
struct NewTensor {
  StoredTensor tensor;
  std::byte* data;
};
NewTensor new_tensor(DType, std::vector<std::int64_t> shape, Storage& storage);

/// Joins along axis `axis` by `places`; the other axes must agree. A tensor that does not tell
/// batches apart needs the same places in all of them.
StoredTensor join_rows(const Pieces&, std::size_t axis, const RowPlaces& places, Storage& storage);

/// The tensor that all shards must hold bit for bit alike.
StoredTensor join_equal(const Pieces&);

/// Repeats rows along `axis`, which has 1 of them or a divisor of `rows`, until there are `rows`.
StoredTensor expand_rows(const StoredTensor&, std::size_t axis, std::int64_t rows,
                         Storage& storage);

/// Brings the last axis of each piece into the order of the keys. Precondition: places.everywhere.
Pieces order_columns(const Pieces&, const RowPlaces& places, Storage& storage);

}  // namespace ringproof::oracle
