// The memory for blocks that a rank of the ring has, and nothing more (C12, C13). While one block
// is in use the next arrives, so two are needed; a rank that keeps its own block as well, for the
// backward pass, needs a third.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <new>
#include <span>
#include <vector>

#include "reference/number.hpp"

namespace ringproof::mpi {

using reference::Index;

/// Does the rank give its own block away, or keep it?
enum class OwnBlock { given, kept };

/// Bytes aligned for any number and any vector register.
class AlignedBytes {
 public:
  static constexpr std::size_t kAlignment = 64;

  AlignedBytes() = default;
  explicit AlignedBytes(std::size_t size) : size_(size) {
    data_ = static_cast<std::byte*>(
        ::operator new(std::max<std::size_t>(size, 1), std::align_val_t(kAlignment)));
  }
  AlignedBytes(AlignedBytes&& other) noexcept { swap(other); }
  AlignedBytes& operator=(AlignedBytes&& other) noexcept {
    swap(other);
    return *this;
  }
  ~AlignedBytes() {
    if (data_ != nullptr) ::operator delete(data_, std::align_val_t(kAlignment));
  }

  std::size_t size() const { return size_; }
  std::span<std::byte> first(std::size_t bytes) { return {data_, bytes}; }
  template <class T>
  std::span<T> as(std::size_t count) {
    return {reinterpret_cast<T*>(data_), count};
  }

 private:
  void swap(AlignedBytes& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

class BlockBuffers {
 public:
  /// `bytes`: of the largest block.
  BlockBuffers(std::size_t bytes, OwnBlock own) : kept_(own == OwnBlock::kept) {
    const int count = kept_ ? 3 : 2;
    for (int n = 0; n < count; ++n) buffers_.emplace_back(bytes);
  }

  bool keeps_own() const { return kept_; }
  int count() const { return static_cast<int>(buffers_.size()); }
  /// The buffer in use at a step: the rank's own block at step 0, then the visitors' buffers in
  /// turn, which do not include the own one if it is kept.
  AlignedBytes& at(Index step) {
    if (!kept_) return buffers_[static_cast<std::size_t>(step % 2)];
    return buffers_[step == 0 ? 0 : static_cast<std::size_t>(1 + (step + 1) % 2)];
  }

 private:
  bool kept_;
  std::vector<AlignedBytes> buffers_;
};

}  // namespace ringproof::mpi
