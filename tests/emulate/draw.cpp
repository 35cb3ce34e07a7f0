// Drawing problems and their conforming answers (draw.hpp).
#include "tests/emulate/draw.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

#include "tests/emulate/inputs.hpp"
#include "tests/emulate/kernel.hpp"

namespace ringproof::emulate {
namespace {

using oracle::DType;
using oracle::Problem;

class Maker {
 public:
  explicit Maker(Draw& draw)
      : draw_(draw), problem_(draw.owned.problem), random_(draw.seed * 2654435761u + 12345) {}

  void make() {
    draw_.family = static_cast<InputFamily>(pick(static_cast<std::int64_t>(InputFamily::count)));
    const std::int64_t ranks =
        draw_.entry.kind == Kind::none || draw_.entry.count > 0 ? 1 : 2 + pick(4);
    draw_.numerics = draw_numerics(draw_.entry, ranks, random_);
    sizes();
    inputs();
    masks();
    additions();
    spec();
    index_keys(problem_);
    answers();
  }

 private:
  std::int64_t pick(std::int64_t count) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(count));
  }
  bool chance(int in) { return pick(in) == 0; }
  double normal() { return std::normal_distribution<double>()(random_); }
  bool has_sixteen_bits() const {
    return draw_.numerics.input == DType::bf16 || draw_.numerics.input == DType::f16;
  }

  void sizes() {
    const Numerics& n = draw_.numerics;
    const std::int64_t groups = 1 + pick(2), kv_heads = 1 + pick(2), batches = 1 + pick(2);
    // Lengths around the blocks and steps of kernels, and odd ones; now and then a handful of keys.
    const std::int64_t bases[] = {1, 2, 5, 16, 17, 31, 48, 64, 96, 129, 160, 257};
    std::int64_t keys = bases[pick(12)] + pick(3);
    if (n.longest_partial > 0) keys = std::min(keys, n.longest_partial * n.ranks);
    self_attention_ = chance(2);
    const std::int64_t queries = self_attention_ ? keys : 1 + pick(24);
    const std::int64_t widths[] = {1, 8, 16, 17, 32, 40, 64};
    draw_.owned.resize(keys > 64 && self_attention_ ? 1 : batches,
                       keys > 64 && self_attention_ ? groups : groups * kv_heads,
                       keys > 64 && self_attention_ ? 1 : kv_heads, queries, keys, widths[pick(7)],
                       widths[pick(6)]);
  }

  void inputs() {
    Problem& p = problem_;
    const bool dyadic = draw_.family == InputFamily::dyadic;
    const double root = 1 / std::sqrt(static_cast<double>(p.head_dim));
    const double scale = dyadic ? std::log(2.0) : root;
    if (dyadic || chance(4)) p.spec.scale = dyadic || chance(2) ? scale : 0.5 * scale;
    const DType dtype = draw_.numerics.input;
    const InputShape shape{.query_rows = p.batches * p.heads * p.queries,
                           .key_rows = p.batches * p.kv_heads * p.keys,
                           .head_dim = p.head_dim,
                           .value_dim = p.value_dim,
                           .keys = p.keys,
                           .scale = scale,
                           .dtype = dtype};
    const InputValues values = draw_inputs(draw_.family, shape, random_);
    OwnedTensors& tensors = draw_.owned.tensors;
    p.q = tensors.add(dtype, {p.batches, p.heads, p.queries, p.head_dim}, values.q);
    p.k = tensors.add(dtype, {p.batches, p.kv_heads, p.keys, p.head_dim}, values.k);
    p.v = tensors.add(dtype, {p.batches, p.kv_heads, p.keys, p.value_dim}, values.v);
    if (dtype == DType::f8_e4m3) {
      for (oracle::Factors* factors : {&p.q_scale, &p.k_scale, &p.v_scale}) {
        const double factor[] = {std::exp2(normal())};
        factors->tensor = tensors.add(DType::f32, {1, 1, 1, 1}, factor);
        factors->block = {p.batches, p.heads, std::max(p.queries, p.keys),
                          std::max(p.head_dim, p.value_dim)};
      }
    }
  }

