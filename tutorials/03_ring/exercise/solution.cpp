// Exercise 03: the loop of the ring. Everything between the marks is yours; the rest is the check.
// No arithmetic here: a block is its number, and a rank remembers which blocks it has worked on.
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "tutorials/support/check.hpp"

using ringproof::tutorials::Check;

/// The links between the ranks. A block that is sent is on its way until it is received.
class Wire {
 public:
  void send(int from, int to, int block) {
    if (on_the_way_.count(to) != 0) collided_ = true;  // a rank has one place for arrivals
    on_the_way_[to] = block;
    sent_[from] += 1;
  }
  /// The block that was sent to this rank; -1 if there is none, where a real ring would wait
  /// for ever.
  int receive(int at) {
    if (on_the_way_.count(at) == 0) return -1;
    const int block = on_the_way_[at];
    on_the_way_.erase(at);
    return block;
  }
  int sent(int rank) const { return sent_.count(rank) != 0 ? sent_.at(rank) : 0; }
  bool is_quiet() const { return on_the_way_.empty() && !collided_; }

 private:
  std::map<int, int> on_the_way_, sent_;  // by receiver, by sender
  bool collided_ = false;
};

struct Rank {
  int block;                      // the block in hand
  std::vector<int> met;           // all blocks it has worked on, in order
  std::vector<int> sent_by_then;  // how many it had begun to send, each time it worked

  void work(const Wire& wire, int rank) {
    met.push_back(block);
    sent_by_then.push_back(wire.sent(rank));
  }
};

/// The ring. At the beginning rank r holds block r.
void ring(std::vector<Rank>& ranks, Wire& wire) {
  const int P = static_cast<int>(ranks.size());
  // [answer]
  //? // Your turn. In each step every rank first sends its block, then works, then receives.
  //? for (int r = 0; r < P; ++r) ranks[r].work(wire, r);
  for (int t = 0; t < P; ++t) {
    const bool travels = t < P - 1;
    for (int r = 0; r < P; ++r) {
      if (travels) wire.send(r, (r + 1) % P, ranks[r].block);
    }
    for (int r = 0; r < P; ++r) ranks[r].work(wire, r);
    for (int r = 0; r < P; ++r) {
      if (travels) ranks[r].block = wire.receive(r);
    }
  }
  // [/answer]
}

int main() {
  Check check("03");
  for (int P = 1; P <= 16; ++P) {
    std::vector<Rank> ranks;
    for (int r = 0; r < P; ++r) ranks.push_back({r, {}, {}});
    Wire wire;
    ring(ranks, wire);
    check.holds(fmt::format("{} ranks: nothing is on its way at the end, nothing collided", P),
                wire.is_quiet());
    for (int r = 0; r < P; ++r) {
      const std::string where = fmt::format("{} ranks, rank {}", P, r);
      std::vector<int> expected_order, expected_sent;
      for (int t = 0; t < P; ++t) {
        expected_order.push_back((r - t + P) % P);
        expected_sent.push_back(std::min(t + 1, P - 1));
      }
      const std::set<int> different(ranks[r].met.begin(), ranks[r].met.end());
      check.equal(where + ": steps", static_cast<int>(ranks[r].met.size()), P);
      check.equal(where + ": different blocks met", static_cast<int>(different.size()), P);
      check.equal(where + ": blocks sent", wire.sent(r), P - 1);
      check.holds(where + " meets block (r - t) mod P at step t", ranks[r].met == expected_order);
      check.holds(where + " begins to send before it works",
                  ranks[r].sent_by_then == expected_sent);
    }
  }
  return check.finish();
}
