// Allocations and their record (device_memory.hpp).
#include "cuda/host/device_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace ringproof::cuda_host {
namespace {

constexpr std::size_t kArena = std::size_t{1} << 36, kPage = 4096, kWord = 4;
constexpr std::uint32_t kManyBlocks = 0xffffffffU, kAtomic = 0xfffffffeU;

std::size_t pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

DeviceMemory::DeviceMemory() {
  void* memory =
      mmap(nullptr, kArena, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  arena_ = static_cast<char*>(memory);
  next_ = arena_ + kPage;  // what lies before an allocation is nobody's
}

DeviceMemory::~DeviceMemory() { munmap(arena_, kArena); }

void* DeviceMemory::allocate(std::size_t bytes, int device, bool pinned) {
  const std::size_t whole = pages(bytes == 0 ? 1 : bytes);
  if (whole + kPage > static_cast<std::size_t>(arena_ + kArena - next_)) return nullptr;
  char* at = next_;
  if (mprotect(at, whole, PROT_READ | PROT_WRITE) != 0) return nullptr;
  std::memset(at, 0xff, bytes);
  next_ += whole + kPage;
  allocations_[at] = Allocation{bytes, device, pinned, false, {}};
  if (!pinned) high_water_ = std::max(high_water_, in_use_[device] += bytes);
  return at;
}

bool DeviceMemory::release(void* address) {
  const auto found = allocations_.find(static_cast<char*>(address));
  if (found == allocations_.end() || found->second.freed) return false;
  Allocation& allocation = found->second;
  allocation.freed = true;
  if (!allocation.pinned) in_use_[allocation.device] -= allocation.bytes;
  allocation.cells = {};
  const std::size_t whole = pages(allocation.bytes == 0 ? 1 : allocation.bytes);
  madvise(address, whole, MADV_DONTNEED);
  mprotect(address, whole, PROT_NONE);
  return true;
}

/// The allocation at or below an address.
std::pair<char* const, DeviceMemory::Allocation>* DeviceMemory::find(const char* address) {
  if (last_ != nullptr && address >= last_->first && address < last_->first + last_->second.bytes) {
    return last_;
  }
  auto above = allocations_.upper_bound(const_cast<char*>(address));
  if (above == allocations_.begin()) return nullptr;
  return last_ = &*--above;
}

std::string DeviceMemory::text_of(std::uint32_t operation) const {
  const OperationInfo& info = operations[operation];
  return info.name + " (" + cuda_host::text_of(info.place) + ")";
}

/// Is an earlier access ordered before this one?
bool DeviceMemory::ordered(const Touch& before, const Accessor& by, bool atomic) const {
  if (before.operation == 0) return true;
  if (before.operation == by.operation) {
    return before.block == by.block || (atomic && before.block == kAtomic);
  }
  const OperationInfo& info = operations[before.operation];
  return info.worker == operations[by.operation].worker || by.clock->at(info.worker) >= info.tick;
}

std::optional<Fault> DeviceMemory::race(Cell& cell, Access access, const Accessor& by,
                                        std::size_t byte, const void* instruction) {
  const bool write = access != Access::read, atomic = access == Access::atomic;
  const auto fault = [&](const char* order, const Touch& before) {
    const bool inside = before.operation == by.operation;
    std::string text =
        std::string(order) + " at byte " + std::to_string(byte) + ": " + text_of(by.operation);
    if (instruction != nullptr) text += " at " + text_of_instruction(instruction);
    text += inside ? " against another block of it" : " against " + text_of(before.operation);
    return Fault(FaultClass::device_race, text);
  };
  if (!ordered(cell.write, by, atomic)) {
    return fault(write ? "write after write" : "read after write", cell.write);
  }
  if (!write) return std::nullopt;
  for (Touch& read : cell.read) {
    if (!ordered(read, by, false)) return fault("write after read", read);
    read = {};
  }
  return std::nullopt;
}

void DeviceMemory::record(Cell& cell, Access access, const Accessor& by) const {
  if (access != Access::read) {
    cell.write = {by.operation, access == Access::atomic ? kAtomic : by.block};
    return;
  }
  Touch* place = nullptr;  // the same operation's, else one that is ordered before
  for (Touch& read : cell.read) {
    if (read.operation == by.operation) {
      if (read.block != by.block) read.block = kManyBlocks;
      return;
    }
    if (place == nullptr && ordered(read, by, false)) place = &read;
  }
  if (place != nullptr) *place = {by.operation, by.block};
}

std::optional<Fault> DeviceMemory::note(const void* address, std::size_t size, Access access,
                                        const Accessor& by, const void* instruction) {
  const auto* at = static_cast<const char*>(address);
  auto* found = find(at);
  const auto bounds = [&](const std::string& what) {
    const std::string where =
        instruction == nullptr ? "" : " at " + text_of_instruction(instruction);
    return Fault(FaultClass::bounds, text_of(by.operation) + where + " touches " + what);
  };
  if (found == nullptr || found->second.freed) return bounds("memory that is not allocated");
  Allocation& allocation = found->second;
  const auto first = static_cast<std::size_t>(at - found->first);
  if (first + size > allocation.bytes) {
    return bounds("byte " + std::to_string(first + size - 1) + " of an allocation of " +
                  std::to_string(allocation.bytes));
  }
  if (!allocation.pinned && by.device != allocation.device) {
    return bounds(by.device < 0 ? "device memory, which only the device can"
                                : "memory of device " + std::to_string(allocation.device));
  }
  if (!race_checks) return std::nullopt;
  if (allocation.cells.empty()) allocation.cells.resize((allocation.bytes + kWord - 1) / kWord);
  for (std::size_t word = first / kWord; word * kWord < first + size; ++word) {
    auto fault = race(allocation.cells[word], access, by, word * kWord, instruction);
    if (fault) return fault;
    record(allocation.cells[word], access, by);
  }
  return std::nullopt;
}

}  // namespace ringproof::cuda_host
