// Moving rows (join_rows.hpp). Every tensor is seen as [outer, rows, inner]; an outer index knows
// its batch, since the batch axis is the outermost wherever there is one.
#include "oracle/case/join_rows.hpp"

#include <cstring>

#include "oracle/case/error.hpp"
#include "oracle/case/stored_view.hpp"
#include "oracle/case/words.hpp"

namespace ringproof::oracle {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& name,
                         const std::string& what) {
  throw BadInput(path + ": tensor " + in_quotes(name) + ": " + what);
}

std::int64_t product(const std::vector<std::int64_t>& shape, std::size_t first, std::size_t last) {
  std::int64_t result = 1;
  for (std::size_t axis = first; axis < last; ++axis) result *= shape[axis];
  return result;
}

/// One tensor as [outer, rows, inner bytes].
struct Rows {
  std::int64_t outer, rows, inner;
  const std::byte* data;

  Rows(const StoredTensor& tensor, std::size_t axis)
      : outer(product(tensor.shape, 0, axis)),
        rows(tensor.shape[axis]),
        inner(product(tensor.shape, axis + 1, tensor.shape.size()) *
              static_cast<std::int64_t>(size_of(tensor.dtype))),
        data(tensor.data) {}

  const std::byte* at(std::int64_t o, std::int64_t n) const {
    return data + (o * rows + n) * inner;
  }
};

/// Batch of an outer index of one tensor; 0 for a tensor that is the same in every batch.
struct Batches {
  std::int64_t outer_per_batch = 0;

  Batches(const Pieces& pieces, const StoredTensor& tensor, std::size_t axis,
          const RowPlaces& places) {
    if (pieces.batched && axis > 0 && tensor.shape[0] == places.batches) {
      outer_per_batch = product(tensor.shape, 1, axis);
    } else if (!places.same_in_all_batches()) {
      refuse(pieces.paths[0], pieces.name, "has one batch, but positions differ between batches");
    }
  }
  std::int64_t operator()(std::int64_t o) const {
    return outer_per_batch == 0 ? 0 : o / outer_per_batch;
  }
};

/// Along `axis` each shard must have its rows; along the others all must have the same sizes.
void expect_frame(const Pieces& pieces, std::size_t axis, const RowPlaces& places) {
  const StoredTensor& first = pieces.tensors.front();
  for (std::size_t r = 0; r < pieces.tensors.size(); ++r) {
    const StoredTensor& tensor = pieces.tensors[r];
    if (tensor.shape.size() <= axis || tensor.shape[axis] != places.held[r]) {
      refuse(pieces.paths[r], pieces.name,
             "shape " + text_of(tensor.shape) + " does not have the " +
                 std::to_string(places.held[r]) + " rows of the shard");
    }
    bool same = tensor.shape.size() == first.shape.size();
    for (std::size_t n = 0; same && n < first.shape.size(); ++n) {
      same = n == axis || tensor.shape[n] == first.shape[n];
    }
    if (same) continue;
    refuse(pieces.paths[r], pieces.name,
           "shape " + text_of(tensor.shape) + " does not join " + text_of(first.shape) + " of " +
               pieces.paths[0]);
  }
}

void expect_columns(const Pieces& pieces, std::size_t axis, const RowPlaces& places) {
  for (std::size_t r = 0; r < pieces.tensors.size(); ++r) {
    const auto& shape = pieces.tensors[r].shape;
    if (shape.size() == axis + 1 && shape[axis] == places.held[r]) continue;
    refuse(pieces.paths[r], pieces.name,
           "shape " + text_of(shape) + " does not have a column for each of the " +
               std::to_string(places.held[r]) + " keys");
  }
}

/// Rows that every shard holds must agree bit for bit.
void expect_equal_rows(const Pieces& pieces, std::size_t axis, const RowPlaces& places,
                       const Batches& batch) {
  const Rows first(pieces.tensors[0], axis);
  for (std::size_t r = 1; r < pieces.tensors.size(); ++r) {
    const Rows other(pieces.tensors[r], axis);
    for (std::int64_t o = 0; o < first.outer; ++o) {
      for (std::int64_t n = 0; n < places.rows; ++n) {
        const auto index = static_cast<std::size_t>(batch(o) * places.rows + n);
        const std::byte* mine = first.at(o, places.local[0][index]);
        if (std::memcmp(mine, other.at(o, places.local[r][index]),
                        static_cast<std::size_t>(first.inner)) == 0) {
          continue;
        }
        refuse(pieces.paths[r], pieces.name,
               "row " + std::to_string(n) + " differs from that in " + pieces.paths[0]);
      }
    }
  }
}

}  // namespace

