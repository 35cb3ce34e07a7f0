// The kernels of the vector tile one by one, and what the tile promises beyond its contract: the
// same bits for any number of threads, and nothing of what is not seen.
#include <cmath>
#include <limits>
#include <numbers>

#include "mpi/simd_data.hpp"
#include "mpi/tile_simd.hpp"
#include "oracle/case/dtype.hpp"
#include "tests/support/property.hpp"
#include "tests/unit/mpi/local_ring.hpp"
#include "tests/unit/reference/random_problem.hpp"

using namespace ringproof;
using namespace ringproof::mpi;
using reference::Direction;
using reference::RingPlan;
using test::Description;

namespace {

test::MakeTile<float> simd(int threads = 1, std::optional<Sixteen> wire = {}) {
  return [=](RankProblem<float> mine) { return make_simd_tile(std::move(mine), threads, wire); };
}

struct Operands {
  AlignedFloats a, b, c, alpha;
};

/// Small integers, so that every sum is exact in any order.
Operands draw(Index rows, Index depth, Index columns) {
  Operands x{AlignedFloats(rows * depth + 1), AlignedFloats(depth * columns + 1),
             AlignedFloats(rows * columns), AlignedFloats(columns)};
  int n = 0;
  for (AlignedFloats* numbers : {&x.a, &x.b, &x.c, &x.alpha}) {
    for (Index place = 0; place < numbers->size(); ++place) {
      numbers->data()[place] = static_cast<float>(n++ * 7 % 11 - 5);
    }
  }
  return x;
}

}  // namespace

TEST_CASE("The product is right for every number of rows, depth and columns, and every ending") {
  for (const Index columns : {16, 32, 48, 64, 112}) {
    for (Index rows = 1; rows <= 25; ++rows) {
      for (const Index depth : {0, 1, 5, 48}) {
        for (const bool transposed : {false, true}) {
          for (const Into into : {Into::replace, Into::add, Into::rescale}) {
            Operands x = draw(rows, depth, columns);
            const Operands before = draw(rows, depth, columns);
            multiply({.a = {x.a.data(), transposed ? 1 : depth, transposed ? rows : 1},
                      .b = {x.b.data(), columns},
                      .c = {x.c.data(), columns},
                      .rows = rows,
                      .depth = depth,
                      .columns = columns},
                     into, x.alpha.data());
            Index wrong = 0;
            for (Index r = 0; r < rows; ++r) {
              for (Index n = 0; n < columns; ++n) {
                const float old = const_cast<Operands&>(before).c.data()[r * columns + n];
                float expected = into == Into::replace ? 0
                                 : into == Into::add   ? old
                                                       : old * x.alpha.data()[n];
                for (Index t = 0; t < depth; ++t) {
                  expected += x.a.data()[transposed ? t * rows + r : r * depth + t] *
                              x.b.data()[t * columns + n];
                }
                wrong += x.c.data()[r * columns + n] != expected;
              }
            }
            CHECK(wrong == 0);
          }
        }
      }
    }
  }
}

TEST_CASE("EXP-APPROX: 2^x errs by less than the contract's 2^-22, is 1 at 0, and 0 below 2^-126") {
  AlignedFloats x(kQueries), shift(kQueries);
  double worst = 0;
  for (int block = 0; block < 20000; ++block) {
    for (Index lane = 0; lane < kQueries; ++lane) {
      x.data()[lane] = -static_cast<float>(block * kQueries + lane) * 1.31e-4f;
    }
    const std::vector<float> before(x.data(), x.data() + kQueries);
    probabilities_tile(x.data(), 1, 1.0f, shift.data());
    for (Index lane = 0; lane < kQueries; ++lane) {
      const double exact = std::exp2(static_cast<double>(before[static_cast<std::size_t>(lane)]));
      if (before[static_cast<std::size_t>(lane)] < -126) {
        CHECK(x.data()[lane] == 0);
      } else {
        worst = std::max(worst, std::abs(x.data()[lane] / exact - 1));
      }
    }
  }
  INFO("largest relative error: 2^" << std::log2(worst));
  CHECK(worst < 0x1p-22);
  for (const auto& [argument, value] :
       {std::pair{0.0f, 1.0f}, std::pair{1.0f, 2.0f}, std::pair{-126.0f, 0x1p-126f},
        std::pair{-INFINITY, 0.0f}}) {
    std::fill_n(x.data(), kQueries, argument);
    probabilities_tile(x.data(), 1, 1.0f, shift.data());
    CHECK(x.data()[0] == value);
  }
}

