// Axis orders and strides: the same case in every layout, and tensors in memory with any strides.
#include "oracle/case/assemble.hpp"
#include "tests/unit/case/case_builder.hpp"

namespace ringproof::test {

using namespace oracle;

TEST_CASE("the three layouts are the same case with its axes in another order") {
  const auto shuffled = [](AxisOrder order, std::int64_t batches) {
    // Element [b, h, n, d] is the same number in every layout.
    const auto fill = [&](std::int64_t heads, std::int64_t rows, std::int64_t columns) {
      std::vector<std::int64_t> shape{batches, heads, rows, columns};
      if (order == AxisOrder::bnhd) shape = {batches, rows, heads, columns};
      if (order == AxisOrder::nhd) shape = {rows, heads, columns};
      return make_tensor(DType::f32, shape, [&, order](std::int64_t n) {
        const std::int64_t d = n % columns;
        std::int64_t rest = n / columns, h = 0, row = 0;
        if (order == AxisOrder::bhnd) {
          row = rest % rows, rest /= rows, h = rest % heads, rest /= heads;
        } else {
          h = rest % heads, rest /= heads, row = rest % rows, rest /= rows;
        }
        return ((rest * 8 + h) * 8 + row) * 8 + d;
      });
    };
    CaseBuilder builder;
    builder.set("q", fill(4, 5, 4))
        .set("k", fill(2, 6, 4))
        .set("v", fill(2, 6, 3))
        .set("out", fill(4, 5, 3));
    builder.set("dout", fill(4, 5, 3)).set("dk", fill(2, 6, 4)).set("k_scale", fill(2, 6, 1));
    const std::vector<std::int64_t> bhn{batches, 4, 5}, hn{4, 5};
    builder.set("lse", make_tensor(DType::f32, order == AxisOrder::nhd ? hn : bhn,
                                   [](std::int64_t n) { return n; }));
    builder.set("bias", counted({batches, 4, 5, 6}));
    builder.spec = std::string(R"({"version": 1, "layout": ")") +
                   (order == AxisOrder::bhnd   ? "bhnd"
                    : order == AxisOrder::bnhd ? "bnhd"
                                               : "nhd") +
                   "\"}";
    return builder;
  };
  for (const auto& [order, batches] :
       {std::pair{AxisOrder::bhnd, 2}, {AxisOrder::bnhd, 2}, {AxisOrder::nhd, 1}}) {
    const CaseBuilder builder = shuffled(order, batches);
    const Case result = builder.assemble();
    const Problem& p = result.problem;
    CHECK(p.batches == batches);
    CHECK(p.heads == 4);
    CHECK(p.kv_heads == 2);
    CHECK(p.queries == 5);
    CHECK(p.keys == 6);
    const std::int64_t b = batches - 1;
    CHECK(p.q.at(b, 3, 4, 2) == ((b * 8 + 3) * 8 + 4) * 8 + 2);
    CHECK(p.v.at(b, 1, 5, 1) == ((b * 8 + 1) * 8 + 5) * 8 + 1);
    CHECK(p.k_scale.at(b, 1, 5, 3) == ((b * 8 + 1) * 8 + 5) * 8);
    CHECK(result.find(AnswerKind::out)->tensor.at(b, 2, 3, 1) == ((b * 8 + 2) * 8 + 3) * 8 + 1);
    CHECK(result.find(AnswerKind::dk)->tensor.at(b, 1, 3, 1) == ((b * 8 + 1) * 8 + 3) * 8 + 1);
    CHECK(result.find(AnswerKind::lse)->tensor.at(b, 2, 3, 0) == (b * 4 + 2) * 5 + 3);
    CHECK(p.bias.at(b, 3, 4, 5) == (((b * 4 + 3) * 5 + 4) * 6 + 5) % 7 - 3);
  }
  CaseBuilder flat = small_case();
  flat.spec = R"({"version": 1, "layout": "nhd"})";
  CHECK(contains(refusal([&] { flat.assemble(); }), "must have 3 axes"));
}

TEST_CASE("tensors in memory may have any strides") {
  CaseBuilder builder = small_case(1, 2, 2, 3, 3, 2, 2);
  const std::vector<std::int64_t> positions{5, 0, 6, 0, 7, 0};
  builder.set("positions_q", make_list(DType::i64, positions));
  Source source = builder.source();
  source.tensors["positions_q"].shape = {3};
  source.tensors["positions_q"].stride = {2};
  source.tensors["q"].stride = {0, 2, 4, 1};  // heads and rows exchanged
  const Case result = assemble_case(source, source, Spec{});
  CHECK(result.problem.position_q == std::vector<std::int64_t>{5, 6, 7});
  CHECK(result.problem.q.at(0, 1, 2, 1) == (1 * 2 + 2 * 4 + 1) % 7 - 3);
}

}  // namespace ringproof::test