NewTensor new_tensor(DType type, std::vector<std::int64_t> shape, Storage& storage) {
  NewTensor result{{type, std::move(shape), {}, nullptr}, nullptr};
  // At least one byte: a tensor without elements is present, too.
  auto buffer = std::make_shared<std::vector<std::byte>>(result.tensor.bytes() + 1);
  result.data = buffer->data();
  result.tensor.data = result.data;
  storage.push_back(std::move(buffer));
  return result;
}

StoredTensor join_rows(const Pieces& pieces, std::size_t axis, const RowPlaces& places,
                       Storage& storage) {
  expect_frame(pieces, axis, places);
  const Batches batch(pieces, pieces.tensors[0], axis, places);
  if (places.everywhere) expect_equal_rows(pieces, axis, places, batch);
  std::vector<std::int64_t> shape = pieces.tensors[0].shape;
  shape[axis] = places.rows;
  NewTensor joined = new_tensor(pieces.tensors[0].dtype, std::move(shape), storage);
  std::vector<Rows> shards;
  for (const StoredTensor& tensor : pieces.tensors) shards.emplace_back(tensor, axis);
  std::byte* next = joined.data;
  for (std::int64_t o = 0; o < shards[0].outer; ++o) {
    for (std::int64_t n = 0; n < places.rows; ++n) {
      const Place& place = places.at(batch(o), n);
      const Rows& shard = shards[static_cast<std::size_t>(place.shard)];
      std::memcpy(next, shard.at(o, place.row), static_cast<std::size_t>(shard.inner));
      next += shard.inner;
    }
  }
  return joined.tensor;
}

StoredTensor join_equal(const Pieces& pieces) {
  const StoredTensor& first = pieces.tensors.front();
  for (std::size_t r = 1; r < pieces.tensors.size(); ++r) {
    const StoredTensor& tensor = pieces.tensors[r];
    if (tensor.shape == first.shape && std::memcmp(tensor.data, first.data, first.bytes()) == 0)
      continue;
    refuse(pieces.paths[r], pieces.name, "differs from that in " + pieces.paths[0]);
  }
  return first;
}

StoredTensor expand_rows(const StoredTensor& tensor, std::size_t axis, std::int64_t rows,
                         Storage& storage) {
  if (tensor.shape[axis] == rows) return tensor;
  const Rows before(tensor, axis);
  std::vector<std::int64_t> shape = tensor.shape;
  shape[axis] = rows;
  NewTensor expanded = new_tensor(tensor.dtype, std::move(shape), storage);
  std::byte* next = expanded.data;
  for (std::int64_t o = 0; o < before.outer; ++o) {
    for (std::int64_t n = 0; n < rows; ++n) {
      std::memcpy(next, before.at(o, n / (rows / before.rows)),
                  static_cast<std::size_t>(before.inner));
      next += before.inner;
    }
  }
  return expanded.tensor;
}

Pieces order_columns(const Pieces& pieces, const RowPlaces& places, Storage& storage) {
  const std::size_t axis = pieces.tensors.front().shape.size() - 1;
  expect_columns(pieces, axis, places);
  Pieces ordered = pieces;
  for (std::size_t r = 0; r < pieces.tensors.size(); ++r) {
    const Rows columns(pieces.tensors[r], axis);
    const Batches batch(pieces, pieces.tensors[r], axis, places);  // shards have other outer sizes
    NewTensor target = new_tensor(pieces.tensors[r].dtype, pieces.tensors[r].shape, storage);
    std::byte* next = target.data;
    for (std::int64_t o = 0; o < columns.outer; ++o) {
      for (std::int64_t n = 0; n < places.rows; ++n) {
        const auto index = static_cast<std::size_t>(batch(o) * places.rows + n);
        std::memcpy(next, columns.at(o, places.local[r][index]),
                    static_cast<std::size_t>(columns.inner));
        next += columns.inner;
      }
    }
    ordered.tensors[r] = target.tensor;
  }
  return ordered;
}

}  // namespace ringproof::oracle
