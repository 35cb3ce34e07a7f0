// What a rank needs of a network: three verbs, and to know who it is.
//   post    announce a transfer: one message out, one in, or both; nothing has begun yet
//   commit  begin everything that was posted since the last commit, as one batch
//   wait    until a batch is done; only then may its buffers be read, or written again
// Nothing is known here about attention. Between commit and wait the rank computes: that is where a
// transfer hides. Several batches may be in flight. Between two ranks the messages of one lane
// arrive in the order in which they were committed; lanes do not disturb each other.
//
//   transport.post({.lane = Lane::blocks, .to = 1, .outgoing = mine, .from = 3, .incoming = next});
//   const Batch batch = transport.commit();
//   ...                                        // compute with `mine`
//   transport.wait(batch);                     // now `next` is there
//
// Misuse (a buffer used twice, a wait for nothing, a message of another length) throws Misuse with
// rank and step. The debugging aids make a schedule fail that only works by luck: rendezvous sends
// do not end before their receive has begun, delays are random, arriving buffers hold NaN until
// they have arrived, and buffers on their way out are checked for changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "reference/number.hpp"

namespace ringproof::mpi {

using reference::Index;

/// Streams of messages that are ordered each for itself.
enum class Lane : int { blocks, gradients, home, sums };
constexpr int kLanes = 4;

struct Transfer {
  Lane lane = Lane::blocks;
  Index to = -1;  // -1: nothing goes out
  std::span<const std::byte> outgoing{};
  Index from = -1;  // -1: nothing comes in
  std::span<std::byte> incoming{};
};

/// Names a batch in flight; 0 is none, and need not be waited for.
using Batch = std::uint64_t;

/// The program is wrong: it did with a transport what must not be done.
struct Misuse : std::logic_error {
  using std::logic_error::logic_error;
};

/// Another rank failed, or the network did.
struct PeerFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Aids for tests; all off in ordinary runs.
struct DebugOptions {
  bool rendezvous = false;     // a send ends only when its receive has begun
  bool check_buffers = false;  // poison what arrives, watch what leaves
  unsigned delay_seed = 0;     // not 0: wait a random time of up to a millisecond at each verb
};

class Transport {
 public:
  Transport(Index rank, Index size, const DebugOptions& debug);
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  Index rank() const { return rank_; }
  Index size() const { return size_; }
  const DebugOptions& debug() const { return debug_; }
  /// Messages say at which step something went wrong.
  void at_step(Index step) { step_ = step; }
  /// " rank 2, step 3: "
  std::string place() const;

  void post(const Transfer&);
  /// Batch 0 if nothing was posted.
  Batch commit();
  void wait(Batch);
  /// Precondition of leaving: everything was committed and waited for. Throws Misuse if not.
  void expect_idle() const;

 protected:
  /// Begins a batch; must not wait for other ranks.
  virtual void start(Batch, const std::vector<Transfer>&) = 0;
  /// Returns when every message of the batch is there or gone.
  virtual void finish(Batch, const std::vector<Transfer>&) = 0;

 private:
  struct Flight {
    Batch batch;
    std::vector<Transfer> transfers;
    std::uint64_t checksum;  // of what leaves, if buffers are checked
  };
  [[noreturn]] void misuse(const std::string& what) const;
  void check_peer(Index peer) const;
  void check_buffers(const Transfer&) const;
  void delay();

  Index rank_, size_, step_ = 0;
  DebugOptions debug_;
  std::mt19937 random_;
  Batch last_ = 0;
  std::vector<Transfer> posted_;
  std::vector<Flight> flights_;
};

}  // namespace ringproof::mpi
