// The record of accesses to shared memory (shared_memory.hpp).
#include "cuda/host/shared_memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "cuda/host/location.hpp"

namespace ringproof::cuda_host {
namespace {

constexpr std::size_t kCellBytes = 2;
constexpr std::size_t kAlignment = 128;  // as the hardware aligns it

}  // namespace

void SharedMemory::Free::operator()(unsigned char* memory) const { std::free(memory); }

void SharedMemory::reset(std::size_t bytes) {
  if (bytes != bytes_ || !memory_) {
    const std::size_t whole = (bytes + 2 * kGuard + kAlignment) / kAlignment * kAlignment;
    memory_.reset(static_cast<unsigned char*>(std::aligned_alloc(kAlignment, whole)));
    if (!memory_) throw std::bad_alloc();
    bytes_ = bytes;
  }
  std::memset(data(), 0xff, bytes_);
  cells_.assign((bytes_ + kCellBytes - 1) / kCellBytes, Cell{});
}

/// Is the last write ordered before `now`?
bool SharedMemory::written_before(const Cell& cell, const ThreadMoment& now) {
  if (cell.writer < 0 || cell.writer == now.thread || cell.write_barriers != now.barriers) {
    return true;
  }
  return cell.writer / 32 == now.warp && cell.write_syncs < now.warp_syncs;
}

/// Are all reads since the last barrier ordered before `now`?
bool SharedMemory::read_before(const Cell& cell, const ThreadMoment& now) {
  if (cell.reader < 0 || cell.read_barriers != now.barriers) return true;
  if ((cell.read_warps & ~(1U << now.warp)) != 0) return false;  // another warp read it
  return cell.read_syncs != now.warp_syncs || (cell.read_lanes & ~(1U << now.lane)) == 0;
}

std::optional<Fault> SharedMemory::conflict(const Cell& cell, Access access,
                                            const ThreadMoment& now, std::size_t byte,
                                            const void* instruction) const {
  const auto here = [&] {  // only when there is something to report: it takes its time
    return " at byte " + std::to_string(byte) + ", thread " + std::to_string(now.thread) + " at " +
           text_of_instruction(instruction);
  };
  const auto against = [&](int thread, const void* other) {
    return here() + ", against thread " + std::to_string(thread) +
           (other != nullptr ? " at " + text_of_instruction(other) : "");
  };
  if (access != Access::end_copy && cell.copier >= 0) {
    return Fault(FaultClass::in_flight, "its data is used or overwritten before the wait" +
                                            against(cell.copier, cell.write_instruction));
  }
  const bool write = access != Access::read;
  if (!written_before(cell, now)) {
    return Fault(FaultClass::shared_race, (write ? "write after write" : "read after write") +
                                              against(cell.writer, cell.write_instruction));
  }
  if (write && !read_before(cell, now)) {
    return Fault(FaultClass::shared_race, "write after read" + against(cell.reader, nullptr));
  }
  if (!write && !cell.written) {
    return Fault(FaultClass::uninitialised, "nobody wrote what is read" + here());
  }
  return std::nullopt;
}

void SharedMemory::record(Cell& cell, Access access, const ThreadMoment& now,
                          const void* instruction) {
  if (access == Access::read) {
    const std::uint32_t warp = 1U << now.warp;
    if (cell.read_barriers != now.barriers) cell.read_warps = 0;
    if (cell.read_barriers != now.barriers || cell.read_syncs != now.warp_syncs ||
        (cell.read_warps & warp) == 0) {
      cell.read_lanes = 0;
    }
    cell.read_barriers = now.barriers, cell.read_syncs = now.warp_syncs;
    cell.read_warps |= warp, cell.read_lanes |= 1U << now.lane;
    cell.reader = static_cast<std::int16_t>(now.thread);
    return;
  }
  cell.write_barriers = now.barriers, cell.write_syncs = now.warp_syncs;
  cell.writer = static_cast<std::int16_t>(now.thread);
  cell.copier = access == Access::begin_copy ? cell.writer : std::int16_t{-1};
  cell.written = true;
  cell.write_instruction = instruction;
}

std::optional<Fault> SharedMemory::note(const void* address, std::size_t size, Access access,
                                        const ThreadMoment& now, const void* instruction) {
  const std::ptrdiff_t byte = static_cast<const unsigned char*>(address) - data();
  if (byte < 0 || byte + size > bytes_) {
    return Fault(FaultClass::bounds, "bytes " + std::to_string(byte) + " and on of " +
                                         std::to_string(bytes_) + " of shared memory, thread " +
                                         std::to_string(now.thread) + " at " +
                                         text_of_instruction(instruction));
  }
  const auto first = static_cast<std::size_t>(byte);
  if (access == Access::atomic) return std::nullopt;  // its order against others is not looked at
  for (std::size_t cell = first / kCellBytes; cell * kCellBytes < first + size; ++cell) {
    auto fault = conflict(cells_[cell], access, now, cell * kCellBytes, instruction);
    if (fault) return fault;
    record(cells_[cell], access, now, instruction);
  }
  return std::nullopt;
}

}  // namespace ringproof::cuda_host
