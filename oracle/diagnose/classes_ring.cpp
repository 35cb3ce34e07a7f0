// Mistakes of a ring: RING-STALE, RING-HOPS, INDEX-WRAP, and the wrong rescalings and merges of its
// partial results. A query is judged on the rank that owns it, and its keys come in by steps.
#include "oracle/contract/ring_partition.hpp"
#include "oracle/diagnose/combine.hpp"
#include "oracle/diagnose/online_table.hpp"
#include "oracle/diagnose/table.hpp"

namespace ringproof::oracle {

namespace {

constexpr std::int64_t kMostRanks = 256;

struct RingForm {
  Sharing sharing;
  RingOrder order;
  std::string name;
};

std::vector<RingForm> rings(const Subject& subject) {
  std::vector<RingForm> all;
  const auto& declared = subject.problem().spec.ring;
  for (const Sharing& sharing : sharings(subject)) {
    for (const RingOrder order : {RingOrder::down, RingOrder::up}) {
      if (declared && declared->order != order) continue;
      all.push_back(
          {sharing, order,
           std::string(" (") + sharing.name + (order == RingOrder::down ? ", down)" : ", up)")});
    }
  }
  return all;
}

/// Keys by the step in which their shard comes to the query's rank.
Family steps(const RingForm& ring) {
  Family family;
  const Sharing sharing = ring.sharing;
  const RingOrder order = ring.order;
  family.setting.rank = [sharing](std::int64_t b, std::int64_t i) {
    return sharing.query_rank(b, i);
  };
  family.setting.part = [sharing, order](std::int64_t rank, std::int64_t, std::int64_t j) {
    return merge_step(order, rank, sharing.key_rank(0, j), sharing.ranks);
  };
  family.setting.parts = sharing.ranks;
  return family;
}

void add_steps(const RingForm& ring, Families& families) {
  Family family = steps(ring);
  add_merge_rules(family, " of ranks" + ring.name);
  for (std::int64_t t = ring.sharing.ranks - 1; t >= 0; --t) {
    const std::string shard = "the shard of step " + std::to_string(t);
    const bool last = t == ring.sharing.ranks - 1;
    add(family, "RING-STALE",
        shard + " is never absorbed" + (last ? ", a hop is missing" : "") + ring.name,
        absorbed({t}, 0), "RING-HOPS, BLOCK-SKIP");
    add(family, "RING-STALE",
        shard + " is absorbed twice" + (t == 0 ? ", a hop too many" : "") + ring.name,
        absorbed({t}, 2), "RING-HOPS, BLOCK-TWICE");
  }
  add_online_rules(family, " over ranks" + ring.name, false);
  families.push_back(std::move(family));
}

/// The same row of another rank's shard; the last one of a shorter shard.
class Shards {
 public:
  explicit Shards(const Sharing& sharing) : rows_(index(sharing.ranks)) {
    for (std::int64_t j = 0; j < sharing.problem->keys; ++j) {
      const std::int64_t rank = sharing.key_rank(0, j);
      rank_.push_back(rank);
      local_.push_back(static_cast<std::int64_t>(rows_[index(rank)].size()));
      rows_[index(rank)].push_back(j);
    }
  }
  std::int64_t rank(std::int64_t j) const { return rank_[index(j)]; }
  bool in_second_half(std::int64_t j) const {
    return 2 * local_[index(j)] >= static_cast<std::int64_t>(rows_[index(rank(j))].size());
  }
  std::int64_t same_row(std::int64_t j, std::int64_t rank) const {
    const auto& rows = rows_[index(rank)];
    if (rows.empty()) return kZeroKey;
    return rows[std::min(index(local_[index(j)]), rows.size() - 1)];
  }

