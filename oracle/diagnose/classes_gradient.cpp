// Mistakes of the backward pass: DQ-ZERO, SCALE, DELTA, LSE-GRAD, SOFTCAP-ORDER, DOUT-IGNORED,
// GQA-GRAD, DKV-SWAP, TAIL, BLOCK-SKIP and RING-STALE of gradients, LSE-BASE in P. Those that
// dbias or dsinks alone can have are in classes_addition.cpp.
#include <cmath>

#include "oracle/contract/backward_budget.hpp"
#include "oracle/contract/ring_partition.hpp"
#include "oracle/diagnose/gradient_table.hpp"

namespace ringproof::oracle {

namespace {

void add_factors(const Subject& subject, double scale, Mutants& mutants) {
  const double group = static_cast<double>(subject.problem().group());
  const auto times = [&](const char* id, const std::string& words, int wrong, double factor,
                         const char* also = "", double copies = 1) {
    add(
        mutants, id, names(wrong) + words, wrong,
        [=](GradientRule& rule) {
          rule.copies = copies;
          if ((wrong & kDq) != 0) rule.factor_q = factor;
          if ((wrong & kDk) != 0) rule.factor_k = factor;
          if ((wrong & kDv) != 0) rule.factor_v = factor;
          if ((wrong & kDbias) != 0) rule.factor_bias = factor;
          if ((wrong & kDsinks) != 0) rule.factor_sinks = factor;
        },
        also);
  };
  for (int wrong = 1; wrong <= kAllGradients; ++wrong) {
    if ((wrong & ~judged_gradients(subject.input)) != 0) continue;
    const bool one = (wrong & (wrong - 1)) == 0;
    const char* also = wrong == kDsinks ? "SINK" : "";
    times("DQ-ZERO", one ? " is zero" : " are zero", wrong, 0, also);
    times("GAIN", ": the sign", wrong, -1, also);
    times("GAIN", " twice", wrong, 2);
    times("GAIN", " halved", wrong, 0.5);
    if ((wrong & (kDbias + kDsinks)) != 0) continue;
    if (group > 1 && (wrong & kDq) == 0) {
      times("GQA-GRAD", ": mean over the group in place of the sum", wrong, 1 / group, "GQA-MAP");
    }
    if (subject.ranks > 1) {
      const auto ranks = static_cast<double>(subject.ranks);
      times("MERGE-WEIGHT", ": mean over ranks in place of the sum", wrong, 1 / ranks,
            "NORM-AVERAGE");
      times("BLOCK-TWICE", ": once a rank", wrong, ranks, "", ranks);
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
  // In a term of dS, or of p alone, that the gradients of the bias and the sinks use or do not.
  const auto in_term = [&](const char* id, const std::string& words, int wrong, const Edit& edit,
                           int additions = kDbias + kDsinks) {
    for (const int all : with_additions(input, wrong, additions)) {
      const int more = all - wrong;
      add(mutants, id, words + (more == 0 ? "" : ", in " + names(more) + " as well"), all, edit);
    }
  };
  in_term("DELTA", "D is left out", both, [](GradientRule& r) { r.without_D = true; });
  in_term("DELTA", "the sign of D", both, [](GradientRule& r) { r.negative_D = true; });
  for (const int one : {kDq, kDk}) {
    add(mutants, "DELTA", "D is left out of " + names(one), one,
        [](GradientRule& r) { r.without_D = true; });
  }
  if (input.dlse) {
    in_term("LSE-GRAD", "the gradient of the lse is ignored", both,
            [](GradientRule& r) { r.without_dlse = true; });
    in_term("LSE-GRAD", "the sign of the gradient of the lse", both,
            [](GradientRule& r) { r.negative_dlse = true; });
  }
  if (subject.problem().spec.softcap > 0) {
    add(mutants, "SOFTCAP-ORDER", "the derivative of the softcap is missing", both,
        [](GradientRule& r) { r.without_derivative = true; });
  }
  in_term("DOUT-IGNORED", "dout is taken for ones", both + kDv,
          [](GradientRule& r) { r.ones_for_dout = r.ones_for_dout_in_D = true; });
  in_term(
      "DOUT-IGNORED", "dout is taken for ones, but not in D", both + kDv,
      [](GradientRule& r) { r.ones_for_dout = true; }, kDbias);
  in_term("DOUT-IGNORED", "dout is taken for ones in D", both,
          [](GradientRule& r) { r.ones_for_dout_in_D = true; });
  for (const double exponent : {kLn2, 1 / kLn2}) {
    in_term("LSE-BASE", "probabilities are recomputed in another base", both + kDv,
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
          names(wrong) + " of the " + (only == 0 ? "first" : "last") + " head of the group alone",
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
               const std::vector<int>& choices, const GradientRule::Pair& counts,
               const char* also = "") {
  for (const int wrong : choices) {
    add(
        mutants, id, names(wrong) + words, wrong,
        [&](GradientRule& rule) { count_pairs(rule, wrong, counts); }, also);
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
      // A lost tile of keys takes nothing from the sinks.
      std::vector<int> all =
          with_additions(subject.input, kDq + kDk + kDv, by_key ? kDbias : kDbias + kDsinks);
      all.insert(all.end(), {kDk + kDv, kDq, kDk, kDv, kDq + kDk, kDbias});
      if (!by_key) all.insert(all.end(), {kDsinks, kDbias + kDsinks});
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

/// dk in place of dv, or added to it: where both have the same width.
void add_exchanges(const Problem& p, Mutants& mutants) {
  if (p.head_dim != p.value_dim) return;
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

/// Which key lies at the same place in another rank's shard.
class Shards {
 public:
  explicit Shards(const Sharing& sharing) : sharing_(sharing), rows_(index(sharing.ranks)) {
    for (std::int64_t j = 0; j < sharing.problem->keys; ++j) {
      auto& of_rank = rows_[index(sharing.key_rank(0, j))];
      local_.push_back(of_rank.size());
      of_rank.push_back(j);
    }
  }
  std::int64_t of_rank(std::int64_t j, std::int64_t rank) const {
    const std::int64_t P = sharing_.ranks;
    const auto& shard = rows_[index(((rank % P) + P) % P)];
    return local_[index(j)] < shard.size() ? shard[local_[index(j)]] : kZeroKey;
  }

 private:
  Sharing sharing_;
  std::vector<std::vector<std::int64_t>> rows_;
  std::vector<std::size_t> local_;
};

/// Gradients of the shard of a neighbour.
void add_neighbours(const Sharing& sharing, const Shards& shards, const std::string& in,
                    Mutants& mutants) {
  const int both = kDk + kDv;
  for (const std::int64_t by : {1, -1}) {
    const auto neighbour = [=](std::int64_t j) {
      return shards.of_rank(j, sharing.key_rank(0, j) + by);
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
    if (sharing.problem->head_dim != sharing.problem->value_dim) continue;
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
}

/// Pairs of one step, or of the wrong one.
void add_steps(const Sharing& sharing, const Shards& shards, RingOrder order, const std::string& in,
               Mutants& mutants) {
  const int both = kDk + kDv;
  const std::int64_t P = sharing.ranks;
  const std::string where = in + (order == RingOrder::down ? ", down" : ", up");
  for (std::int64_t t = P - 1; t >= 0; --t) {
    add_pairs(
        mutants, "RING-STALE", " lack the pairs of step " + std::to_string(t) + where,
        {both, kDq + both, kDq, kDk, kDv, kDbias, kDq + both + kDbias},
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
    return shards.of_rank(j, order == RingOrder::down ? own + 1 : own - 1);
  };
  add(mutants, "RING-STALE", "V of the step before in dP" + where, kDq + kDk,
      [=](GradientRule& r) { r.v_row = previous; });
  add(mutants, "RING-STALE", "K of the step before in dq" + where, kDq,
      [=](GradientRule& r) { r.k_row = previous; });
}

/// What a ring may do to gradients that travel with their shards.
void add_ring(const Subject& subject, Mutants& mutants) {
  for (const Sharing& sharing : sharings(subject)) {
    const Shards shards(sharing);
    const std::string in = std::string(" (") + sharing.name + ")";
    add_neighbours(sharing, shards, in, mutants);
    for (const RingOrder order : {RingOrder::down, RingOrder::up}) {
      add_steps(sharing, shards, order, in, mutants);
    }
    const auto own = [=](std::int64_t i, std::int64_t j) {
      return shards.of_rank(j, sharing.query_rank(0, i));
    };
    add(mutants, "RING-STALE", "V of step 0 in every dP" + in, kDq + kDk,
        [=](GradientRule& r) { r.v_row = own; });
    add(mutants, "RING-STALE", "K of step 0 in every dq" + in, kDq,
        [=](GradientRule& r) { r.k_row = own; });
    add_pairs(
        mutants, "RING-STALE", " of the rank's own queries alone" + in,
        {kDk + kDv, kDk, kDv, kDbias},
        [=](std::int64_t, std::int64_t i, std::int64_t j) {
          return sharing.query_rank(0, i) == sharing.key_rank(0, j) ? 1.0 : 0.0;
        },
        "RING-HOPS");
  }
  for (const Sharing& sharing : wide_stripes(subject)) {
    add_neighbours(sharing, Shards(sharing),
                   " (striped, " + std::to_string(sharing.stripe) + " rows at a time)", mutants);
  }
}

}  // namespace

std::vector<GradientMutant> gradient_classes(const Subject& subject) {
  const Problem& p = subject.problem();
  const double scale = p.spec.scale_of(p.head_dim);
  Mutants mutants;
  add_factors(subject, scale, mutants);
  add_terms(subject, mutants);
  add_groups(subject, mutants);
  add_exchanges(subject.problem(), mutants);
  add_ring(subject, mutants);
  add_tiles(subject, mutants);
  add_addition_classes(subject, mutants);
  // Probabilities that are stored are not recomputed, in whatever base.
  const bool stored = !may_recompute(subject.contract);
  for (GradientMutant& mutant : mutants) mutant.estimated = stored && mutant.rule.p_exponent != 1;
  return mutants;
}

}  // namespace ringproof::oracle
