// The memory of all emulated devices, and pinned host memory, with a record of who touched what. A
// race is two accesses to one word, one of them a write, by two operations that no stream, event,
// message or synchronisation orders, or by two blocks of one kernel. Addresses are never reused, so
// a late access to freed memory is seen; every allocation ends at a page that nobody may touch.
// Not seen: races between threads of one block in device memory.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cuda/host/fault.hpp"
#include "cuda/host/location.hpp"
#include "cuda/host/shared_memory.hpp"
#include "cuda/host/vector_clock.hpp"

namespace ringproof::cuda_host {

/// One thing done: by a stream (a kernel, a copy, a message), or by a rank's host code.
struct OperationInfo {
  Worker worker = 0;
  std::uint32_t tick = 0;
  std::string name;
  Location place;
};

/// Who accesses.
struct Accessor {
  std::uint32_t operation = 0;  // index into the list of operations
  int device = -1;              // -1: host code
  std::uint32_t block = 0;      // of the kernel
  const VectorClock* clock = nullptr;
};

class DeviceMemory {
 public:
  DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory();

  /// Memory of a device, or pinned memory of the host; full of NaN. Null if the arena is used up.
  void* allocate(std::size_t bytes, int device, bool pinned);
  /// Returns false if nothing was allocated there.
  bool release(void* address);

  bool holds(const void* address) const {
    const auto* at = static_cast<const char*>(address);
    return at >= arena_ && at < next_;
  }

  /// Notes an access to memory that this object holds. Returns what is wrong with it, if anything.
  std::optional<Fault> note(const void* address, std::size_t size, Access access,
                            const Accessor& by, const void* instruction);

  /// The most bytes that one device held at any time, pinned memory of the host apart.
  std::size_t high_water() const { return high_water_; }

  std::vector<OperationInfo> operations{1};  // 0: none
  bool race_checks = true;

 private:
  struct Touch {
    std::uint32_t operation = 0, block = 0;
  };
  struct Cell {
    Touch write, read[3];
  };
  struct Allocation {
    std::size_t bytes = 0;
    int device = 0;
    bool pinned = false, freed = false;
    std::vector<Cell> cells;  // one for each word; empty until the first access
  };

  std::pair<char* const, Allocation>* find(const char* address);
  bool ordered(const Touch& before, const Accessor& by, bool atomic) const;
  std::optional<Fault> race(Cell& cell, Access access, const Accessor& by, std::size_t byte,
                            const void* instruction);
  void record(Cell& cell, Access access, const Accessor& by) const;
  std::string text_of(std::uint32_t operation) const;

  char* arena_ = nullptr;
  char* next_ = nullptr;
  std::map<char*, Allocation> allocations_;
  std::map<int, std::size_t> in_use_;  // bytes a device
  std::size_t high_water_ = 0;
  std::pair<char* const, Allocation>* last_ = nullptr;
};

}  // namespace ringproof::cuda_host
