// Several processes that judge one case together: what a member needs of the others, and which
// part of the work is whose. Every member comes to the same report as a single process would: work
// is cut into parts that depend on the problem alone, parts are judged by their owners, and every
// member merges all of them in order. Not here: how bytes travel (mpi/check_main.cpp does it with
// MPI), and what a part is (check.cpp, gradient_judge.cpp).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "oracle/judge/wire.hpp"

namespace ringproof::oracle {

struct Case;

/// Members are processes on equal machines: numbers travel as they lie in memory.
class Team {
 public:
  virtual ~Team() = default;
  virtual int rank() const = 0;  // 0 <= rank() < size()
  virtual int size() const = 0;
  /// What every member gives, in the order of ranks. Collective: every member calls it, in the same
  /// order.
  virtual std::vector<std::string> gather(const std::string& mine) const = 0;
  /// What this member may use of its machine, on which others may run as well.
  virtual int threads() const = 0;
};

/// The member that owns a part, of parts of growing length under a causal mask: of 2P runs of parts
/// it has the n-th from either end, as a zig-zag ring deals its rows.
int owner_of_part(std::int64_t part, std::int64_t parts, int members);
/// True for every part if there is no team.
bool is_mine(const Team*, std::int64_t part, std::int64_t parts);

/// Fills a list of which every member has its own parts. Collective; nothing to do without a team.
template <class Value>
void complete(const Team* team, std::vector<Value>& parts) {
  if (team == nullptr) return;
  const auto count = static_cast<std::int64_t>(parts.size());
  std::vector<std::vector<Value>> of(static_cast<std::size_t>(team->size()));
  const auto owner = [&](std::int64_t part) {
    return static_cast<std::size_t>(owner_of_part(part, count, team->size()));
  };
  std::vector<Value>& mine = of[static_cast<std::size_t>(team->rank())];
  for (std::int64_t part = 0; part < count; ++part) {
    if (is_mine(team, part, count)) mine.push_back(parts[static_cast<std::size_t>(part)]);
  }
  const std::vector<std::string> messages = team->gather(to_wire(mine));
  for (std::size_t rank = 0; rank < of.size(); ++rank) {
    of[rank] = from_wire<std::vector<Value>>(messages[rank]);
  }
  std::vector<std::size_t> next(of.size());
  for (std::int64_t part = 0; part < count; ++part) {
    const std::size_t rank = owner(part);
    parts[static_cast<std::size_t>(part)] = std::move(of[rank].at(next[rank]++));
  }
}

/// Does something that a single member may fail at with BadInput; if any did, all throw it, with
/// the member's rank in front unless all say the same. Collective.
void together(const Team*, const std::function<void()>& action);

/// Throws BadInput(complaint) on all members, naming the first whose value is another one than that
/// of member 0. Collective.
void require_same(const Team*, const std::string& value, const std::string& complaint);

/// A digest of what all members must agree on: names, sizes, spec, and a sample of every tensor.
std::uint64_t digest_of(const Case&);

}  // namespace ringproof::oracle
