// One kernel launch on the host: blocks one after the other, a block's threads as fibres that run
// until they meet at a barrier or a collective. Faults end the launch as an exception.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "cuda/host/device.hpp"
#include "cuda/host/shared_memory.hpp"

namespace ringproof::cuda_host {

/// How the matrix units sum sixteen products and the number they are added to. Both are within what
/// the contracts of 16-bit kernels declare (docs/contract.md, section 4).
enum class MatrixSum {
  sequential,  // one after the other, rounded to nearest each time; products are exact
  truncated,   // aligned to the largest, cut two bits below fp32, added exactly, cut to fp32
};

/// Do kernels report their plain loads and stores (access_hooks.cpp)?
#if RINGPROOF_CUDA_CHECKED
inline constexpr bool kInstrumented = true;
#else
inline constexpr bool kInstrumented = false;
#endif

struct DeviceOptions {
  std::uint64_t seed = 0;   // 0: blocks and threads in order; else in an order drawn from it
  bool lazy_copies = true;  // cp.async delivers at its wait; else at once
  bool shared_checks = kInstrumented;  // races, uninitialised words, copies in flight
  MatrixSum matrix_sum = MatrixSum::sequential;
};
DeviceOptions& device_options();

/// What has been executed since the program began, or since it was set to zero.
struct DeviceCounts {
  std::uint64_t blocks = 0, barriers = 0, matrix_products = 0, matrix_loads = 0, copies = 0;
  std::uint64_t bank_conflicts = 0;  // extra turns that matrix loads take
};
DeviceCounts& device_counts();

/// Runs `kernel` once for every thread of the grid. Throws Fault.
void run_grid(const std::string& name, dim3 grid, dim3 block, std::size_t shared_bytes,
              const std::function<void()>& kernel);

/// Is a kernel running on this processor thread?
bool inside_kernel();

/// The kernel's block and thread, for reports: "block (0,1,0) thread 37".
std::string running_thread();

/// Number of the running block within its grid.
std::uint32_t running_block();

/// Gives up the kernel: the launch throws the fault.
[[noreturn]] void fail_kernel(const Fault& fault);

/// The running thread reads or writes memory; `instruction` is what it executes. Called by the
/// instrumented code (access_hooks.cpp) and by the emulated instructions.
void note_access(const void* address, std::size_t size, Access access, const void* instruction);

/// The same for another lane of the running warp, on whose behalf a collective acts.
void note_lane_access(unsigned lane, const void* address, std::size_t size, Access access,
                      const void* instruction);

/// Fails unless [address, address + size) lies in the block's shared memory and is aligned.
void expect_shared(const void* address, std::size_t size, std::size_t alignment, const char* what);

// cp.async: 16 bytes to shared memory, of which the last 16 - `bytes` become zero.
void copy_async(void* to, const void* from, int bytes);
void commit_copies();
/// Completes all groups of the running thread but the `pending` youngest.
void wait_copies(int pending);

/// Called for accesses that are not to shared memory; null: not checked.
using GlobalAccess = void (*)(const void* address, std::size_t size, Access access,
                              const void* instruction);
inline GlobalAccess global_access = nullptr;

}  // namespace ringproof::cuda_host
