// Exercise 07: a ring on a network that does one thing at a time. A rank may send or receive, not
// both at once, and must wait for each before it begins the next. Find the order in which nobody
// waits for ever, for every number of ranks, also if a send is only over once somebody receives it.
// Everything between the marks is yours; the rest is the check. A deadlock is reported, not waited
// for.
#include <array>
#include <string>
#include <vector>

#include "mpi/transport_local.hpp"
#include "tutorials/support/check.hpp"

using ringproof::mpi::DebugOptions;
using ringproof::mpi::Index;
using ringproof::mpi::Transport;
using ringproof::tutorials::Check;

/// A block that holds nothing but its owner's number.
using Block = std::array<Index, 4>;

/// Sends a block to a rank, and waits until it has left.
void send(Transport& transport, Index to, const Block& block) {
  transport.post({.to = to, .outgoing = std::as_bytes(std::span(block))});
  transport.wait(transport.commit());
}

/// Waits until the block of a rank has arrived.
void receive(Transport& transport, Index from, Block& block) {
  transport.post({.from = from, .incoming = std::as_writable_bytes(std::span(block))});
  transport.wait(transport.commit());
}

/// Passes blocks round the ring of chapter 03; returns the owners of the blocks that this rank had.
std::vector<Index> pass_round(Transport& transport) {
  const Index P = transport.size(), r = transport.rank();
  const Index next = (r + 1) % P, before = (r + P - 1) % P;
  Block in_hand{}, arriving{};
  in_hand.fill(r);
  std::vector<Index> seen{r};
  for (Index t = 0; t + 1 < P; ++t) {
    transport.at_step(t);
    // [answer]
    //? // Your turn. This works as long as the network has room for a block of every rank:
    //? send(transport, next, in_hand);
    //? receive(transport, before, arriving);
    if (r % 2 == 0) {
      send(transport, next, in_hand);
      receive(transport, before, arriving);
    } else {
      receive(transport, before, arriving);
      send(transport, next, in_hand);
    }
    // [/answer]
    std::swap(in_hand, arriving);
    seen.push_back(in_hand[0]);
  }
  return seen;
}

int main() {
  Check check("07");
  for (Index P = 1; P <= 7; ++P) {
    for (const bool rendezvous : {false, true}) {
      const std::string where =
          fmt::format("{} ranks, {} sends", P, rendezvous ? "rendezvous" : "buffered");
      std::vector<std::vector<Index>> seen(P), expected(P);
      for (Index r = 0; r < P; ++r) {
        for (Index t = 0; t < P; ++t) expected[r].push_back((r - t + P) % P);
      }
      std::string said = "nothing";
      try {
        ringproof::mpi::run_ranks(P, {.rendezvous = rendezvous, .check_buffers = true},
                                  [&](Transport& t) { seen[t.rank()] = pass_round(t); });
      } catch (const std::exception& error) {
        said = error.what();
      }
      check.equal(where + ": complaint", said, std::string("nothing"));
      check.holds(where + ": blocks in the order of the schedule", seen == expected);
    }
  }
  return check.finish();
}
