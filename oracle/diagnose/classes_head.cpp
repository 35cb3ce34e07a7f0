// Mistakes in which head, batch entry or channel is read: GQA-MAP, SINK, BATCH-MAP, and the
// channels of the dot product.
#include <cmath>

#include "oracle/diagnose/combine.hpp"
#include "oracle/diagnose/table.hpp"

namespace ringproof::oracle {

namespace {

void add_kv_heads(const Subject& subject, Families& families) {
  const Problem& p = subject.problem();
  struct Map {
    std::string words;
    std::function<std::int64_t(std::int64_t)> head;
  };
  const auto kv = p.kv_heads, group = p.group();
  const Map maps[] = {
      {"head h reads KV head h mod Hkv", [kv](std::int64_t h) { return h % kv; }},
      {"head h reads KV head h / Hkv", [kv](std::int64_t h) { return (h / kv) % kv; }},
      {"head h reads KV head h mod group size",
       [kv, group](std::int64_t h) { return (h % group) % kv; }},
      {"all heads read KV head 0", [](std::int64_t) { return std::int64_t{0}; }},
      {"all heads read the last KV head", [kv](std::int64_t) { return kv - 1; }},
      {"the KV heads in reverse", [kv, group](std::int64_t h) { return kv - 1 - h / group; }},
      {"the next KV head", [kv, group](std::int64_t h) { return (h / group + 1) % kv; }},
      {"the previous KV head", [kv, group](std::int64_t h) { return (h / group + kv - 1) % kv; }},
      {"head h reads KV head min(h, Hkv - 1)",
       [kv](std::int64_t h) { return std::min(h, kv - 1); }}};
  for (const Map& map : maps) {
    for (const int which : {3, 1, 2}) {
      const char* tensors[] = {"", " in K", " in V", ""};
      add(families, "GQA-MAP", map.words + tensors[which], [map, which](HeadChange& c) {
        if ((which & 1) != 0) c.k_from.head = map.head(c.h);
        if ((which & 2) != 0) c.v_from.head = map.head(c.h);
      });
    }
  }
}

void add_batches(const Subject& subject, Families& families) {
  const Problem& p = subject.problem();
  if (p.batches < 2) return;
  const char* names[] = {"", "K", "V", "K and V", "Q", "Q and K", "Q and V", "Q, K and V"};
  for (int which = 1; which < 8; ++which) {
    for (const std::int64_t by : {0, 1, -1}) {
      const std::string of = by == 0  ? " of batch 0"
                             : by > 0 ? " of the next batch entry"
                                      : " of the previous batch entry";
      add(families, "BATCH-MAP", names[which] + of + " in every batch entry",
          [which, by](HeadChange& c) {
            const std::int64_t batches = c.problem->batches;
            const std::int64_t b = by == 0 ? 0 : (c.b + by + batches) % batches;
            if ((which & 1) != 0) c.k_from.b = b;
            if ((which & 2) != 0) c.v_from.b = b;
            if ((which & 4) != 0) c.q_from.b = b;
          });
    }
  }
}

void add_query_heads(const Subject& subject, Families& families) {
  const Problem& p = subject.problem();
  if (p.heads < 2) return;
  for (const std::int64_t by : {0, 1, -1}) {
    add(families, "GQA-MAP",
        by == 0  ? "Q of head 0 for all"
        : by > 0 ? "Q of the next head"
                 : "Q of the previous head",
        [by](HeadChange& c) {
          c.q_from.head = by == 0 ? 0 : (c.h + by + c.problem->heads) % c.problem->heads;
        });
  }
}

void add_channels(const Subject& subject, Families& families) {
  const std::int64_t depth = subject.problem().head_dim;
  for (const std::int64_t multiple : {8, 16, 32, 64, 4, 2}) {
    const std::int64_t kept = depth / multiple * multiple;
    if (kept == depth || kept == 0) continue;
    add(
        families, "CHANNELS",
        "only the first " + std::to_string(kept) + " channels enter the dot product",
        [kept](HeadChange& c) {
          c.scale = c.scale_value();
          c.channels = kept;
        },
        "TAIL");
  }
  add(families, "CHANNELS", "the last channel is not in the dot product", [depth](HeadChange& c) {
    c.scale = c.scale_value();
    c.channels = depth - 1;
  });
}

Change with_sink(std::function<double(const HeadChange&)> sink) {
  return [sink = std::move(sink)](HeadChange& c) { c.sink = sink(c); };
}

/// Sinks whose part of the answer is wrong: the keys are part 0, the sink is part 1.
Family sink_family() {
  Family family;
  family.setting.part = [](std::int64_t, std::int64_t, std::int64_t) { return std::int64_t{0}; };
  family.setting.parts = 1;
  family.setting.sink_apart = true;
  // out and lse as if the sink weighed e^{shift} as much; infinite: not at all.
  const auto weighing = [](double out_shift, double lse_shift) -> Expectation {
    return [=](const RowMaterial& row, ExpectedRow& expected) {
      const Part& keys = row.parts[0];
      const Part& sink = row.parts[1];
      if (!keys.present || !sink.present) return;
      const auto sum = [&](double shift) {
        const double weight = sink.lse + shift, most = std::max(keys.lse, weight);
        return most + std::log(std::exp(keys.lse - most) + std::exp(weight - most));
      };
      const double error = keys.lse_error + sink.lse_error;
      weigh(row, {keys.lse - sum(out_shift), -HUGE_VAL}, {2 * error, 0}, expected);
      expected.lse = {{"", Expected::value(sum(lse_shift), error + combination_budget(row))}};
    };
  };
  add(family, "SINK", "the sink is in out, but not in the lse", weighing(0, -HUGE_VAL));
  add(family, "SINK", "the sink is in the lse, but not in out", weighing(-HUGE_VAL, 0));
  const auto unshifted = [weighing](const RowMaterial& row, ExpectedRow& expected) {
    const double most = std::max(row.parts[0].max, -HUGE_VAL);
    weighing(most, most)(row, expected);
  };
  add(family, "SINK", "exp(sink) is added without taking off the maximum", unshifted);
  return family;
}

void add_sinks(const Subject& subject, Families& families) {
  const Problem& p = subject.problem();
  if (!p.sinks) return;
  const auto sink_of = [&p](std::int64_t h) {
    return p.sinks.at(0, ((h % p.heads) + p.heads) % p.heads, 0, 0);
  };
  add(families, "SINK", "the sink is missing", [](HeadChange& c) { c.sink.reset(); });
  for (std::int64_t times = 2; times <= 16; ++times) {
    if (times > 4 && times != subject.ranks && (times & (times - 1)) != 0) continue;
    add(families, "SINK",
        "the sink is counted " + std::to_string(times) + " times" +
            (times == subject.ranks ? ", once a rank" : ""),
        with_sink([sink_of, times](const HeadChange& c) {
          return sink_of(c.h) + std::log(static_cast<double>(times));
        }));
  }
  add(families, "SINK", "the sink of the next head",
      with_sink([sink_of](const HeadChange& c) { return sink_of(c.h + 1); }));
  add(families, "SINK", "the sink of the previous head",
      with_sink([sink_of](const HeadChange& c) { return sink_of(c.h - 1); }));
  add(families, "SINK", "the sink of head 0 for all",
      with_sink([sink_of](const HeadChange&) { return sink_of(0); }));
  add(families, "SINK", "the sink of the KV head's number",
      with_sink([sink_of](const HeadChange& c) { return sink_of(c.problem->kv_head(c.h)); }));
  add(families, "SINK", "the sinks in reverse",
      with_sink([sink_of, &p](const HeadChange& c) { return sink_of(p.heads - 1 - c.h); }));
  add(families, "SINK", "the sink is scaled with the scores",
      with_sink([sink_of](const HeadChange& c) { return sink_of(c.h) * c.scale_value(); }));
  add(families, "SINK", "the sign of the sink",
      with_sink([sink_of](const HeadChange& c) { return -sink_of(c.h); }));
  add(families, "SINK", "the sink is a weight of 1, a score of 0",
      with_sink([](const HeadChange&) { return 0.0; }));
  add(families, "SINK", "the sink is not in the base of the exponential",
      with_sink([sink_of](const HeadChange& c) { return sink_of(c.h) * 0x1.62e42fefa39efp-1; }));
  families.push_back(sink_family());
}

}  // namespace

void add_head_classes(const Subject& subject, Families& families) {
  add_kv_heads(subject, families);
  add_query_heads(subject, families);
  add_batches(subject, families);
  add_channels(subject, families);
  add_sinks(subject, families);
}

}  // namespace ringproof::oracle
