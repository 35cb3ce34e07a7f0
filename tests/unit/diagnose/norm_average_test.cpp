// NORM-AVERAGE: a kernel that averages normalised partials is explained by the class, others are
// not.

#include <cmath>

#include "oracle/contract/ring_partition.hpp"
#include "tests/unit/diagnose/planted.hpp"

using namespace ringproof::oracle;
using namespace ringproof::test;

namespace {

/// Replaces out by the average of the ranks' normalised partials, in binary64 and by the plain
/// definition. Contiguous unless the spec says otherwise; `over_all`: empty partials count as
/// zeros.
void plant_average(CaseBuilder& builder, std::int64_t ranks, RingLayout layout, bool over_all) {
  const Case input = builder.assemble();
  const Problem& p = input.problem;
  const double scale = p.spec.scale.value_or(1 / std::sqrt(static_cast<double>(p.head_dim)));
  for (std::int64_t h = 0; h < p.heads; ++h) {
    for (std::int64_t i = 0; i < p.queries; ++i) {
      std::vector<double> average(static_cast<std::size_t>(p.value_dim));
      std::int64_t partials = 0;
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        double mass = 0;
        std::vector<double> sum(average.size());
        for (std::int64_t j = 0; j < p.keys; ++j) {
          if (owner_of(layout, j, p.keys, ranks) != rank || !visible(p, 0, h, i, j)) continue;
          double score = 0;
          for (std::int64_t t = 0; t < p.head_dim; ++t) {
            score += p.q.at(0, h, i, t) * p.k.at(0, p.kv_head(h), j, t);
          }
          const double weight = std::exp(scale * score);
          mass += weight;
          for (std::size_t c = 0; c < sum.size(); ++c) {
            sum[c] += weight * p.v.at(0, p.kv_head(h), j, static_cast<std::int64_t>(c));
          }
        }
        if (mass == 0) continue;
        ++partials;
        for (std::size_t c = 0; c < sum.size(); ++c) average[c] += sum[c] / mass;
      }
      for (std::size_t c = 0; c < average.size(); ++c) {
        const double value = average[c] / static_cast<double>(over_all ? ranks : partials);
        set_value(builder, "out", (h * p.queries + i) * p.value_dim + static_cast<std::int64_t>(c),
                  round_nearest(builder.find("out")->dtype, value));
      }
    }
  }
}

bool averages(const CaseBuilder& builder, const std::string& contract) {
  return explain(builder, contract).ids().count("NORM-AVERAGE") == 1;
}

CaseBuilder ring_case(DType type, const std::string& spec) {
  CaseBuilder builder = random_case(type, {.queries = 12, .keys = 12, .value_dim = 4});
  builder.spec = spec;
  answer(builder, type);
  return builder;
}

}  // namespace

TEST_CASE("averaged partials are explained by NORM-AVERAGE in every layout and over either count") {
  struct Kind {
    const char* ring;
    RingLayout layout;
  };
  for (const Kind& kind :
       {Kind{"", RingLayout::contiguous},
        {R"(, "ring": {"layout": "zigzag", "order": "down"})", RingLayout::zigzag},
        {R"(, "ring": {"layout": "striped", "order": "up"})", RingLayout::striped}}) {
    for (const char* causal : {"none", "top_left"}) {
      for (const bool over_all : {false, true}) {
        for (const DType type : {DType::f32, DType::bf16}) {
          CaseBuilder builder =
              ring_case(type, std::string(R"({"version": 1, "ranks": 3, "causal": ")") + causal +
                                  "\"" + kind.ring + "}");
          plant_average(builder, 3, kind.layout, over_all);
          const std::string contract = type == DType::f32 ? "fp32-ring" : "bf16-ring";
          INFO(kind.ring << " " << causal << " " << over_all);
          REQUIRE(judge(builder, contract).verdict == Verdict::fail);
          CHECK(averages(builder, contract));
        }
      }
    }
  }
}

TEST_CASE("other faults, and averages with one element spoilt, are not explained by NORM-AVERAGE") {
  const std::string spec = R"({"version": 1, "ranks": 3})";
  CaseBuilder gain = ring_case(DType::f32, spec);
  for (std::int64_t n = 0; n < 2 * 12 * 4; ++n) {
    set_value(gain, "out", n, round_nearest(DType::f32, 1.01 * value_at(gain, "out", n)));
  }
  CHECK_FALSE(averages(gain, "fp32-ring"));
  CHECK(explain(gain, "fp32-ring").ids().count("GAIN") == 1);
  CaseBuilder one_off = ring_case(DType::f32, spec);
  plant_average(one_off, 3, RingLayout::contiguous, false);
  set_value(one_off, "out", 30, 1.25);
  CHECK_FALSE(averages(one_off, "fp32-ring"));
}

TEST_CASE("nothing is explained where nothing is refused") {
  const CaseBuilder good = ring_case(DType::f32, R"({"version": 1, "ranks": 3})");
  const Diagnosed result = explain(good, "fp32-ring");
  CHECK(result.diagnosis.explanations.empty());
  CHECK(result.diagnosis.not_evaluated == "no element of out or lse is refused");
}
