// The vector tile's numbers in the shapes its kernels want: aligned, padded, transposed.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>

#include "mpi/block_buffers.hpp"
#include "mpi/key_tiles.hpp"

namespace ringproof::mpi {

/// Floats at an address that suits every vector register.
class AlignedFloats {
 public:
  AlignedFloats() = default;
  explicit AlignedFloats(Index count, float value = 0)
      : bytes_(static_cast<std::size_t>(count) * sizeof(float)), count_(count) {
    std::fill_n(data(), count, value);
  }
  float* data() { return bytes_.as<float>(0).data(); }
  Index size() const { return count_; }

 private:
  AlignedBytes bytes_;
  Index count_ = 0;
};

/// Rows [rows, width] of one head as tiles [tiles, width, kQueries]: a row is a lane.
inline void transpose_rows(const float* rows, Index count, Index width, float* tiles) {
  for (Index i = 0; i < count; ++i) {
    float* tile = tiles + i / kQueries * kQueries * width;
    for (Index d = 0; d < width; ++d) tile[d * kQueries + i % kQueries] = rows[i * width + d];
  }
}

/// The rows of a block as they travel: k of all heads, then v, floats or 16-bit numbers.
struct Wire {
  std::optional<Sixteen> type;

  std::size_t width() const { return type ? 2 : 4; }
  /// Numbers [count] beginning with number `first` of a block, as floats: where they lie, or
  /// widened into `scratch`.
  const float* read(std::span<const std::byte> block, Index first, Index count,
                    float* scratch) const {
    const std::byte* from = block.data() + static_cast<std::size_t>(first) * width();
    if (!type) return reinterpret_cast<const float*>(from);
    widen(*type, reinterpret_cast<const std::uint16_t*>(from), count, scratch);
    return scratch;
  }
};

/// Is any of the numbers infinite or no number?
inline bool any_not_finite(const float* numbers, Index count) {
  std::uint32_t worst = 0;
  for (Index n = 0; n < count; ++n) {
    worst = std::max(worst, std::bit_cast<std::uint32_t>(numbers[n]) & 0x7f800000u);
  }
  return worst == 0x7f800000u;
}

/// A float that the 16-bit type holds exactly, in that type.
std::uint16_t narrow(Sixteen type, float number);

/// Work in common of the threads of a rank: each takes the next number until none is left.
void for_all(Index count, int threads, const std::function<void(Index, int)>& body);

}  // namespace ringproof::mpi
