// Ranks: who runs, who waits, how it ends (world.hpp).
#include "cuda/host/world.hpp"

#include <algorithm>

namespace ringproof::cuda_host {
namespace {

thread_local World* world = nullptr;

void world_access(const void* address, std::size_t size, Access access, const void* instruction) {
  if (world != nullptr) world->access(address, size, access, instruction);
}

}  // namespace

World::World(int ranks, const RankOptions& options, const std::function<void(int)>& body)
    : options_(options), body_(body), random_(options.seed), ranks_(ranks) {
  memory.race_checks = options.race_checks;
  for (Rank& rank : ranks_) {
    rank.worker = new_worker();
    rank.fibre.prepare(rank_main, this);
  }
}

World::~World() = default;

World& World::current(const char* call) {
  if (world == nullptr) throw Fault(FaultClass::usage, std::string(call) + " outside run_ranks");
  return *world;
}

RankCounts World::run() {
  world = this;
  global_access = world_access;
  running_ = 0;
  ranks_[0].started = true;
  caller_.leave_for(ranks_[0].fibre);
  world = nullptr;
  global_access = nullptr;
  if (fault_) std::rethrow_exception(fault_);
  counts_.device_bytes = memory.high_water();
  return counts_;
}

void World::rank_main(void* machine) {
  World& self = *static_cast<World*>(machine);
  const int me = self.running_;
  if (!self.aborting()) {
    try {
      self.begin_call("start", Location::here());
      self.body_(me);
      if (self.rank().group_depth > 0) {
        throw Fault(FaultClass::usage, "rank " + std::to_string(me) + " ends inside a group");
      }
    } catch (const Abandoned&) {
    } catch (...) {
      self.note_fault(std::current_exception());
    }
  }
  Rank& rank = self.ranks_[me];
  rank.done = true;
  for (int other = 0; other < self.rank_count(); ++other) {
    if (!self.ranks_[other].done) self.enter_rank(other, true);
  }
  rank.fibre.leave_for(self.caller_, true);
}

void World::note_fault(const std::exception_ptr& fault) {
  if (!fault_) fault_ = fault;
}

void World::fail(const Fault& fault) {
  note_fault(std::make_exception_ptr(fault));
  throw Abandoned{};
}

void World::enter_rank(int next, bool for_ever) {
  Rank& from = rank();
  running_ = next;
  ranks_[next].started = true;
  ++counts_.switches;
  from.fibre.leave_for(ranks_[next].fibre, for_ever);
}

std::vector<int> World::runnable_ranks() const {
  std::vector<int> runnable;
  for (int n = 0; n < rank_count(); ++n) {
    const Rank& rank = ranks_[n];
    if (n == running_ || rank.done) continue;
    if (rank.waits_for == nullptr || (*rank.waits_for)()) runnable.push_back(n);
  }
  return runnable;
}

void World::begin_call(const std::string& name, const Location& place) {
  if (aborting()) throw Abandoned{};
  Rank& me = rank();
  me.operation = static_cast<std::uint32_t>(memory.operations.size());
  memory.operations.push_back({me.worker, me.clock.tick(me.worker),
                               "rank " + std::to_string(running_) + " after " + name, place});
}

void World::end_call() {
  if (options_.order == Order::eager) {
    while (!aborting() && run_some_work()) {
    }
  } else if (options_.order == Order::random) {
    while (!aborting() && random_() % 2 != 0 && run_some_work()) {
    }
    const std::vector<int> others = random_() % 4 == 0 ? runnable_ranks() : std::vector<int>{};
    if (!aborting() && !others.empty()) enter_rank(others[random_() % others.size()], false);
  }
  if (aborting()) throw Abandoned{};
}

void World::wait_until(const std::string& call, const std::function<bool()>& holds) {
  Rank& me = rank();
  me.waits_for = &holds, me.waits_at = call;
  while (!aborting() && !holds()) {
    const std::vector<int> others = runnable_ranks();
    const bool ranks_first =
        options_.order == Order::lazy || (options_.order == Order::random && random_() % 3 == 0);
    if (ranks_first && !others.empty()) {
      enter_rank(others[random_() % others.size()], false);
    } else if (!run_some_work()) {
      if (!others.empty()) {
        enter_rank(others[random_() % others.size()], false);
      } else if (!aborting()) {
        fail_deadlock();
      }
    }
  }
  me.waits_for = nullptr;
}

void World::fail_deadlock() {
  std::string what;
  for (int n = 0; n < rank_count(); ++n) {
    if (ranks_[n].done) continue;
    what += (what.empty() ? "rank " : "; rank ") + std::to_string(n) + " waits in " +
            ranks_[n].waits_at;
  }
  for (const Stream& stream : streams_) {
    if (stream.queue.empty()) continue;
    what += "; " + stream.name + " stands before " + stream.queue.front().name + " (" +
            text_of(stream.queue.front().place) + ")";
  }
  note_fault(std::make_exception_ptr(Fault(FaultClass::deadlock, what)));
}

Stream* World::expect_stream(Stream* stream, const std::string& call) {
  if (stream == nullptr) {
    fail(Fault(FaultClass::usage, call + " on the default stream, which orders all others"));
  }
  if (stream->destroyed) fail(Fault(FaultClass::usage, call + " on a destroyed stream"));
  if (stream->device != running_) {
    fail(Fault(FaultClass::usage, call + " by rank " + std::to_string(running_) +
                                      " on a stream of device " + std::to_string(stream->device)));
  }
  return stream;
}

void World::access(const void* address, std::size_t size, Access access, const void* instruction) {
  if (quiet_ || aborting() || !memory.holds(address)) return;
  Accessor by;
  if (running_stream_ != nullptr) {
    const Operation& operation = running_stream_->queue.front();
    by = {operation.number, running_stream_->device, inside_kernel() ? running_block() : 0,
          &operation.clock};
  } else {
    by = {rank().operation, -1, 0, &rank().clock};
  }
  const auto fault = memory.note(address, size, access, by, instruction);
  if (!fault) return;
  if (inside_kernel()) fail_kernel(*fault);
  note_fault(std::make_exception_ptr(*fault));  // the next call throws; this access may not
}

RankCounts run_ranks(int ranks, const RankOptions& options, const std::function<void(int)>& body) {
  if (world != nullptr) throw Fault(FaultClass::usage, "run_ranks inside run_ranks");
  if (ranks < 1) throw Fault(FaultClass::usage, "run_ranks needs a rank");
  return World(ranks, options, body).run();
}

}  // namespace ringproof::cuda_host