  void masks() {
    oracle::Spec& spec = problem_.spec;
    std::ostringstream words;
    if (chance(2)) {
      spec.causal =
          self_attention_ || chance(2) ? oracle::Causal::top_left : oracle::Causal::bottom_right;
      if (spec.causal == oracle::Causal::bottom_right)
        for (std::int64_t& position : problem_.position_q)
          position += problem_.keys - problem_.queries;
      words << "causal ";
    }
    if (chance(5)) {
      spec.window_left = pick(problem_.keys + 1);
      if (chance(2)) spec.window_right = pick(8);
      words << "window ";
    }
    if (chance(5)) {
      for (std::int64_t& length : problem_.key_length) length = pick(problem_.keys + 1);
      words << "lengths ";
    }
    if (self_attention_ && chance(5)) documents(words);
    if (self_attention_ && draw_.entry.kind == Kind::none && chance(8)) permuted_positions(words);
    if (chance(3)) random_mask(words);
    draw_.mask = words.str().empty() ? "full " : words.str();
    draw_.mask.pop_back();
  }

  /// Consecutive documents, now and then rows outside of all.
  void documents(std::ostringstream& words) {
    std::int32_t document = 0;
    const bool outside = chance(4);
    for (std::int64_t i = 0; i < problem_.keys; ++i) {
      if (chance(20)) ++document;
      const std::int32_t own = outside && document == 1 ? -1 : document;
      for (std::int64_t b = 0; b < problem_.batches; ++b)
        problem_.document_q[static_cast<std::size_t>(b * problem_.keys + i)] =
            problem_.document_k[static_cast<std::size_t>(b * problem_.keys + i)] = own;
    }
    draw_.explicit_rows = true;
    words << "documents ";
  }

  void permuted_positions(std::ostringstream& words) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(problem_.keys));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    for (std::int64_t b = 0; b < problem_.batches; ++b)
      for (std::int64_t i = 0; i < problem_.keys; ++i)
        problem_.position_q[static_cast<std::size_t>(b * problem_.keys + i)] =
            problem_.position_k[static_cast<std::size_t>(b * problem_.keys + i)] =
                order[static_cast<std::size_t>(i)];
    draw_.explicit_rows = true;
    words << "permuted ";
  }

  void random_mask(std::ostringstream& words) {
    const double density = std::exp2(-static_cast<double>(pick(5)));
    const std::int64_t rows = chance(2) ? 1 : problem_.queries;
    std::vector<double> seen(static_cast<std::size_t>(rows * problem_.keys));
    for (double& x : seen)
      x = std::uniform_real_distribution<double>(0, 1)(random_) < density ? 1 : 0;
    const oracle::Tensor mask =
        draw_.owned.tensors.add(DType::boolean, {1, 1, rows, problem_.keys}, seen);
    draw_.stored.push_back({"mask", mask});
    problem_.mask =
        broadcast(mask, {problem_.batches, problem_.heads, problem_.queries, problem_.keys});
    words << "mask ";
  }

  void additions() {
    const bool wants_bias = draw_.entry.has("bias") || draw_.entry.has("biasstore");
    const bool eager = static_cast<bool>(draw_.numerics.score_store);
    OwnedTensors& tensors = draw_.owned.tensors;
    if (draw_.entry.has("softcap") || chance(6)) problem_.spec.softcap = chance(2) ? 20 : 5;
    if (wants_bias || chance(6)) {
      const std::int64_t heads = chance(2) ? 1 : problem_.heads,
                         rows = chance(3) ? 1 : problem_.queries;
      std::vector<double> bias(static_cast<std::size_t>(heads * rows * problem_.keys));
      const bool finite_mask = chance(4);
      for (double& x : bias)
        x = finite_mask && chance(3) ? (chance(2) ? -1e4 : -INFINITY) : 2 * normal();
      const oracle::Tensor stored =
          tensors.add(has_sixteen_bits() ? draw_.numerics.input : DType::f32,
                      {1, heads, rows, problem_.keys}, bias);
      draw_.stored.push_back({"bias", stored});
      problem_.bias =
          broadcast(stored, {problem_.batches, problem_.heads, problem_.queries, problem_.keys});
    }
    if (chance(7)) {
      // A kernel without a rounding for the bias needs products of slope and distance that are
      // exact.
      std::vector<double> slopes;
      for (std::int64_t h = 0; h < problem_.heads; ++h)
        slopes.push_back(eager ? std::exp2(-1.0 - static_cast<double>(h))
                               : std::exp2(-0.7 * static_cast<double>(h + 1)));
      const oracle::Tensor stored = tensors.add(DType::f32, {1, problem_.heads, 1, 1}, slopes);
      draw_.stored.push_back({"alibi_slopes", stored});
      problem_.alibi_slopes = broadcast(stored, {problem_.batches, problem_.heads, 1, 1});
    }
    if (chance(5)) {
      std::vector<double> sinks;
      for (std::int64_t h = 0; h < problem_.heads; ++h)
        sinks.push_back(static_cast<double>(
            draw_.family == InputFamily::large_maximum ? 300 * normal() : 2 * normal()));
      problem_.sinks = tensors.add(DType::f32, {1, problem_.heads, 1, 1}, sinks);
      draw_.stored.push_back({"sinks", problem_.sinks});
    }
  }

  void spec() {
    oracle::Spec& spec = problem_.spec;
    Numerics& n = draw_.numerics;
    spec.contract = draw_.entry.contract();
    if (n.ranks > 1 && draw_.entry.count == 0) spec.ranks = n.ranks;
    // A declared ring makes the partition known to the judge; the query then has a rank of its own.
    if (draw_.entry.kind == Kind::ring && self_attention_ && chance(2)) {
      n.known_ring = true;
      spec.ranks = n.ranks;
      spec.ring = oracle::Ring{.layout = n.layout, .order = n.ring_order};
    }
    const bool merges_lse = n.ranks > 1 && n.merge != oracle::Merge::unnormalized;
    if (!merges_lse && chance(6)) {
      n.lse_base_two = true;
      spec.lse_base = oracle::LseBase::two;
    }
  }

  void answers() {
    const Answers answers = run_forward(problem_, draw_.numerics, random_());
    const Problem& p = problem_;
    OwnedTensors& tensors = draw_.owned.tensors;
    draw_.out = tensors.add(draw_.numerics.output, {p.batches, p.heads, p.queries, p.value_dim},
                            answers.out);
    draw_.lse = tensors.add(draw_.numerics.binary64 ? DType::f64 : DType::f32,
                            {p.batches, p.heads, p.queries, 1}, answers.lse);
  }

  Draw& draw_;
  Problem& problem_;
  std::mt19937_64 random_;
  bool self_attention_ = false;
};

}  // namespace

