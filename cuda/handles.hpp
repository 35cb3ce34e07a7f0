// Owners of device memory, pinned memory, streams and events. What a rank makes it gives back when
// it ends, also when it ends by an exception.
#pragma once

#include <span>
#include <utility>

#include "cuda/check.hpp"

namespace ringproof::cuda {

/// A handle that is closed once.
template <class Handle, auto Close>
class Owner {
 public:
  Owner() = default;
  explicit Owner(Handle handle) : handle_(handle) {}
  Owner(Owner&& other) noexcept : handle_(std::exchange(other.handle_, Handle{})) {}
  Owner& operator=(Owner&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owner() {
    if (handle_ != Handle{}) Close(handle_);
  }
  Handle get() const { return handle_; }

 private:
  Handle handle_{};
};

inline void close_stream(cudaStream_t stream) { cudaStreamDestroy(stream); }
inline void close_event(cudaEvent_t event) { cudaEventDestroy(event); }
inline void close_communicator(ncclComm_t communicator) { ncclCommDestroy(communicator); }
inline void close_device(void* memory) { cudaFree(memory); }
inline void close_pinned(void* memory) { cudaFreeHost(memory); }

using StreamOwner = Owner<cudaStream_t, close_stream>;
using EventOwner = Owner<cudaEvent_t, close_event>;

inline StreamOwner make_stream() {
  cudaStream_t stream{};
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return StreamOwner(stream);
}

inline EventOwner make_event() {
  cudaEvent_t event{};
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return EventOwner(event);
}

/// `size` numbers on the device. Of size 0 it is empty.
template <class T>
class DeviceArray {
 public:
  DeviceArray() = default;
  explicit DeviceArray(std::size_t size) : size_(size) {
    void* memory = nullptr;
    if (size > 0) check(cudaMalloc(&memory, size * sizeof(T)));
    memory_ = Owner<void*, close_device>(memory);
  }
  T* get() const { return static_cast<T*>(memory_.get()); }
  std::size_t bytes() const { return size_ * sizeof(T); }
  std::size_t size() const { return size_; }

 private:
  Owner<void*, close_device> memory_;
  std::size_t size_ = 0;
};

/// `size` numbers on the host that the device can reach while both work.
template <class T>
class PinnedArray {
 public:
  PinnedArray() = default;
  explicit PinnedArray(std::size_t size) : size_(size) {
    void* memory = nullptr;
    if (size > 0) check(cudaMallocHost(&memory, size * sizeof(T)));
    memory_ = Owner<void*, close_pinned>(memory);
  }
  std::size_t size() const { return size_; }
  std::span<T> numbers() const { return {static_cast<T*>(memory_.get()), size_}; }

 private:
  Owner<void*, close_pinned> memory_;
  std::size_t size_ = 0;
};

}  // namespace ringproof::cuda
