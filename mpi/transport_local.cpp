// Mailboxes under one lock (transport_local.hpp). A send and a receive meet when the second of them
// is committed; who commits it copies. Without rendezvous a send that comes first is copied aside.
#include "mpi/transport_local.hpp"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

namespace ringproof::mpi {
namespace {

/// One message, from the side that came first.
struct Request {
  std::span<const std::byte> outgoing;
  std::span<std::byte> incoming;
  std::vector<std::byte> aside;  // a buffered send's own copy
  bool done = false;
};
using RequestPointer = std::shared_ptr<Request>;
using Requests = std::vector<RequestPointer>;

bool all_done(const Requests& requests) {
  return std::all_of(requests.begin(), requests.end(), [](const auto& r) { return r->done; });
}

/// Messages of one lane from one rank to another that wait for the other side.
struct Channel {
  std::deque<RequestPointer> sends, receives;
};

/// What one rank is doing.
struct Seat {
  const Requests* waits_for = nullptr;  // null: it computes
  std::string place;
  bool finished = false;

  bool stuck() const { return waits_for != nullptr && !all_done(*waits_for); }
};

/// Everything the ranks share; all of it is read and written under the lock.
struct Network {
  Network(Index ranks, bool rendezvous_sends)
      : rendezvous(rendezvous_sends), seats(static_cast<std::size_t>(ranks)) {}

  const bool rendezvous;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::array<Index, 3>, Channel> channels;  // from, to, lane
  std::vector<Seat> seats;
  std::string failure;  // not empty: everybody stops

  Seat& seat(Index rank) { return seats[static_cast<std::size_t>(rank)]; }

  /// Both sides are there.
  void deliver(Request& send, Request& receive, const std::string& place) {
    if (send.outgoing.size() != receive.incoming.size()) {
      throw Misuse(place + "a message of " + std::to_string(send.outgoing.size()) +
                   " bytes meets a buffer of " + std::to_string(receive.incoming.size()));
    }
    std::copy(send.outgoing.begin(), send.outgoing.end(), receive.incoming.begin());
    send.done = receive.done = true;
    changed.notify_all();
  }

  void fail(const std::string& reason) {
    if (failure.empty()) failure = reason;
    changed.notify_all();
  }

  /// Nobody computes, somebody waits, and nothing that is waited for has come.
  void look_for_deadlock() {
    std::string text;
    for (const Seat& seat : seats) {
      if (seat.finished) continue;
      if (!seat.stuck()) return;
      text += (text.empty() ? " " : "; ") + seat.place.substr(0, seat.place.size() - 2);
    }
    if (!text.empty()) fail("deadlock, all ranks wait:" + text);
  }
};

class LocalTransport final : public Transport {
 public:
  LocalTransport(Network& network, Index rank, const DebugOptions& debug)
      : Transport(rank, static_cast<Index>(network.seats.size()), debug), network_(network) {}

 protected:
  void start(Batch batch, const std::vector<Transfer>& transfers) override {
    const std::lock_guard lock(network_.mutex);
    Requests& requests = requests_[batch];
    for (const Transfer& transfer : transfers) {
      if (transfer.to >= 0) requests.push_back(send(transfer));
      if (transfer.from >= 0) requests.push_back(receive(transfer));
    }
  }

  void finish(Batch batch, const std::vector<Transfer>&) override {
    std::unique_lock lock(network_.mutex);
    const Requests& requests = requests_.at(batch);
    Seat& seat = network_.seat(rank());
    seat.waits_for = &requests;
    seat.place = place();
    network_.look_for_deadlock();
    network_.changed.wait(lock, [&] { return all_done(requests) || !network_.failure.empty(); });
    seat.waits_for = nullptr;
    if (!all_done(requests)) throw PeerFailure(network_.failure);
    requests_.erase(batch);
  }

 private:
  Channel& channel(Index from, Index to, Lane lane) {
    return network_.channels[{from, to, static_cast<Index>(lane)}];
  }

  RequestPointer send(const Transfer& transfer) {
    Channel& to = channel(rank(), transfer.to, transfer.lane);
    auto request = std::make_shared<Request>();
    request->outgoing = transfer.outgoing;
    if (!to.receives.empty()) {
      network_.deliver(*request, *to.receives.front(), place());
      to.receives.pop_front();
      return request;
    }
    to.sends.push_back(request);
    if (network_.rendezvous) return request;
    request->aside.assign(transfer.outgoing.begin(), transfer.outgoing.end());
    request->outgoing = request->aside;
    auto gone = std::make_shared<Request>();  // the sender has done its part; the copy goes on
    gone->done = true;
    return gone;
  }

  RequestPointer receive(const Transfer& transfer) {
    Channel& from = channel(transfer.from, rank(), transfer.lane);
    auto request = std::make_shared<Request>();
    request->incoming = transfer.incoming;
    if (from.sends.empty()) {
      from.receives.push_back(request);
      return request;
    }
    network_.deliver(*from.sends.front(), *request, place());
    from.sends.pop_front();
    return request;
  }

  Network& network_;
  std::map<Batch, Requests> requests_;
};

/// One rank's life; what ends it early is told to the others.
std::exception_ptr live(Network& network, Index rank, const DebugOptions& debug,
                        const std::function<void(Transport&)>& body) {
  std::exception_ptr failure;
  LocalTransport transport(network, rank, debug);
  try {
    body(transport);
    transport.expect_idle();
  } catch (const PeerFailure&) {
    failure = std::current_exception();
  } catch (const std::exception& error) {
    failure = std::current_exception();
    const std::lock_guard lock(network.mutex);
    network.fail("rank " + std::to_string(rank) + " failed: " + error.what());
  }
  const std::lock_guard lock(network.mutex);
  network.seat(rank).finished = true;
  network.look_for_deadlock();
  return failure;
}

}  // namespace

void run_ranks(Index ranks, const DebugOptions& debug,
               const std::function<void(Transport&)>& body) {
  Network network(ranks, debug.rendezvous);
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(ranks));
  {
    std::vector<std::jthread> threads;
    for (Index rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        failures[static_cast<std::size_t>(rank)] = live(network, rank, debug, body);
      });
    }
  }
  // The rank that failed first speaks for itself; the others only know that it did.
  std::exception_ptr of_a_peer;
  for (const std::exception_ptr& failure : failures) {
    if (!failure) continue;
    try {
      std::rethrow_exception(failure);
    } catch (const PeerFailure&) {
      of_a_peer = failure;
    }
  }
  if (of_a_peer) std::rethrow_exception(of_a_peer);
}

}  // namespace ringproof::mpi
