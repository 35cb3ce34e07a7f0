// Resolving positions and documents (rows.hpp): integers are copied out of the file once and
// checked in the copy, so that what was checked is what is used.
#include "oracle/case/rows.hpp"

#include <algorithm>
#include <limits>

#include "oracle/case/stored_view.hpp"

namespace ringproof::oracle {
namespace {

/// Distances of positions within this range are exact in binary64, and no sum of them overflows.
constexpr std::int64_t kFarthestPosition = std::int64_t{1} << 52;

/// One side of the problem, query or key, by the names of its tensors.
struct Side {
  std::string_view positions, documents, cu_seqlens;
  std::int64_t rows;
};

struct Reader {
  const Source& source;
  Problem& problem;
  Side query{"positions_q", "documents_q", "cu_seqlens_q", problem.queries};
  Side key{"positions_k", "documents_k", "cu_seqlens_k", problem.keys};

  bool has(std::string_view name) const { return source.find(name) != nullptr; }

  void read_key_lengths() {
    const auto batches = static_cast<std::size_t>(problem.batches);
    problem.key_length.assign(batches, problem.keys);
    const StoredTensor* tensor = source.find("key_lengths");
    if (tensor == nullptr) return;
    expect_list("key_lengths", *tensor, problem.batches);
    problem.key_length = integers(*tensor);
    for (std::size_t b = 0; b < batches; ++b) {
      check_range("key_lengths", b, problem.key_length[b], 0, problem.keys);
    }
  }

  void expect_list(std::string_view name, const StoredTensor& tensor, std::int64_t length) const {
    if (tensor.shape.size() == 1 && tensor.shape[0] == length) return;
    refuse_tensor(source, name,
                  "shape " + text_of(tensor.shape) + " must be [" + std::to_string(length) + "]");
  }

  void check_range(std::string_view name, std::size_t index, std::int64_t value, std::int64_t least,
                   std::int64_t most) const {
    if (value >= least && value <= most) return;
    refuse_tensor(source, name,
                  "entry " + std::to_string(index) + " is " + std::to_string(value) + ", outside " +
                      std::to_string(least) + " .. " + std::to_string(most));
  }

  /// Both names or none of them; true if both.
  bool both(std::string_view a, std::string_view b) const {
    if (has(a) == has(b)) return has(a);
    refuse_tensor(source, has(a) ? a : b, "needs " + std::string(has(a) ? b : a) + " beside it");
  }

  /// Row boundaries of the packed documents: 0, non-decreasing, N.
  std::vector<std::int64_t> read_boundaries(const Side& side) const {
    const StoredTensor& tensor = *source.find(side.cu_seqlens);
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();  // as document numbers
    if (tensor.shape.size() != 1 || tensor.shape[0] < 1 || tensor.shape[0] > kMost) {
      refuse_tensor(source, side.cu_seqlens, "shape " + text_of(tensor.shape) + " must be [S + 1]");
    }
    auto boundaries = integers(tensor);
    std::int64_t before = 0;
    for (std::size_t n = 0; n < boundaries.size(); ++n) {
      if (n == 0) check_range(side.cu_seqlens, n, boundaries[n], 0, 0);
      check_range(side.cu_seqlens, n, boundaries[n], before, side.rows);
      before = boundaries[n];
    }
    check_range(side.cu_seqlens, boundaries.size() - 1, before, side.rows, side.rows);
    return boundaries;
  }

  /// Default positions of `count` rows from `first` on: i + offset.
  static void number(std::vector<std::int64_t>& positions, std::int64_t first, std::int64_t count,
                     std::int64_t offset) {
    for (std::int64_t i = 0; i < count; ++i) {
      positions[static_cast<std::size_t>(first + i)] = i + offset;
    }
  }

  std::int64_t offset(std::int64_t queries, std::int64_t keys) const {
    return problem.spec.causal == Causal::bottom_right ? keys - queries : 0;
  }

  /// Packed documents: document s holds rows [bounds[s], bounds[s + 1]) on both sides.
  void read_packed() {
    if (problem.batches != 1) {
      refuse_tensor(source, "cu_seqlens_q",
                    "packed documents need B = 1, not " + std::to_string(problem.batches));
    }
    const auto bounds_q = read_boundaries(query);
    const auto bounds_k = read_boundaries(key);
    if (bounds_q.size() != bounds_k.size()) {
      refuse_tensor(source, "cu_seqlens_k",
                    "has " + std::to_string(bounds_k.size()) + " entries, cu_seqlens_q " +
                        std::to_string(bounds_q.size()));
    }
    for (std::size_t s = 0; s + 1 < bounds_q.size(); ++s) {
      const std::int64_t queries = bounds_q[s + 1] - bounds_q[s];
      const std::int64_t keys = bounds_k[s + 1] - bounds_k[s];
      number(problem.position_q, bounds_q[s], queries, offset(queries, keys));
      number(problem.position_k, bounds_k[s], keys, 0);
      const auto document = static_cast<std::int32_t>(s);
      std::fill_n(problem.document_q.begin() + bounds_q[s], queries, document);
      std::fill_n(problem.document_k.begin() + bounds_k[s], keys, document);
    }
  }

