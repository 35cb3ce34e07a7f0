#include "tutorials/07_processes/schedules.hpp"

#include <fmt/format.h>

namespace ringproof::tutorials {
namespace {

using mpi::Batch;
using mpi::DebugOptions;
using mpi::Transport;

std::span<const std::byte> out(const Block& block) { return std::as_bytes(std::span(block)); }
std::span<std::byte> in(Block& block) { return std::as_writable_bytes(std::span(block)); }

Index next_of(const Transport& transport) { return (transport.rank() + 1) % transport.size(); }
Index before(const Transport& transport) {
  return (transport.rank() + transport.size() - 1) % transport.size();
}

// [send-first]
/// Everybody sends, waits until it is gone, then receives.
void send_first(Transport& transport) {
  Block mine{}, theirs{};
  transport.post({.to = next_of(transport), .outgoing = out(mine)});
  transport.wait(transport.commit());
  transport.post({.from = before(transport), .incoming = in(theirs)});
  transport.wait(transport.commit());
}
// [/send-first]

/// Everybody receives first.
void receive_first(Transport& transport) {
  Block mine{}, theirs{};
  transport.post({.from = before(transport), .incoming = in(theirs)});
  transport.wait(transport.commit());
  transport.post({.to = next_of(transport), .outgoing = out(mine)});
  transport.wait(transport.commit());
}

/// Both are posted before anything is waited for.
void post_both(Transport& transport) {
  Block mine{}, theirs{};
  transport.post({.to = next_of(transport), .outgoing = out(mine)});
  transport.post({.from = before(transport), .incoming = in(theirs)});
  transport.wait(transport.commit());
}

/// One buffer: the next block is to arrive where the last one still leaves from.
void one_buffer(Transport& transport) {
  Block block{};
  transport.post({.to = next_of(transport),
                  .outgoing = out(block),
                  .from = before(transport),
                  .incoming = in(block)});
  transport.wait(transport.commit());
}

/// Rank 1 works in its block while it is still on its way out.
void writes_too_early(Transport& transport) {
  Block mine{}, theirs{};
  transport.post({.to = next_of(transport),
                  .outgoing = out(mine),
                  .from = before(transport),
                  .incoming = in(theirs)});
  const Batch batch = transport.commit();
  if (transport.rank() == 1) mine[0] = 5;
  transport.wait(batch);
}

/// Rank 1 reads a block before it has arrived; rank 0 sends it only afterwards. Returns the first
/// byte that rank 1 found.
unsigned read_too_early() {
  unsigned found = 0;
  mpi::run_ranks(2, {.check_buffers = true}, [&](Transport& transport) {
    Block block{}, go{};
    if (transport.rank() == 1) {
      transport.post({.from = 0, .incoming = in(block)});
      const Batch arriving = transport.commit();
      found = std::to_integer<unsigned>(out(block)[0]);
      transport.post({.lane = mpi::Lane::sums, .to = 0, .outgoing = out(go)});
      transport.wait(transport.commit());
      transport.wait(arriving);
    } else {
      transport.post({.lane = mpi::Lane::sums, .from = 1, .incoming = in(go)});
      transport.wait(transport.commit());
      transport.post({.to = 1, .outgoing = out(block)});
      transport.wait(transport.commit());
    }
  });
  return found;
}

}  // namespace

// [pass-round]
std::vector<Index> pass_round(Transport& transport) {
  const Index P = transport.size();
  Block in_hand{}, arriving{};
  in_hand.fill(transport.rank());
  std::vector<Index> seen;
  for (Index t = 0; t < P; ++t) {
    transport.at_step(t);
    Batch batch = 0;
    if (t + 1 < P) {
      transport.post({.to = next_of(transport),
                      .outgoing = out(in_hand),
                      .from = before(transport),
                      .incoming = in(arriving)});
      batch = transport.commit();  // from here on both blocks are under way
    }
    seen.push_back(in_hand[0]);  // here a rank would compute
    transport.wait(batch);
    std::swap(in_hand, arriving);
  }
  return seen;
}
// [/pass-round]

std::string outcome(Index ranks, const DebugOptions& debug,
                    const std::function<void(Transport&)>& body) {
  try {
    mpi::run_ranks(ranks, debug, body);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "ok";
}

void print_ring() {
  constexpr Index P = 4;
  Seen seen(P);
  mpi::run_ranks(P, {},
                 [&](Transport& transport) { seen[transport.rank()] = pass_round(transport); });
  fmt::print("        ");
  for (Index r = 0; r < P; ++r) fmt::print("   rank {}", r);
  fmt::print("\n");
  for (Index t = 0; t < P; ++t) {
    fmt::print("step {}  ", t);
    for (Index r = 0; r < P; ++r) fmt::print("  block {}", seen[r][t]);
    fmt::print("\n");
  }
}

void print_misuse() {
  fmt::print("one buffer, to send from and receive into:\n  {}\n", outcome(4, {}, one_buffer));
  fmt::print("rank 1 writes into its block before it has left:\n  {}\n",
             outcome(4, {.check_buffers = true}, writes_too_early));
  fmt::print("the same, nobody watching:\n  {}\n", outcome(4, {}, writes_too_early));
  fmt::print("rank 1 reads a block before it has arrived, and finds:\n  bytes {:#x}\n",
             read_too_early());
}

void print_deadlock() {
  struct Schedule {
    const char* name;
    void (*body)(Transport&);
  };
  fmt::print("everybody                  buffered sends   rendezvous sends\n");
  std::string said;
  for (const auto& [name, body] : {Schedule{"sends, then receives", send_first},
                                   {"receives, then sends", receive_first},
                                   {"posts both, then waits", post_both}}) {
    const std::string buffered = outcome(4, {}, body);
    const std::string rendezvous = outcome(4, {.rendezvous = true}, body);
    if (said.empty() && rendezvous != "ok") said = rendezvous;
    fmt::print("{:<26} {:<16} {}\n", name, buffered == "ok" ? "ok" : "deadlock",
               rendezvous == "ok" ? "ok" : "deadlock");
  }
  fmt::print("\n{}\n", said);
}

void print_death() {
  std::string seen_by_rank_0;
  const std::string said = outcome(4, {}, [&](Transport& transport) {
    if (transport.rank() == 2) throw std::runtime_error("no memory for a block");
    try {
      pass_round(transport);
    } catch (const mpi::PeerFailure& failure) {
      if (transport.rank() == 0) seen_by_rank_0 = failure.what();
      throw;
    }
  });
  fmt::print("rank 2 says: {}\nrank 0 says: {}\n", said, seen_by_rank_0);
}

}  // namespace ringproof::tutorials
