// Shared memory of one block, with a record of who touched what: a race is two accesses to one
// half-word by two threads, at least one of them a write, that neither __syncthreads nor, within a
// warp, __syncwarp orders. Also found: words that nobody wrote, and words that an asynchronous copy
// still owns. Memory starts as NaN, in fp32, fp16 and bf16. Bytes of one half-word count as one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cuda/host/fault.hpp"

namespace ringproof::cuda_host {

/// Who accesses, and after how many barriers.
struct ThreadMoment {
  int thread = 0, warp = 0, lane = 0;
  std::uint32_t barriers = 0;    // of the block
  std::uint32_t warp_syncs = 0;  // of the warp
};

/// What an access does to the record.
enum class Access {
  read,
  write,
  begin_copy,  // an asynchronous copy is issued: a write whose data is not there yet
  end_copy,    // its data arrives
  atomic,      // read, changed and written by one thread alone
};

class SharedMemory {
 public:
  /// New memory for a new block.
  void reset(std::size_t bytes);

  unsigned char* data() const { return memory_.get() + kGuard; }
  std::size_t size() const { return bytes_; }
  /// Is it this memory, or so near that only a wrong index leads there?
  bool near(const void* address) const {
    const auto* at = static_cast<const unsigned char*>(address);
    return memory_ && at >= data() - kGuard && at < data() + bytes_ + kGuard;
  }

  /// Notes an access that begins near. Returns what is wrong with it, if anything.
  std::optional<Fault> note(const void* address, std::size_t size, Access access,
                            const ThreadMoment& now, const void* instruction);

 private:
  struct Cell {
    std::uint32_t write_barriers = 0, write_syncs = 0;
    std::uint32_t read_barriers = 0, read_syncs = 0, read_warps = 0, read_lanes = 0;
    std::int16_t writer = -1, reader = -1, copier = -1;  // threads
    bool written = false;
    const void* write_instruction = nullptr;
  };
  static constexpr std::size_t kGuard = 4096;
  struct Free {
    void operator()(unsigned char* memory) const;
  };

  static bool written_before(const Cell& cell, const ThreadMoment& now);
  static bool read_before(const Cell& cell, const ThreadMoment& now);
  std::optional<Fault> conflict(const Cell& cell, Access access, const ThreadMoment& now,
                                std::size_t byte, const void* instruction) const;
  static void record(Cell& cell, Access access, const ThreadMoment& now, const void* instruction);

  std::unique_ptr<unsigned char[], Free> memory_;
  std::size_t bytes_ = 0;
  std::vector<Cell> cells_;  // one for each half-word
};

}  // namespace ringproof::cuda_host
