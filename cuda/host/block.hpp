// The threads of one block while they run: who is ready, who waits, and for whom (grid.hpp).
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "cuda/host/fibre.hpp"
#include "cuda/host/grid.hpp"

namespace ringproof::cuda_host {

/// An asynchronous copy that has been issued.
struct PendingCopy {
  void* to;
  const void* from;  // null: the data is already there
  int bytes;
  int group;
};

struct Thread {
  Fibre fibre{kStackBytes};
  uint3 index{};
  int number = 0, warp = 0, lane = 0;
  bool done = false;
  const char* waits_for = nullptr;  // null: it is ready or runs
  Location waits_at;
  std::vector<PendingCopy> copies;
  int open_group = 0;

  static constexpr std::size_t kStackBytes = 256 << 10;
};

struct Warp {
  int arrived = 0, exited = 0;
  unsigned meetings = 0;    // slots alternate, so that slow lanes can still read the last ones
  std::uint32_t syncs = 0;  // __syncwarp
  Collective kind{};
  Location place;
  Slot slots[2][32];
};

class Block {
 public:
  /// Runs the kernel for all threads of one block. Afterwards fault() says whether it went well.
  void run(const std::string& name, uint3 index, dim3 grid, dim3 shape, std::size_t shared_bytes,
           const std::function<void()>& kernel, std::mt19937_64* shuffle);
  const std::optional<Fault>& fault() const { return fault_; }

  const Slot* meet_warp(Collective kind, unsigned mask, const void* given, std::size_t size,
                        void (*finish)(Slot*), const Location& place);
  int meet_block(int value, const Location& place);
  [[noreturn]] void fail(const Fault& fault);

  Thread& running() { return threads_[running_]; }
  Thread& thread_of_lane(unsigned lane) { return threads_[running().warp * 32 + lane]; }
  SharedMemory& shared() { return shared_; }
  ThreadMoment moment(const Thread& thread) const;
  std::string text_of(const Thread& thread) const;
  std::uint32_t number() const { return number_; }

 private:
  static void thread_main(void* block);
  void finish_thread();
  void run_another(bool for_ever);
  void enter(int thread, bool for_ever);
  void make_ready(int thread);
  [[noreturn]] void fail_stuck();
  [[noreturn]] void diverge(const std::string& what);

  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<int> ready_;  // the last one runs next
  SharedMemory shared_;
  Fibre launcher_;
  std::string name_;
  uint3 index_{};
  std::uint32_t number_ = 0;
  int count_ = 0, running_ = 0, done_ = 0;
  int at_barrier_ = 0, barrier_value_ = 0, barrier_result_ = 0;
  std::uint32_t barriers_ = 1;
  Location barrier_place_;
  const std::function<void()>* kernel_ = nullptr;
  std::mt19937_64* shuffle_ = nullptr;
  std::optional<Fault> fault_;
};

}  // namespace ringproof::cuda_host
