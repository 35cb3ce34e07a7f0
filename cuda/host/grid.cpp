// Launches, and the running thread's view of its block (grid.hpp).
#include "cuda/host/grid.hpp"

#include <algorithm>
#include <memory>
#include <numeric>

#include "cuda/host/block.hpp"

namespace ringproof::cuda_host {
namespace {

thread_local Block* running = nullptr;
thread_local std::unique_ptr<Block> kept;  // stacks are reused from launch to launch

constexpr int kCopyBytes = 16;

void note_thread_access(Thread& thread, const void* address, std::size_t size, Access access,
                        const void* instruction) {
  if (running->shared().near(address)) {
    if (!device_options().shared_checks) return;
    const auto fault =
        running->shared().note(address, size, access, running->moment(thread), instruction);
    if (fault) running->fail(*fault);
  } else if (global_access != nullptr) {
    global_access(address, size, access, instruction);
  }
}

}  // namespace

DeviceOptions& device_options() {
  static DeviceOptions options;
  return options;
}

DeviceCounts& device_counts() {
  static DeviceCounts counts;
  return counts;
}

bool inside_kernel() { return running != nullptr; }
std::string running_thread() { return running->text_of(running->running()); }
std::uint32_t running_block() { return running->number(); }
void fail_kernel(const Fault& fault) { running->fail(fault); }

unsigned lane_number() { return static_cast<unsigned>(running->running().lane); }
unsigned char* dynamic_shared_memory() { return running->shared().data(); }

const Slot* meet_warp(Collective kind, unsigned mask, const void* given, std::size_t size,
                      void (*finish)(Slot*), const Location& place) {
  return running->meet_warp(kind, mask, given, size, finish, place);
}

int meet_block(int value, const Location& place) { return running->meet_block(value, place); }

void run_grid(const std::string& name, dim3 grid, dim3 block, std::size_t shared_bytes,
              const std::function<void()>& kernel) {
  if (running != nullptr) throw Fault(FaultClass::usage, name + ": a launch inside a kernel");
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > 1024 || threads % 32 != 0) {
    throw Fault(FaultClass::usage, name + ": " + std::to_string(threads) +
                                       " threads in a block; whole warps, at most 1024");
  }
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 || grid.z > 65535) {
    throw Fault(FaultClass::usage, name + ": a grid without blocks, or beyond 65535 in y or z");
  }
  if (!kept) kept = std::make_unique<Block>();
  std::vector<std::uint32_t> order(std::size_t{grid.x} * grid.y * grid.z);
  std::iota(order.begin(), order.end(), 0U);
  std::mt19937_64 random(device_options().seed);
  const bool shuffled = device_options().seed != 0;
  if (shuffled) std::shuffle(order.begin(), order.end(), random);
  for (const std::uint32_t n : order) {
    const uint3 index{n % grid.x, n / grid.x % grid.y, n / (grid.x * grid.y)};
    running = kept.get();
    running->run(name, index, grid, block, shared_bytes, kernel, shuffled ? &random : nullptr);
    running = nullptr;
    if (kept->fault()) throw Fault(*kept->fault());
  }
}

void note_access(const void* address, std::size_t size, Access access, const void* instruction) {
  if (running != nullptr) {
    note_thread_access(running->running(), address, size, access, instruction);
  } else if (global_access != nullptr) {
    global_access(address, size, access, instruction);
  }
}

void note_lane_access(unsigned lane, const void* address, std::size_t size, Access access,
                      const void* instruction) {
  note_thread_access(running->thread_of_lane(lane), address, size, access, instruction);
}

void note_atomic(const void* address, std::size_t size) {
  note_access(address, size, Access::atomic, __builtin_return_address(0));
}

void expect_shared(const void* address, std::size_t size, std::size_t alignment, const char* what) {
  if (reinterpret_cast<std::uintptr_t>(address) % alignment != 0) {
    fail_kernel(Fault(FaultClass::alignment,
                      std::string(what) + " needs addresses of multiples of " +
                          std::to_string(alignment) + " bytes, " + running_thread()));
  }
  const SharedMemory& shared = running->shared();
  const auto* first = static_cast<const unsigned char*>(address);
  if (first < shared.data() || first + size > shared.data() + shared.size()) {
    fail_kernel(
        Fault(FaultClass::bounds,
              std::string(what) + " outside the block's shared memory, " + running_thread()));
  }
}

namespace {

void deliver(const PendingCopy& copy) {
  if (copy.bytes > 0) std::memcpy(copy.to, copy.from, static_cast<std::size_t>(copy.bytes));
  std::memset(static_cast<char*>(copy.to) + copy.bytes, 0,
              static_cast<std::size_t>(kCopyBytes - copy.bytes));
}

}  // namespace

void copy_async(void* to, const void* from, int bytes) {
  const void* instruction = __builtin_return_address(0);
  Thread& thread = running->running();
  expect_shared(to, kCopyBytes, kCopyBytes, "cp.async");
  if (bytes > 0 && reinterpret_cast<std::uintptr_t>(from) % kCopyBytes != 0) {
    fail_kernel(Fault(FaultClass::alignment,
                      "cp.async from an address that is no multiple of 16, " + running_thread()));
  }
  ++device_counts().copies;
  if (bytes > 0) note_access(from, static_cast<std::size_t>(bytes), Access::read, instruction);
  note_access(to, kCopyBytes, Access::begin_copy, instruction);
  const PendingCopy copy{to, from, bytes, thread.open_group};
  if (device_options().lazy_copies) {
    std::memset(to, 0xff, kCopyBytes);
  } else {
    deliver(copy);
  }
  thread.copies.push_back(copy);
}

void commit_copies() { ++running->running().open_group; }

void wait_copies(int pending) {
  Thread& thread = running->running();
  const auto complete = [&](const PendingCopy& copy) {
    if (copy.group >= thread.open_group - pending) return false;
    if (device_options().lazy_copies) deliver(copy);
    note_access(copy.to, kCopyBytes, Access::end_copy, nullptr);
    return true;
  };
  thread.copies.erase(std::remove_if(thread.copies.begin(), thread.copies.end(), complete),
                      thread.copies.end());
}

}  // namespace ringproof::cuda_host