oracle::Contract Draw::contract() const {
  return oracle::read_contract(owned.problem.spec.contract, owned.problem.spec);
}

oracle::Case Draw::as_case() const {
  oracle::Case result{.name = "seed " + std::to_string(seed),
                      .problem = owned.problem,
                      .answers = {},
                      .dout = {},
                      .dlse = {},
                      .storage = {}};
  using oracle::AnswerKind;
  result.dout = dout;
  result.dlse = dlse;
  const std::pair<AnswerKind, const oracle::Tensor*> answers[] = {
      {AnswerKind::out, &out},      {AnswerKind::lse, &lse}, {AnswerKind::dq, &dq},
      {AnswerKind::dk, &dk},        {AnswerKind::dv, &dv},   {AnswerKind::dbias, &dbias},
      {AnswerKind::dsinks, &dsinks}};
  for (const auto& [kind, tensor] : answers) {
    if (*tensor) result.answers.push_back({kind, *tensor});
  }
  return result;
}

std::string Draw::description() const {
  const oracle::Problem& p = owned.problem;
  std::ostringstream text;
  text << entry.contract() << ", " << name(family) << ", " << mask << (p.bias ? ", bias" : "")
       << (p.alibi_slopes ? ", ALiBi" : "") << (p.sinks ? ", sinks" : "")
       << (p.spec.softcap > 0 ? ", softcap" : "") << (numerics.known_ring ? ", known ring" : "")
       << "; B H Hkv Nq Nk D Dv = " << p.batches << ' ' << p.heads << ' ' << p.kv_heads << ' '
       << p.queries << ' ' << p.keys << ' ' << p.head_dim << ' ' << p.value_dim
       << "; repeat: ringproof-emulate --count 1 --seed " << seed;
  return text.str();
}

Draw draw_case(std::uint64_t seed) {
  static const std::vector<ZooEntry> entries = zoo();
  return draw_case(seed, entries[seed % entries.size()]);
}

Draw draw_case(std::uint64_t seed, const ZooEntry& entry) {
  Draw draw;
  draw.seed = seed;
  draw.entry = entry;
  Maker(draw).make();
  return draw;
}

}  // namespace ringproof::emulate