 private:
  std::vector<std::int64_t> rank_, local_;
  std::vector<std::vector<std::int64_t>> rows_;
};

/// Numbers of another shard in the place of those that should have arrived.
void add_stale(const RingForm& ring, Families& families) {
  const Sharing sharing = ring.sharing;
  const RingOrder order = ring.order;
  const Shards shards(sharing);
  const std::int64_t P = sharing.ranks;
  struct Source {
    const char* words;
    // Rank whose shard is read in step t on `rank`, the right one being that of step t.
    std::function<std::int64_t(std::int64_t t)> step;
    int half = 0;  // 1: the first half only, 2: the second half only
  };
  const Source sources[] = {
      {" of step 0 in every step", [](std::int64_t) { return std::int64_t{0}; }},
      {" of the step before", [](std::int64_t t) { return t == 0 ? 0 : t - 1; }},
      {" of the step after", [P](std::int64_t t) { return (t + 1) % P; }},
      {" of the neighbour, around the ring", [P](std::int64_t t) { return (t + P - 1) % P; }},
      {" of step 0 in the last step", [P](std::int64_t t) { return t == P - 1 ? 0 : t; }},
      {" of the step before in the second half of a shard",
       [](std::int64_t t) { return t == 0 ? 0 : t - 1; }, 2},
      {" of the step before in the first half of a shard",
       [](std::int64_t t) { return t == 0 ? 0 : t - 1; }, 1},
      {" of step 0 in the second half of a shard", [](std::int64_t) { return std::int64_t{0}; },
       2}};
  const char* names[] = {"", "K", "V", "K and V"};
  for (const Source& source : sources) {
    for (int which = 3; which >= 1; --which) {
      for (const bool mask_too : {false, true}) {
        Family family;
        family.setting.rank = [sharing](std::int64_t b, std::int64_t i) {
          return sharing.query_rank(b, i);
        };
        family.setting.change = [=](HeadChange& c) {
          for (KeySource& key : c.keys) {
            const std::int64_t j = key.at;
            const std::int64_t t = merge_step(order, c.rank, shards.rank(j), P);
            const bool second = shards.in_second_half(j);
            if ((source.half == 1 && second) || (source.half == 2 && !second)) continue;
            const std::int64_t from_step = source.step(t);
            const std::int64_t from_rank =
                order == RingOrder::down ? (c.rank - from_step + P) % P : (c.rank + from_step) % P;
            const std::int64_t from = shards.same_row(j, from_rank);
            if ((which & 1) != 0) key.k = from;
            if ((which & 2) != 0) key.v = from;
            if (mask_too && from != kZeroKey) key.at = from;
          }
        };
        add(family, "RING-STALE",
            names[which] + std::string(source.words) +
                (mask_too ? ", masked by where they come from" : "") + ring.name,
            {}, "BLOCK-TWICE");
        families.push_back(std::move(family));
      }
    }
  }
}

/// The shard that a rank believes to hold, from a difference that wrapped around.
void add_wrong_index(const RingForm& ring, Families& families) {
  const Sharing sharing = ring.sharing;
  const RingOrder order = ring.order;
  const Shards shards(sharing);
  const std::int64_t P = sharing.ranks;
  struct Belief {
    const char* id;
    const char* words;
    std::function<std::int64_t(std::int64_t rank, std::int64_t t)> shard;
  };
  const Belief beliefs[] = {
      {"INDEX-WRAP", "(r - t) mod 2^32 mod P in the mask",
       [P](std::int64_t rank, std::int64_t t) {
         return static_cast<std::int64_t>(static_cast<std::uint32_t>(rank - t)) % P;
       }},
      {"POSITION", "shards are taken to come in the other direction",
       [P, order](std::int64_t rank, std::int64_t t) {
         return order == RingOrder::down ? (rank + t) % P : (rank - t + P) % P;
       }},
      {"POSITION", "every shard is taken for the rank's own",
       [](std::int64_t rank, std::int64_t) { return rank; }},
      {"POSITION", "the shard of step t is taken for shard t",
       [](std::int64_t, std::int64_t t) { return t; }}};
  for (const Belief& belief : beliefs) {
    Family family;
    family.setting.rank = [sharing](std::int64_t b, std::int64_t i) {
      return sharing.query_rank(b, i);
    };
    family.setting.change = [=](HeadChange& c) {
      for (KeySource& key : c.keys) {
        const std::int64_t t = merge_step(order, c.rank, shards.rank(key.at), P);
        const std::int64_t at = shards.same_row(key.at, belief.shard(c.rank, t));
        if (at != kZeroKey) key.at = at;
      }
    };
    add(family, belief.id, belief.words + ring.name, {}, "POSITION");
    families.push_back(std::move(family));
  }
}

}  // namespace

void add_ring_classes(const Subject& subject, Families& families) {
  if (subject.ranks > kMostRanks) return;
  for (const Sharing& sharing : sharings(subject)) {  // partial results gathered in rank order
    Family family;
    family.setting.part = [sharing](std::int64_t, std::int64_t, std::int64_t j) {
      return sharing.key_rank(0, j);
    };
    family.setting.parts = sharing.ranks;
    add_merge_rules(family, std::string(" of ranks (") + sharing.name + ", in rank order)");
    add_online_rules(family, std::string(" over ranks (") + sharing.name + ", in rank order)",
                     false);
    families.push_back(std::move(family));
  }
  for (const RingForm& ring : rings(subject)) {
    add_steps(ring, families);
    add_wrong_index(ring, families);
    add_stale(ring, families);
  }
}

}  // namespace ringproof::oracle
