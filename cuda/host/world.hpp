// The machine behind the runtime (runtime.hpp) and NCCL (nccl.hpp) on the host: ranks as fibres,
// streams as queues, events as records of a clock. Every call of the interfaces is a point at which
// another rank, or work of any stream, may run.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "cuda/host/device_memory.hpp"
#include "cuda/host/fibre.hpp"
#include "cuda/host/ranks.hpp"

namespace ringproof::cuda_host {

/// What an event stands for after it has been recorded.
struct EventRecord {
  bool done = false;
  VectorClock clock;
};

/// Half of a transfer between ranks.
struct Message {
  bool send = false;
  int peer = 0;
  char* buffer = nullptr;
  std::size_t bytes = 0;
  bool done = false;
};

enum class OperationKind { work, record, wait, exchange };

struct Operation {
  OperationKind kind = OperationKind::work;
  std::string name;
  Location place;
  std::function<void()> work;           // work
  std::shared_ptr<EventRecord> record;  // record, wait
  int communicator = 0, rank = 0;       // exchange
  std::vector<Message> messages;        // exchange
  VectorClock host;                     // of the host code that enqueued it
  VectorClock clock;                    // of its own accesses, once it has begun
  std::uint32_t number = 0;             // in the list of operations; 0: not begun
};

struct Stream {
  int device = 0;
  Worker worker = 0;
  std::string name;
  std::deque<Operation> queue;
  VectorClock clock;
  bool destroyed = false;
};

struct Rank {
  Fibre fibre{std::size_t{1} << 20};
  bool started = false, done = false;
  const std::function<bool()>* waits_for = nullptr;
  std::string waits_at;
  Worker worker = 0;
  VectorClock clock;
  std::uint32_t operation = 0;  // what its host code does now
  int group_depth = 0;
  std::vector<std::pair<Stream*, Operation>> group;  // NCCL calls of an open group
};

class World {
 public:
  World(int ranks, const RankOptions& options, const std::function<void(int)>& body);
  ~World();
  RankCounts run();

  /// The world of the running rank; a Fault if there is none.
  static World& current(const char* call);

  Rank& rank() { return ranks_[running_]; }
  int rank_number() const { return running_; }
  int rank_count() const { return static_cast<int>(ranks_.size()); }
  bool aborting() const { return fault_ != nullptr; }

  /// Begins a call of host code: a new moment of the rank. Throws if the world has ended.
  void begin_call(const std::string& name, const Location& place);
  /// Ends it: others may run now.
  void end_call();
  /// Notes what went wrong; every call that may throw will.
  void note_fault(const std::exception_ptr& fault);
  [[noreturn]] void fail(const Fault& fault);

  /// Lets others run until it holds, or until the world ends.
  void wait_until(const std::string& call, const std::function<bool()>& holds);
  void enqueue(Stream* stream, Operation operation);
  /// Everything that the stream has done is before what the rank does next.
  void join(const Stream& stream) { rank().clock.join(stream.clock); }
  Stream* expect_stream(Stream* stream, const std::string& call);

  /// An access by what runs now: a stream's operation, or the rank's host code.
  void access(const void* address, std::size_t size, Access access, const void* instruction);
  /// The same for memory that must be known to the device: anything else is a fault.
  void access_device(const void* address, std::size_t size, Access access);

  Worker new_worker() { return workers_++; }
  std::deque<Stream>& streams() { return streams_; }
  DeviceMemory memory;
  std::map<const void*, std::size_t> shared_limits;  // raised by cudaFuncSetAttribute
  std::map<std::string, int> communicators;

 private:
  struct Ready {
    Stream* stream;
    int message;  // -1: the whole operation
    enum { whole, meet, buffer, unbuffer } how;
  };
  struct Wire {
    std::vector<char> bytes;
    VectorClock clock;
  };
  using Route = std::pair<int, std::pair<int, int>>;  // communicator, from, to

  static void rank_main(void* world);
  void enter_rank(int next, bool for_ever);
  std::vector<int> runnable_ranks() const;
  std::vector<Ready> ready_work();
  void add_ready_messages(Stream& stream, std::vector<Ready>& ready);
  Message* receive_for(int communicator, int from, int to, Stream*& stream);
  bool run_some_work();
  void begin(Stream& stream, Operation& operation);
  void run_work(const Ready& ready);
  void run_message(const Ready& ready);
  void end_if_complete(Stream& stream);
  void touch(Stream& stream, Operation& operation, const Message& message);
  void fail_deadlock();

  RankOptions options_;
  const std::function<void(int)>& body_;
  std::mt19937_64 random_;
  std::vector<Rank> ranks_;
  int running_ = 0;
  Fibre caller_;
  Worker workers_ = 0;
  std::deque<Stream> streams_;
  std::map<Route, std::deque<Wire>> wires_;
  Stream* running_stream_ = nullptr;  // whose operation runs; null: host code does
  bool quiet_ = false;                // the machine itself runs, whose accesses mean nothing
  std::exception_ptr fault_;
  RankCounts counts_;
};

/// Thrown through a rank when the world has ended; only rank_main catches it.
struct Abandoned {};

}  // namespace ringproof::cuda_host