TEST_CASE("Sixteen-bit numbers become floats exactly, and the same numbers again") {
  using oracle::DType;
  for (const auto& [type, dtype] :
       {std::pair{Sixteen::bf16, DType::bf16}, std::pair{Sixteen::f16, DType::f16}}) {
    Index wrong = 0;
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
      const auto stored = static_cast<std::uint16_t>(bits);
      float number = 0;
      widen(type, &stored, 1, &number);
      const double exact = oracle::decode(dtype, reinterpret_cast<const std::byte*>(&stored));
      if (std::isnan(exact)) {
        wrong += !std::isnan(number) || !std::isnan(number);
        continue;
      }
      wrong += static_cast<double>(number) != exact || narrow(type, number) != stored;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("NONDET: the vector tile gives the same bits on any number of threads") {
  Description description;
  description.queries = 130, description.keys = 210, description.kv_heads = 2;
  description.group = 2, description.head_dim = 20, description.value_dim = 12;
  description.causal = description.bottom_right = true;
  const auto owned = test::build<float>(description);
  const std::vector<float> dout(4 * 130 * 12, 0.5f);
  const reference::Upstream<float> upstream{reference::row_major<float>(dout, {1, 4, 130, 12}), {}};
  const RingPlan plan{3, Layout::zigzag, Direction::down};
  const auto one = test::run_local_ring(owned.problem, &upstream, plan, simd(1));
  const auto three = test::run_local_ring(owned.problem, &upstream, plan, simd(3));
  CHECK(test::same_bits(one.answer, three.answer));
  CHECK(test::same_bits(one.gradients, three.gradients));
}

TEST_CASE("NONDET: threads that share one head add its gradients up in the same order") {
  for (const int window : {-1, 60}) {  // the shorter one leaves most pairs of tiles out
    Description description;
    description.queries = 500, description.keys = 700, description.kv_heads = 1;
    description.head_dim = 20, description.value_dim = 12;
    description.causal = description.bottom_right = true, description.window_left = window;
    const auto owned = test::build<float>(description);
    std::vector<float> dout(500 * 12);
    for (std::size_t n = 0; n < dout.size(); ++n) {
      dout[n] = 0.01f * static_cast<float>(n * 7 % 101) - 0.4f;
    }
    const reference::Upstream<float> upstream{reference::row_major<float>(dout, {1, 1, 500, 12}),
                                              {}};
    for (const Index ranks : {1, 2}) {
      const RingPlan plan{ranks, Layout::striped, Direction::up};
      const auto one = test::run_local_ring(owned.problem, &upstream, plan, simd(1));
      for (const int threads : {2, 3, 8}) {
        const auto many = test::run_local_ring(owned.problem, &upstream, plan, simd(threads));
        CHECK(test::same_bits(one.answer, many.answer));
        CHECK(test::same_bits(one.gradients, many.gradients));
      }
    }
  }
}

TEST_CASE("PAD-LEAK: numbers at places no query sees change no bit of the vector tile's answers") {
  test::property("poisoned invisible places", [](Description description) {
    description.queries = std::max<Index>(description.queries, 1);
    description.keys = std::max<Index>(description.keys, 1);
    description.scales = false;
    auto owned = test::build<float>(description);
    const auto& problem = owned.problem;
    std::vector<float> dout(owned.q.size() / description.head_dim * description.value_dim, 0.75f);
    const std::array<Index, 4> out_size{problem.batches, problem.heads, problem.queries,
                                        problem.value_dim};
    const auto run = [&] {
      const reference::Upstream<float> upstream{reference::row_major<float>(dout, out_size), {}};
      return test::run_local_ring(problem, &upstream, {2, Layout::striped, Direction::down},
                                  simd());
    };
    const auto clean = run();
    std::vector<bool> key_seen(problem.batches * problem.kv_heads * problem.keys);
    for (const reference::Head& head : reference::all_heads(problem)) {
      for (Index i = 0; i < problem.queries; ++i) {
        bool sees = static_cast<bool>(problem.sinks);
        for (Index j = 0; j < problem.keys; ++j) {
          if (!visible(problem, {head.b, head.h, i}, j)) continue;
          const Index kv = head.b * problem.kv_heads + problem.kv_head(head.h);
          key_seen[kv * problem.keys + j] = sees = true;
        }
        if (sees) continue;
        const Index row = (head.b * problem.heads + head.h) * problem.queries + i;
        owned.q[row * problem.head_dim] = NAN;
        dout[row * problem.value_dim] = INFINITY;
      }
    }
    for (std::size_t row = 0; row < key_seen.size(); ++row) {
      if (key_seen[row]) continue;
      owned.k[row * problem.head_dim] = row % 2 == 0 ? NAN : INFINITY;
      owned.v[row * problem.value_dim] = row % 3 == 0 ? NAN : INFINITY;
    }
    const auto poisoned = run();
    RC_ASSERT(test::same_bits(clean.answer, poisoned.answer));
    // The pair by pair way of such tiles rounds otherwise, so gradients are only looked at for
    // numbers that are none.
    for (const auto* gradient : {&poisoned.gradients.dq, &poisoned.gradients.dk,
                                 &poisoned.gradients.dv, &poisoned.gradients.dbias.data}) {
      for (const float number : *gradient) RC_ASSERT(std::isfinite(number));
    }
  });
}

TEST_CASE("C12: blocks of 16-bit numbers travel in 16 bits, with the same answer") {
  Description description;
  description.queries = description.keys = 100, description.head_dim = 9, description.value_dim = 5;
  const auto owned = test::build<float>(description);  // small dyadic numbers, bf16 holds them
  const RingPlan plan{4, Layout::contiguous, Direction::up};
  const auto wide = test::run_local_ring<float>(owned.problem, nullptr, plan, simd());
  Index wide_bytes = 0;
  for (const auto& event : wide.traces[0]) {
    wide_bytes += event.action == reference::Action::post ? event.bytes : 0;
  }
  for (const Sixteen type : {Sixteen::bf16, Sixteen::f16}) {
    const auto narrow = test::run_local_ring<float>(owned.problem, nullptr, plan, simd(1, type));
    Index bytes = 0;
    for (const auto& event : narrow.traces[0]) {
      bytes += event.action == reference::Action::post ? event.bytes : 0;
    }
    CHECK(test::same_bits(wide.answer, narrow.answer));
    CHECK(2 * bytes == wide_bytes);
  }
}
