// Mistakes of the backward pass: DQ-ZERO, SCALE, DELTA, LSE-GRAD, SOFTCAP-ORDER, DOUT-IGNORED,
// GQA-GRAD, DKV-SWAP, TAIL, BLOCK-SKIP and RING-STALE of gradients, LSE-BASE in P.
#include <cmath>

#include "oracle/contract/ring_partition.hpp"
#include "oracle/diagnose/gradient_mutant.hpp"
#include "oracle/diagnose/table.hpp"

namespace ringproof::oracle {

namespace {

using Mutants = std::vector<GradientMutant>;
using Edit = std::function<void(GradientRule&)>;

constexpr double kLn2 = 0x1.62e42fefa39efp-1;
constexpr int kDq = 1, kDk = 2, kDv = 4;

/// `wrong`: the gradients that come out wrong, as a sum of kDq, kDk, kDv.
void add(Mutants& mutants, const char* id, std::string words, int wrong, const Edit& edit,
         const char* also = "") {
  GradientMutant one{.id = id,
                     .words = std::move(words),
                     .also = also,
                     .dq = (wrong & kDq) != 0,
                     .dk = (wrong & kDk) != 0,
                     .dv = (wrong & kDv) != 0,
                     .rule = {}};
  edit(one.rule);
  mutants.push_back(std::move(one));
}

const char* names(int wrong) {
  const char* const kNames[] = {"",   "dq",        "dk",        "dq and dk",
                                "dv", "dq and dv", "dk and dv", "dq, dk and dv"};
  return kNames[wrong];
}

void add_factors(const Subject& subject, double scale, Mutants& mutants) {
  const double group = static_cast<double>(subject.problem().group());
  const auto times = [&](const char* id, const std::string& words, int wrong, double factor,
                         const char* also = "") {
    add(
        mutants, id, std::string(names(wrong)) + words, wrong,
        [=](GradientRule& rule) {
          if ((wrong & kDq) != 0) rule.factor_q = factor;
          if ((wrong & kDk) != 0) rule.factor_k = factor;
          if ((wrong & kDv) != 0) rule.factor_v = factor;
        },
        also);
  };
  for (int wrong = 1; wrong < 8; ++wrong) {
    times("DQ-ZERO", wrong == kDq || wrong == kDk || wrong == kDv ? " is zero" : " are zero", wrong,
          0);
    times("GAIN", ": the sign", wrong, -1);
    times("GAIN", " twice", wrong, 2);
    times("GAIN", " halved", wrong, 0.5);
    if (group > 1 && (wrong & kDq) == 0) {
      times("GQA-GRAD", ": mean over the group in place of the sum", wrong, 1 / group, "GQA-MAP");
    }
    if (subject.ranks > 1) {
      const auto ranks = static_cast<double>(subject.ranks);
      times("MERGE-WEIGHT", ": mean over ranks in place of the sum", wrong, 1 / ranks,
            "NORM-AVERAGE");
      times("BLOCK-TWICE", ": once a rank", wrong, ranks);
    }
    if ((wrong & kDv) != 0) continue;
    times("SCALE", ": the scale is missing", wrong, 1 / scale);
    times("SCALE", ": the scale is applied twice", wrong, scale);
    times("SCALE", ": times log2(e)", wrong, 1 / kLn2);
    times("SCALE", ": times ln 2", wrong, kLn2);
  }
}

void add_terms(const Subject& subject, Mutants& mutants) {
  const Case& input = subject.input;
  const int both = kDq + kDk;
  add(mutants, "DELTA", "D is left out", both, [](GradientRule& r) { r.without_D = true; });
  add(mutants, "DELTA", "the sign of D", both, [](GradientRule& r) { r.negative_D = true; });
  for (const int one : {kDq, kDk}) {
    add(mutants, "DELTA", std::string("D is left out of ") + names(one), one,
        [](GradientRule& r) { r.without_D = true; });
  }
  if (input.dlse) {
    add(mutants, "LSE-GRAD", "the gradient of the lse is ignored", both,
        [](GradientRule& r) { r.without_dlse = true; });
  }
  if (subject.problem().spec.softcap > 0) {
    add(mutants, "SOFTCAP-ORDER", "the derivative of the softcap is missing", both,
        [](GradientRule& r) { r.without_derivative = true; });
  }
  add(mutants, "DOUT-IGNORED", "dout is taken for ones", both + kDv,
      [](GradientRule& r) { r.ones_for_dout = r.ones_for_dout_in_D = true; });
  add(mutants, "DOUT-IGNORED", "dout is taken for ones, but not in D", both + kDv,
      [](GradientRule& r) { r.ones_for_dout = true; });
  add(mutants, "DOUT-IGNORED", "dout is taken for ones in D", both,
      [](GradientRule& r) { r.ones_for_dout_in_D = true; });
  for (const double exponent : {kLn2, 1 / kLn2}) {
    add(mutants, "LSE-BASE", "probabilities are recomputed in another base", both + kDv,
        [exponent](GradientRule& r) { r.p_exponent = exponent; });
  }
}

void add_groups(const Subject& subject, Mutants& mutants) {
  const std::int64_t group = subject.problem().group();
  if (group < 2) return;
  for (const int wrong : {kDk + kDv, kDk, kDv}) {
    for (const std::int64_t only : {std::int64_t{0}, group - 1}) {
      const GradientRule::Pair of_one = [group, only](std::int64_t h, std::int64_t, std::int64_t) {
        return h % group == only ? 1.0 : 0.0;
      };
      add(
          mutants, "GQA-GRAD",
          std::string(names(wrong)) + " of the " + (only == 0 ? "first" : "last") +
              " head of the group alone",
          wrong,
          [=](GradientRule& rule) {
            if ((wrong & kDk) != 0) rule.counts_k = of_one;
            if ((wrong & kDv) != 0) rule.counts_v = of_one;
          },
          "GQA-MAP");
    }
  }
}

/// Pairs that do not count, in the gradients that are wrong.
void add_pairs(Mutants& mutants, const char* id, const std::string& words,
               std::initializer_list<int> choices, const GradientRule::Pair& counts,
               const char* also = "") {
  for (const int wrong : choices) {
    add(
        mutants, id, std::string(names(wrong)) + words, wrong,
        [=](GradientRule& rule) {
          if ((wrong & kDq) != 0) rule.counts_q = counts;
          if ((wrong & kDk) != 0) rule.counts_k = counts;
          if ((wrong & kDv) != 0) rule.counts_v = counts;
        },
        also);
  }
}

void add_tiles(const Subject& subject, Mutants& mutants) {
  const std::int64_t queries = subject.problem().queries, keys = subject.problem().keys;
  for (const std::int64_t size : {8, 16, 24, 32, 48, 64, 96, 128, 256, 512}) {
    const std::string of = tiles_of(size);
    const auto lines = [&](const char* side, std::int64_t count, bool by_key) {
      if (count <= size) return;
      const std::int64_t last = (count - 1) / size;
      const auto tile = [size, by_key](std::int64_t i, std::int64_t j) {
        return (by_key ? j : i) / size;
      };
      const std::initializer_list<int> all{kDq + kDk + kDv, kDk + kDv, kDq, kDk, kDv, kDq + kDk};
      add_pairs(
          mutants, "TAIL", std::string(": the last tile of ") + side + " is lost" + of, all,
          [=](std::int64_t, std::int64_t i, std::int64_t j) {
            return tile(i, j) == last ? 0.0 : 1.0;
          },
          "BLOCK-SKIP");
      add_pairs(mutants, "BLOCK-SKIP",
                std::string(": the last tile of ") + side + " alone, stored and not added" + of,
                all, [=](std::int64_t, std::int64_t i, std::int64_t j) {
                  return tile(i, j) == last ? 1.0 : 0.0;
                });
      add_pairs(mutants, "BLOCK-SKIP", std::string(": the first tile of ") + side + " alone" + of,
                all, [=](std::int64_t, std::int64_t i, std::int64_t j) {
                  return tile(i, j) == 0 ? 1.0 : 0.0;
                });
      // Tiles between: few enough that every one of them is a form.
      constexpr std::int64_t kMostTiles = 16;
      for (std::int64_t lost = 0; lost < last && last < kMostTiles; ++lost) {
        add_pairs(mutants, "BLOCK-SKIP",
                  ": tile " + std::to_string(lost) + " of the " + side + " is lost" + of, all,
                  [=](std::int64_t, std::int64_t i, std::int64_t j) {
                    return tile(i, j) == lost ? 0.0 : 1.0;
                  });
      }
    };
    lines("keys", keys, true);
    lines("queries", queries, false);
  }
}

void add_exchanges(Mutants& mutants) {
  const int both = kDk + kDv;
  add(mutants, "DKV-SWAP", "dk and dv are exchanged", both,
      [](GradientRule& r) { r.exchanged = true; });
  add(mutants, "DKV-SWAP", "dk holds dk + dv", kDk, [](GradientRule& r) { r.dv_in_dk = 1; });
  add(mutants, "DKV-SWAP", "dv holds dk + dv", kDv, [](GradientRule& r) { r.dk_in_dv = 1; });
  add(mutants, "DKV-SWAP", "both hold dk + dv", both,
      [](GradientRule& r) { r.dv_in_dk = r.dk_in_dv = 1; });
  add(mutants, "DKV-SWAP", "dk holds dv", kDk, [](GradientRule& r) {
    r.factor_k = 0;
    r.dv_in_dk = 1;
  });
  add(mutants, "DKV-SWAP", "dv holds dk", kDv, [](GradientRule& r) {
    r.factor_v = 0;
    r.dk_in_dv = 1;
  });
}

/// Rows of every rank's shard, and what a ring may do to gradients that travel with them.
void add_ring(const Subject& subject, Mutants& mutants) {
  const int both = kDk + kDv;
  for (const Sharing& sharing : sharings(subject)) {
    const std::int64_t P = sharing.ranks;
    std::vector<std::vector<std::int64_t>> rows(index(P));
    std::vector<std::int64_t> local(index(sharing.problem->keys));
    for (std::int64_t j = 0; j < sharing.problem->keys; ++j) {
      auto& of_rank = rows[index(sharing.key_rank(0, j))];
      local[index(j)] = static_cast<std::int64_t>(of_rank.size());
      of_rank.push_back(j);
    }
    const auto of_rank = [=](std::int64_t j, std::int64_t rank) {
      const auto& shard = rows[index(((rank % P) + P) % P)];
      return index(local[index(j)]) < shard.size() ? shard[index(local[index(j)])] : kZeroKey;
    };
    const std::string in = std::string(" (") + sharing.name + ")";
    for (const std::int64_t by : {1, -1}) {
      const auto neighbour = [=](std::int64_t j) {
        return of_rank(j, sharing.key_rank(0, j) + by);
      };
      const std::string words =
          std::string(" of the ") + (by > 0 ? "next" : "previous") + " rank's shard" + in;
      for (const int wrong : {both, kDk, kDv}) {
        add(
            mutants, "RING-STALE", names(wrong) + words, wrong,
            [=](GradientRule& r) {
              if ((wrong & kDk) != 0) r.dk_from = neighbour;
              if ((wrong & kDv) != 0) r.dv_from = neighbour;
            },
            "RING-HOPS");
      }
      add(mutants, "DKV-SWAP", "dk holds dk + dv, dv is that" + words, both, [=](GradientRule& r) {
        r.dv_in_dk = 1;
        r.dv_from = neighbour;
      });
      add(mutants, "DKV-SWAP", "dk holds dk + dv, dv holds dk + dv" + words, both,
          [=](GradientRule& r) {
            r.dv_in_dk = r.dk_in_dv = 1;
            r.dv_from = neighbour;
          });
      add(mutants, "DKV-SWAP", "dk holds dk + dv" + words + ", dv its own", kDk,
          [=](GradientRule& r) {
            r.dv_in_dk = 1;
            r.dk_from = neighbour;
          });
    }
    for (const RingOrder order : {RingOrder::down, RingOrder::up}) {
      const char* direction = order == RingOrder::down ? ", down" : ", up";
      for (std::int64_t t = P - 1; t >= 0; --t) {
        add_pairs(
            mutants, "RING-STALE", " lack the pairs of step " + std::to_string(t) + in + direction,
            {both, kDq + both, kDq, kDk, kDv},
            [=](std::int64_t, std::int64_t i, std::int64_t j) {
              const std::int64_t step =
                  merge_step(order, sharing.query_rank(0, i), sharing.key_rank(0, j), P);
              return step == t ? 0.0 : 1.0;
            },
            "RING-HOPS, BLOCK-SKIP");
      }
      const auto previous = [=](std::int64_t i, std::int64_t j) {
        const std::int64_t rank = sharing.query_rank(0, i), own = sharing.key_rank(0, j);
        if (merge_step(order, rank, own, P) == 0) return j;
        return of_rank(j, order == RingOrder::down ? own + 1 : own - 1);
      };
      add(mutants, "RING-STALE", std::string("V of the step before in dP") + in + direction,
          kDq + kDk, [=](GradientRule& r) { r.v_row = previous; });
      add(mutants, "RING-STALE", std::string("K of the step before in dq") + in + direction, kDq,
          [=](GradientRule& r) { r.k_row = previous; });
    }
    const auto own = [=](std::int64_t i, std::int64_t j) {
      return of_rank(j, sharing.query_rank(0, i));
    };
    add(mutants, "RING-STALE", "V of step 0 in every dP" + in, kDq + kDk,
        [=](GradientRule& r) { r.v_row = own; });
    add(mutants, "RING-STALE", "K of step 0 in every dq" + in, kDq,
        [=](GradientRule& r) { r.k_row = own; });
    add_pairs(
        mutants, "RING-STALE", " of the rank's own queries alone" + in, {both, kDk, kDv},
        [=](std::int64_t, std::int64_t i, std::int64_t j) {
          return sharing.query_rank(0, i) == sharing.key_rank(0, j) ? 1.0 : 0.0;
        },
        "RING-HOPS");
  }
}

}  // namespace

std::vector<GradientMutant> gradient_classes(const Subject& subject) {
  const Problem& p = subject.problem();
  const double scale = p.spec.scale.value_or(1 / std::sqrt(static_cast<double>(p.head_dim)));
  Mutants mutants;
  add_factors(subject, scale, mutants);
  add_terms(subject, mutants);
  add_groups(subject, mutants);
  add_exchanges(mutants);
  add_ring(subject, mutants);
  add_tiles(subject, mutants);
  return mutants;
}

}  // namespace ringproof::oracle