  void read_documents(const Side& side, std::vector<std::int32_t>& documents) const {
    const StoredTensor& tensor = *source.find(side.documents);
    expect_list(side.documents, tensor, side.rows);
    const auto values = integers(tensor);
    for (std::size_t n = 0; n < values.size(); ++n) {
      if (values[n] < -1) {
        refuse_tensor(source, side.documents,
                      "entry " + std::to_string(n) + " is " + std::to_string(values[n]) +
                          "; -1 is the only one below 0, for no document");
      }
      for (std::int64_t b = 0; b < problem.batches; ++b) {
        documents[static_cast<std::size_t>(b * side.rows) + n] =
            static_cast<std::int32_t>(values[n]);
      }
    }
  }

  void read() {
    read_key_lengths();
    const auto queries = static_cast<std::size_t>(problem.batches * problem.queries);
    const auto keys = static_cast<std::size_t>(problem.batches * problem.keys);
    problem.position_q.assign(queries, 0);
    problem.position_k.assign(keys, 0);
    problem.document_q.assign(queries, 0);
    problem.document_k.assign(keys, 0);

    const bool packed = both(query.cu_seqlens, key.cu_seqlens);
    const bool documents = both(query.documents, key.documents);
    if (packed && documents) {
      refuse_tensor(source, query.documents, "stands in place of cu_seqlens_*, not beside it");
    }
    if (packed) {
      read_packed();
    } else {
      for (std::int64_t b = 0; b < problem.batches; ++b) {
        number(problem.position_q, b * problem.queries, problem.queries,
               offset(problem.queries, problem.keys));
        number(problem.position_k, b * problem.keys, problem.keys, 0);
      }
    }
    if (documents) {
      read_documents(query, problem.document_q);
      read_documents(key, problem.document_k);
    }
    if (has(query.positions)) {
      problem.position_q = read_positions(source, query.positions, problem.batches, query.rows);
    }
    if (has(key.positions)) {
      problem.position_k = read_positions(source, key.positions, problem.batches, key.rows);
    }
    index_keys(problem);
  }
};

}  // namespace

std::vector<std::int64_t> integers(const StoredTensor& tensor) {
  const auto strides = strides_of(tensor);
  const auto bytes = static_cast<std::int64_t>(size_of(tensor.dtype));
  std::vector<std::int64_t> values(static_cast<std::size_t>(tensor.elements()));
  for (std::size_t n = 0; n < values.size(); ++n) {
    std::int64_t rest = static_cast<std::int64_t>(n);
    std::int64_t offset = 0;
    for (std::size_t axis = strides.size(); axis-- > 0; rest /= tensor.shape[axis]) {
      offset += rest % tensor.shape[axis] * strides[axis];
    }
    values[n] = decode_integer(tensor.dtype, tensor.data + offset * bytes);
  }
  return values;
}

std::vector<std::int64_t> read_positions(const Source& source, std::string_view name,
                                         std::int64_t batches, std::int64_t rows) {
  const StoredTensor& tensor = *source.find(name);
  const auto& shape = tensor.shape;
  const bool once = shape.size() == 1 && shape[0] == rows;
  if (!once && !(shape.size() == 2 && shape[0] == batches && shape[1] == rows)) {
    refuse_tensor(source, name,
                  "shape " + text_of(shape) + " must be [" + std::to_string(rows) + "] or [" +
                      std::to_string(batches) + ", " + std::to_string(rows) + "]");
  }
  auto values = integers(tensor);
  for (std::size_t n = 0; n < values.size(); ++n) {
    if (values[n] >= -kFarthestPosition && values[n] <= kFarthestPosition) continue;
    refuse_tensor(source, name,
                  "entry " + std::to_string(n) + " is " + std::to_string(values[n]) +
                      ", farther than 2^52 from 0");
  }
  if (once) {
    values.resize(static_cast<std::size_t>(batches * rows));
    for (std::int64_t b = 1; b < batches; ++b) {
      std::copy_n(values.begin(), rows, values.begin() + b * rows);
    }
  }
  return values;
}

void resolve_rows(const Source& source, Problem& problem) { Reader{source, problem}.read(); }

}  // namespace ringproof::oracle
