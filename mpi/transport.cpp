// The rules of the three verbs, which hold on every network (transport.hpp).
#include "mpi/transport.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

namespace ringproof::mpi {
namespace {

bool overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  const std::less<const std::byte*> before;
  return before(a.data(), b.data() + b.size()) && before(b.data(), a.data() + a.size());
}

/// FNV-1a, enough to see that a buffer was written to.
std::uint64_t checksum_of(const std::vector<Transfer>& transfers) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const Transfer& transfer : transfers) {
    for (const std::byte byte : transfer.outgoing) {
      hash = (hash ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3u;
    }
  }
  return hash;
}

}  // namespace

Transport::Transport(Index rank, Index size, const DebugOptions& debug)
    : rank_(rank),
      size_(size),
      debug_(debug),
      random_(debug.delay_seed + 7919u * static_cast<unsigned>(rank)) {}

std::string Transport::place() const {
  return "rank " + std::to_string(rank_) + ", step " + std::to_string(step_) + ": ";
}

void Transport::misuse(const std::string& what) const { throw Misuse(place() + what); }

void Transport::check_peer(Index peer) const {
  if (peer < -1 || peer >= size_) misuse("there is no rank " + std::to_string(peer));
  if (peer == rank_) misuse("a transfer to itself");
}

/// What leaves may leave twice; what arrives must be touched by nothing else.
void Transport::check_buffers(const Transfer& transfer) const {
  const auto clash = [&](const Transfer& other) {
    return overlap(transfer.incoming, other.incoming) ||
           overlap(transfer.incoming, other.outgoing) || overlap(transfer.outgoing, other.incoming);
  };
  if (overlap(transfer.incoming, transfer.outgoing)) misuse("sends from where it receives");
  for (const Transfer& other : posted_) {
    if (clash(other)) misuse("a buffer that is posted already");
  }
  for (const Flight& flight : flights_) {
    for (const Transfer& other : flight.transfers) {
      if (clash(other)) misuse("a buffer that is in flight");
    }
  }
}

void Transport::post(const Transfer& transfer) {
  check_peer(transfer.to);
  check_peer(transfer.from);
  if (transfer.to < 0 && transfer.from < 0) misuse("a transfer from nobody to nobody");
  check_buffers(transfer);
  posted_.push_back(transfer);
}

Batch Transport::commit() {
  if (posted_.empty()) return 0;
  delay();
  flights_.push_back({++last_, std::move(posted_), 0});
  posted_.clear();
  Flight& flight = flights_.back();
  if (debug_.check_buffers) {
    flight.checksum = checksum_of(flight.transfers);
    for (const Transfer& transfer : flight.transfers) {
      std::ranges::fill(transfer.incoming, std::byte{0xff});  // NaN in every format
    }
  }
  start(flight.batch, flight.transfers);
  return last_;
}

void Transport::wait(Batch batch) {
  if (batch == 0) return;
  const auto flight = std::find_if(flights_.begin(), flights_.end(),
                                   [&](const Flight& f) { return f.batch == batch; });
  if (flight == flights_.end()) misuse("waits for a batch that is not in flight");
  delay();
  finish(batch, flight->transfers);
  if (debug_.check_buffers && checksum_of(flight->transfers) != flight->checksum) {
    misuse("a buffer was written to before it had left");
  }
  flights_.erase(flight);
}

void Transport::expect_idle() const {
  if (!posted_.empty()) misuse("posted transfers were never committed");
  if (!flights_.empty()) misuse("transfers were never waited for");
}

void Transport::delay() {
  if (debug_.delay_seed == 0) return;
  std::this_thread::sleep_for(std::chrono::microseconds(random_() % 1000));
}

}  // namespace ringproof::mpi
