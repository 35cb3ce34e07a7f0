// Threads of a block as fibres (block.hpp).
#include "cuda/host/block.hpp"

#include <algorithm>

namespace ringproof::cuda_host {
namespace {

constexpr int kWarp = 32;

const char* name_of(Collective kind) {
  switch (kind) {
    case Collective::shuffle:
      return "a shuffle";
    case Collective::vote:
      return "a vote";
    case Collective::reduce:
      return "a reduction";
    case Collective::sync:
      return "__syncwarp";
    case Collective::matrix_product:
      return "a matrix product";
    case Collective::matrix_load:
      return "a matrix load";
  }
  return "?";
}

}  // namespace

std::string Block::text_of(const Thread& thread) const {
  return "block (" + std::to_string(index_.x) + "," + std::to_string(index_.y) + "," +
         std::to_string(index_.z) + ") thread " + std::to_string(thread.number);
}

ThreadMoment Block::moment(const Thread& thread) const {
  return {thread.number, thread.warp, thread.lane, barriers_, warps_[thread.warp].syncs};
}

/// Leaves the threads where they stand: kernels own nothing that would have to be released.
void Block::fail(const Fault& fault) {
  const std::string prefix = std::string(cuda_host::name_of(fault.kind())) + ": ";
  fault_.emplace(fault.kind(), name_ + ": " + std::string(fault.what()).substr(prefix.size()));
  running().fibre.leave_for(launcher_, true);
  std::abort();
}

void Block::diverge(const std::string& what) {
  fail(Fault(FaultClass::divergence, text_of(running()) + " " + what));
}

/// Nobody can run: names the first few who wait.
void Block::fail_stuck() {
  std::string what = std::to_string(done_) + " threads have ended, and nobody can go on";
  int waiting = 0;
  for (int n = 0; n < count_; ++n) {
    const Thread& thread = threads_[n];
    if (thread.waits_for == nullptr || thread.done) continue;
    if (++waiting <= 3) {
      what += "; " + text_of(thread) + " waits at " + thread.waits_for + " " +
              cuda_host::text_of(thread.waits_at);
    }
  }
  fail(Fault(FaultClass::divergence, what + "; " + std::to_string(waiting) + " wait in all"));
}

void Block::make_ready(int thread) {
  threads_[thread].waits_for = nullptr;
  ready_.push_back(thread);
}

void Block::enter(int thread, bool for_ever) {
  Thread& from = running();
  running_ = thread;
  threadIdx = threads_[thread].index;
  if (&from != &threads_[thread]) from.fibre.leave_for(threads_[thread].fibre, for_ever);
}

/// Continues with a thread that is ready; returns when somebody continues with this one.
void Block::run_another(bool for_ever) {
  if (ready_.empty()) {
    if (done_ < count_) fail_stuck();
    running().fibre.leave_for(launcher_, true);
    std::abort();
  }
  if (shuffle_ != nullptr) std::swap(ready_[(*shuffle_)() % ready_.size()], ready_.back());
  const int next = ready_.back();
  ready_.pop_back();
  enter(next, for_ever);
}

void Block::thread_main(void* block) {
  Block& self = *static_cast<Block*>(block);
  (*self.kernel_)();
  self.finish_thread();
}

void Block::finish_thread() {
  Thread& thread = running();
  thread.done = true;
  ++done_, ++warps_[thread.warp].exited;
  if (!thread.copies.empty()) {
    fail(Fault(FaultClass::in_flight, text_of(thread) + " ends without waiting for its copies"));
  }
  if (at_barrier_ > 0) {
    diverge("ended while " + std::to_string(at_barrier_) + " threads wait at __syncthreads " +
            cuda_host::text_of(barrier_place_));
  }
  if (const Warp& warp = warps_[thread.warp]; warp.arrived > 0) {
    diverge(std::string("ended while lanes of its warp wait at ") + name_of(warp.kind) + " " +
            cuda_host::text_of(warp.place));
  }
  run_another(true);
  std::abort();
}

int Block::meet_block(int value, const Location& place) {
  const auto here = [&] { return "is at __syncthreads " + cuda_host::text_of(place); };
  if (done_ > 0) diverge(here() + ", but " + std::to_string(done_) + " threads have ended");
  if (at_barrier_ == 0) {
    barrier_place_ = place, barrier_value_ = 0;
  } else if (!(barrier_place_ == place)) {
    diverge(here() + ", others are at " + cuda_host::text_of(barrier_place_));
  }
  barrier_value_ |= value;
  if (++at_barrier_ < count_) {
    running().waits_for = "__syncthreads", running().waits_at = place;
    run_another(false);
    return barrier_result_;
  }
  at_barrier_ = 0, barrier_result_ = barrier_value_ != 0 ? 1 : 0;
  ++barriers_, ++device_counts().barriers;
  for (int n = count_ - 1; n >= 0; --n) {
    if (n != running_) make_ready(n);
  }
  return barrier_result_;
}

const Slot* Block::meet_warp(Collective kind, unsigned mask, const void* given, std::size_t size,
                             void (*finish)(Slot*), const Location& place) {
  Thread& thread = running();
  Warp& warp = warps_[thread.warp];
  const auto here = [&] {
    return std::string("is at ") + name_of(kind) + " " + cuda_host::text_of(place);
  };
  if (mask != 0xffffffffU) {
    fail(Fault(FaultClass::usage, text_of(thread) + " " + here() +
                                      " with a mask of few lanes, "
                                      "which is not emulated"));
  }
  if (warp.exited > 0) {
    diverge(here() + ", but " + std::to_string(warp.exited) + " lanes of its warp have ended");
  }
  if (warp.arrived == 0) {
    warp.kind = kind, warp.place = place;
  } else if (warp.kind != kind || !(warp.place == place)) {
    diverge(here() + ", other lanes of its warp at " + name_of(warp.kind) + " " +
            cuda_host::text_of(warp.place));
  }
  Slot* slots = warp.slots[warp.meetings & 1U];
  if (size > 0) std::memcpy(slots[thread.lane].bytes, given, size);
  if (++warp.arrived < kWarp) {
    thread.waits_for = name_of(kind), thread.waits_at = place;
    run_another(false);
    return slots;
  }
  warp.arrived = 0, ++warp.meetings;
  if (kind == Collective::sync) ++warp.syncs;
  if (finish != nullptr) finish(slots);
  for (int lane = kWarp - 1; lane >= 0; --lane) {
    if (lane != thread.lane) make_ready(thread.warp * kWarp + lane);
  }
  return slots;
}

void Block::run(const std::string& name, uint3 index, dim3 grid, dim3 shape,
                std::size_t shared_bytes, const std::function<void()>& kernel,
                std::mt19937_64* shuffle) {
  name_ = name, index_ = index, kernel_ = &kernel, shuffle_ = shuffle;
  number_ = index.x + grid.x * (index.y + grid.y * index.z);
  count_ = static_cast<int>(shape.x * shape.y * shape.z);
  fault_.reset();
  done_ = at_barrier_ = 0, barriers_ = 1;
  shared_.reset(shared_bytes);
  while (static_cast<int>(threads_.size()) < count_) threads_.emplace_back();
  warps_.assign((count_ + kWarp - 1) / kWarp, Warp{});
  ready_.clear();
  for (int n = count_ - 1; n >= 0; --n) {
    Thread& thread = threads_[n];
    const auto u = static_cast<unsigned>(n);
    thread.index = {u % shape.x, u / shape.x % shape.y, u / (shape.x * shape.y)};
    thread.number = n, thread.warp = n / kWarp, thread.lane = n % kWarp;
    thread.done = false, thread.copies.clear(), thread.open_group = 0;
    thread.fibre.prepare(thread_main, this);
    make_ready(n);
  }
  blockIdx = index, blockDim = shape, gridDim = grid;
  ++device_counts().blocks;
  const int first = ready_.back();
  ready_.pop_back();
  running_ = first;
  threadIdx = threads_[first].index;
  launcher_.leave_for(threads_[first].fibre);
}

}  // namespace ringproof::cuda_host
