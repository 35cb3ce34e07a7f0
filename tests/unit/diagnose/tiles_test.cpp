// Tiled kernels in fp32 whose rescaling or merging is wrong: real rounding, several tile sizes,
// both orders. Every one of them lies in the box of its class.
#include "oracle/diagnose/combine.hpp"
#include "tests/unit/diagnose/planted.hpp"

using namespace ringproof::oracle;
using namespace ringproof::test;

namespace {

using Index = std::int64_t;

enum class Fault { none, o_not_rescaled, l_not_rescaled, inverse, tile_maximum, average };

/// One row of a tiled kernel in fp32.
struct TiledRow {
  std::vector<float> o;
  float l = 0, m = -HUGE_VALF;
};

TiledRow tiled_row(const Problem& p, Index h, Index i, Index tile, Fault fault) {
  TiledRow state{std::vector<float>(static_cast<std::size_t>(p.value_dim)), 0, -HUGE_VALF};
  std::vector<float> average(state.o.size());
  Index parts = 0;
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(p.head_dim)));
  for (Index first = 0; first < p.keys; first += tile) {
    TiledRow part{std::vector<float>(state.o.size()), 0, -HUGE_VALF};
    std::vector<std::pair<Index, float>> scores;
    for (Index j = first; j < std::min(p.keys, first + tile); ++j) {
      if (!visible(p, 0, h, i, j)) continue;
      float dot = 0;
      for (Index d = 0; d < p.head_dim; ++d) {
        dot += static_cast<float>(p.q.at(0, h, i, d)) *
               static_cast<float>(p.k.at(0, p.kv_head(h), j, d));
      }
      scores.emplace_back(j, dot * scale);
      part.m = std::max(part.m, dot * scale);
    }
    if (scores.empty()) continue;
    const float old = state.m, next = std::max(old, part.m);
    const float reference = fault == Fault::tile_maximum || fault == Fault::average ? part.m : next;
    for (const auto& [j, score] : scores) {
      const float weight = std::exp(score - reference);
      part.l += weight;
      for (std::size_t c = 0; c < part.o.size(); ++c) {
        part.o[c] += weight * static_cast<float>(p.v.at(0, p.kv_head(h), j, static_cast<Index>(c)));
      }
    }
    ++parts;
    const bool start = old == -HUGE_VALF;
    const float alpha = start ? 0 : std::exp(old - next);
    const float wrong = fault == Fault::inverse && !start ? std::exp(next - old) : 1;
    const bool wrong_o = fault == Fault::o_not_rescaled || fault == Fault::inverse;
    const bool wrong_l = fault == Fault::l_not_rescaled || fault == Fault::inverse;
    for (std::size_t c = 0; c < part.o.size(); ++c) {
      state.o[c] = state.o[c] * (wrong_o ? wrong : alpha) + part.o[c];
      average[c] += part.o[c] / part.l;
    }
    state.l = state.l * (wrong_l ? wrong : alpha) + part.l;
    state.m = next;
  }
  for (std::size_t c = 0; c < state.o.size(); ++c) {
    state.o[c] =
        fault == Fault::average ? average[c] / static_cast<float>(parts) : state.o[c] / state.l;
  }
  return state;
}

void store_tiled(const Problem& p, Index tile, Fault fault, CaseBuilder& builder) {
  for (Index h = 0; h < p.heads; ++h) {
    for (Index i = 0; i < p.queries; ++i) {
      const TiledRow row = tiled_row(p, h, i, tile, fault);
      const Index n = h * p.queries + i;
      for (std::size_t c = 0; c < row.o.size(); ++c) {
        set_value(builder, "out", n * p.value_dim + static_cast<Index>(c), row.o[c]);
      }
      set_value(builder, "lse", n, row.m + std::log(row.l));
    }
  }
}

}  // namespace

TEST_CASE("tiled kernels with wrong rescaling lie in the box of their class, for every tile size") {
  struct Line {
    Fault fault;
    const char* id;
  };
  const Line lines[] = {{Fault::o_not_rescaled, "RESCALE-O"},
                        {Fault::l_not_rescaled, "RESCALE-L"},
                        {Fault::inverse, "RESCALE-O"},
                        {Fault::tile_maximum, "STALE-MAX"},
                        {Fault::average, "NORM-AVERAGE"}};
  for (const Index tile : {5, 16}) {
    for (const char* causal : {"none", "top_left"}) {
      const std::string spec = std::string(R"({"version": 1, "causal": ")") + causal + "\"}";
      CaseBuilder builder = plain_case(
          spec,
          {.heads = 2, .kv_heads = 1, .queries = 37, .keys = 37, .head_dim = 8, .value_dim = 5},
          DType::f32, static_cast<unsigned>(tile));
      const Case input = builder.assemble();
      INFO("tile " << tile << " " << causal);
      CaseBuilder right = builder;
      store_tiled(input.problem, tile, Fault::none, right);
      CHECK(explain(right, "fp32").report.verdict == Verdict::pass);
      for (const Line& line : lines) {
        CaseBuilder wrong = builder;
        store_tiled(input.problem, tile, line.fault, wrong);
        const Diagnosed result = explain(wrong, "fp32");
        INFO(line.id);
        REQUIRE(result.report.verdict == Verdict::fail);
        CHECK(result.ids().count(line.id) == 1);
      }
    }
  }
}
