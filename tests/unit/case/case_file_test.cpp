// The table of tensors: shapes, types, cross-conditions and layouts, and what is refused of each.
#include "oracle/case/case_file.hpp"

#include <limits>

#include "tests/support/property.hpp"
#include "tests/unit/case/case_builder.hpp"

namespace ringproof::test {
namespace {

using namespace oracle;

std::string refused(const CaseBuilder& builder) {
  const std::string message = refusal([&] { builder.assemble(); });
  CHECK(message.starts_with("memory: "));
  return message;
}

/// The small case with one tensor set.
CaseBuilder with(const std::string& name, OwnedTensor tensor) {
  CaseBuilder builder = small_case();
  builder.set(name, std::move(tensor));
  return builder;
}

std::string refused(const std::string& name, OwnedTensor tensor) {
  const std::string message = refused(with(name, std::move(tensor)));
  CHECK(contains(message, "tensor \"" + name + "\""));
  return message;
}

OwnedTensor integers(std::vector<std::int64_t> shape, DType type) {
  return make_tensor(type, std::move(shape), [](std::int64_t) { return 0; });
}

}  // namespace

TEST_CASE("names that are not in the table are refused with the nearest one") {
  CHECK(contains(refused("Q", counted({1})), "unknown name (nearest: \"q\")"));
  CHECK(contains(refused("positions", counted({1})), "(nearest: \"positions_q\")"));
  CHECK(contains(refused("d_out", counted({1})), "(nearest: \"dout\")"));
  CHECK(contains(refused("sink", counted({1})), "(nearest: \"sinks\")"));
}

TEST_CASE("reserved tensors are refused as not supported yet") {
  for (const char* name : {"k_pages", "v_pages", "block_table", "key_indices", "mask_bits",
                           "block_mask", "dropout_mask"}) {
    CHECK(contains(refused(name, counted({1})), "reserved, not supported yet"));
  }
}

TEST_CASE("each tensor has its types and no others") {
  const DType all[] = {DType::f64,     DType::f32,     DType::f16, DType::bf16, DType::f8_e4m3,
                       DType::f8_e5m2, DType::boolean, DType::i32, DType::i64};
  CaseBuilder builder = small_case();
  builder.set("sinks", counted({2}))
      .set("bias", counted({5, 5}))
      .set("dout", counted({1, 2, 5, 3}));
  const auto accepted = [&](const std::string& name, std::vector<std::int64_t> shape,
                            auto&& expected) {
    for (const DType type : all) {
      CaseBuilder typed = builder;
      typed.set(name, integers(shape, type));
      INFO(name << " " << oracle::name(type));
      if (expected(type)) {
        CHECK_NOTHROW(typed.assemble());
      } else {
        CHECK(contains(refusal([&] { typed.assemble(); }), "tensor \"" + name + "\": type "));
      }
    }
  };
  const auto only = [](std::initializer_list<DType> types) {
    return [types = std::vector<DType>(types)](DType type) {
      return std::find(types.begin(), types.end(), type) != types.end();
    };
  };
  for (const char* name : {"q", "k"}) accepted(name, {1, 2, 5, 4}, is_float);
  for (const char* name : {"v", "out", "dout", "dv"}) accepted(name, {1, 2, 5, 3}, is_float);
  for (const char* name : {"dq", "dk"}) accepted(name, {1, 2, 5, 4}, is_float);
  for (const char* name : {"bias", "dbias"}) accepted(name, {5, 5}, is_float);
  accepted("dlse", {1, 2, 5}, is_float);
  accepted("dsinks", {2}, is_float);
  accepted("lse", {1, 2, 5}, only({DType::f64, DType::f32, DType::f16, DType::bf16}));
  accepted("mask", {5, 5}, only({DType::boolean}));
  accepted("alibi_slopes", {2}, only({DType::f32}));
  accepted("sinks", {2}, only({DType::f32, DType::f64}));
  accepted("key_lengths", {1}, only({DType::i32}));
  accepted("positions_q", {5}, only({DType::i64}));
  accepted("positions_k", {5}, only({DType::i64}));
  for (const char* name : {"q_scale", "k_scale", "v_scale"}) {
    accepted(name, {1, 1, 1, 1}, only({DType::f32}));
  }
}

TEST_CASE("q, k and v must agree, and heads of k must divide those of q") {
  CHECK_NOTHROW(small_case(2, 6, 3).assemble());
  CHECK_NOTHROW(small_case(2, 6, 1, 3, 9, 8, 1).assemble());
  CHECK_NOTHROW(small_case(1, 2, 2, 0, 5).assemble());
  CHECK_NOTHROW(small_case(1, 2, 2, 5, 0).assemble());
  CHECK(contains(refused(small_case(1, 4, 3)), "tensor \"k\""));
  CHECK(contains(refused(small_case(1, 2, 4)), "tensor \"k\""));
  CHECK(contains(refused(small_case(1, 2, 0)), "tensor \"k\""));
  CHECK(contains(refused(small_case(1, 0, 1)), "tensor \"q\""));
  CHECK(contains(refused(small_case(0, 2, 2)), "tensor \"q\""));
  CHECK(contains(refused(small_case(1, 2, 2, 5, 5, 0)), "tensor \"q\""));
  CHECK(contains(refused(small_case(1, 2, 2, 5, 5, 4, 0)), "tensor \"v\""));
  CHECK(contains(refused(with("q", counted({2, 2, 5, 4}))),
                 "tensor \"k\": shape [1, 2, 5, 4] must be [2, 2, 5, 4]"));
  CHECK(contains(refused("k", counted({1, 2, 5, 3})), "must be [1, 2, 5, 4]"));
  CHECK(contains(refused("v", counted({1, 2, 6, 3})), "must be [1, 2, 5, 3]"));
  CHECK(contains(refused("v", counted({1, 1, 5, 3})), "must be [1, 2, 5, 3]"));
  CHECK(contains(refused("q", counted({64})), "must have 4 axes"));
  CHECK(contains(refused("q", counted({1, 1, 2, 5, 4})), "must have 4 axes"));
  for (const char* name : {"q", "k", "v"}) {
    CaseBuilder builder = small_case();
    builder.erase(name);
    CHECK(contains(refused(builder), "tensor \"" + std::string(name) + "\": is missing"));
  }
}

TEST_CASE("bias and mask broadcast by numpy's rule and by no other") {
  CaseBuilder builder = small_case(2, 4, 2, 3, 5);
  const std::vector<std::int64_t> full{2, 4, 3, 5};
  for (unsigned ones = 0; ones < 16; ++ones) {
    for (std::size_t dropped = 0; dropped <= 4; ++dropped) {
      std::vector<std::int64_t> shape;
      for (std::size_t axis = dropped; axis < 4; ++axis) {
        shape.push_back((ones >> axis & 1) != 0 ? 1 : full[axis]);
      }
      builder.set("bias", make_tensor(DType::f32, shape, [](std::int64_t n) { return n; }));
      const Case result = builder.assemble();
      CHECK(result.problem.bias.shape == std::array<std::int64_t, 4>{2, 4, 3, 5});
      std::int64_t expected = 0;
      for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        expected = expected * shape[axis] + (shape[axis] == 1 ? 0 : full[dropped + axis] - 1);
      }
      CHECK(result.problem.bias.at(1, 3, 2, 4) == static_cast<double>(expected));
    }
  }
  for (const char* name : {"bias", "mask"}) {
    const DType type = std::string(name) == "mask" ? DType::boolean : DType::f32;
    for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{2},
                                                   {5, 2},
                                                   {3, 5, 5},
                                                   {1, 1, 1, 1, 5},
                                                   {4, 5, 5},
                                                   {0, 5},
                                                   {1, 2, 5, 6}}) {
      CHECK(contains(refused(name, integers(shape, type)), "does not broadcast to [1, 2, 5, 5]"));
    }
  }
}

TEST_CASE("slopes are per head or per batch and head, sinks per head") {
  CaseBuilder builder = small_case(2, 4, 2);
  builder.set("alibi_slopes", counted({4})).set("sinks", counted({4}));
  const Case one = builder.assemble();
  CHECK(one.problem.alibi_slopes.at(0, 3, 0, 0) == 0);
  CHECK(one.problem.alibi_slopes.at(1, 3, 0, 0) == 0);
  CHECK(one.problem.alibi_slopes.at(1, 0, 0, 0) == -3);
  CHECK(one.problem.sinks.at(0, 2, 0, 0) == -1);
  builder.set("alibi_slopes", counted({2, 4}));
  CHECK(builder.assemble().problem.alibi_slopes.at(1, 2, 0, 0) == 6 - 3);
  builder.set("alibi_slopes", counted({4, 2}));
  CHECK(contains(refused(builder), "alibi_slopes"));
  CHECK(contains(refused("alibi_slopes", counted({3})), "must be [2]"));
  CHECK(contains(refused("alibi_slopes", counted({1, 1, 2})), "axes"));
  CHECK(contains(refused("sinks", counted({3})), "must be [2]"));
  CHECK(contains(refused("sinks", counted({1, 2})), "axes"));
}

TEST_CASE("key lengths lie between 0 and Nk") {
  CaseBuilder builder = small_case(2);
  builder.set("key_lengths", make_list(DType::i32, {0, 5}));
  CHECK(builder.assemble().problem.key_length == std::vector<std::int64_t>{0, 5});
  for (const std::int64_t bad : {-1L, 6L, 2147483647L, -2147483648L}) {
    builder.set("key_lengths", make_list(DType::i32, {0, bad}));
    CHECK(contains(refused(builder), "entry 1 is " + std::to_string(bad) + ", outside 0 .. 5"));
  }
  builder.set("key_lengths", make_list(DType::i32, {5}));
  CHECK(contains(refused(builder), "shape [1] must be [2]"));
  builder.set("key_lengths", integers({2, 1}, DType::i32));
  CHECK(contains(refused(builder), "must be [2]"));
}

TEST_CASE("packed documents start at 0, never fall, end at N, and stand on both sides") {
  const auto packed = [](std::vector<std::int64_t> q, std::vector<std::int64_t> k) {
    CaseBuilder builder = small_case();
    builder.set("cu_seqlens_q", make_list(DType::i32, q))
        .set("cu_seqlens_k", make_list(DType::i32, k));
    return builder;
  };
  const Case result = packed({0, 2, 2, 5}, {0, 0, 4, 5}).assemble();
  CHECK(result.problem.document_q == std::vector<std::int32_t>{0, 0, 2, 2, 2});
  CHECK(result.problem.document_k == std::vector<std::int32_t>{1, 1, 1, 1, 2});
  CHECK(result.problem.position_k == std::vector<std::int64_t>{0, 1, 2, 3, 0});
  CaseBuilder aligned = packed({0, 2, 2, 5}, {0, 0, 4, 5});
  aligned.spec = R"({"version": 1, "causal": "bottom_right"})";
  CHECK(aligned.assemble().problem.position_q == std::vector<std::int64_t>{-2, -1, -2, -1, 0});
  CHECK(contains(refused(packed({1, 5}, {0, 5})), "\"cu_seqlens_q\": entry 0 is 1"));
  CHECK(contains(refused(packed({0, 4}, {0, 5})), "\"cu_seqlens_q\": entry 1 is 4"));
  CHECK(contains(refused(packed({0, 5}, {0, 3, 2, 5})), "\"cu_seqlens_k\": entry 2 is 2"));
  CHECK(contains(refused(packed({0, 5}, {0, 4, 1000})), "\"cu_seqlens_k\": entry 2 is 1000"));
  CHECK(contains(refused(packed({0, 5}, {0, 2, 5})), "has 3 entries, cu_seqlens_q 2"));
  CHECK(contains(refused(packed({0, 5}, {})), "must be [S + 1]"));
  CHECK(contains(refused(packed({0}, {0})), "entry 0 is 0, outside 5"));
  CHECK(contains(refused("cu_seqlens_q", make_list(DType::i32, {0, 5})),
                 "needs cu_seqlens_k beside it"));
  CHECK(contains(refused("cu_seqlens_k", make_list(DType::i32, {0, 5})),
                 "needs cu_seqlens_q beside it"));
  CaseBuilder batched = small_case(2);
  batched.set("cu_seqlens_q", make_list(DType::i32, {0, 5}))
      .set("cu_seqlens_k", make_list(DType::i32, {0, 5}));
  CHECK(contains(refused(batched), "need B = 1"));
}

TEST_CASE("documents by row stand on both sides, -1 is none, and not beside cu_seqlens") {
  CaseBuilder builder = small_case(2);
  builder.set("documents_q", make_list(DType::i32, {7, -1, 0, 0, 3}));
  builder.set("documents_k", make_list(DType::i32, {0, 7, 3, -1, 0}));
  const Case result = builder.assemble();
  CHECK(result.problem.document_q == std::vector<std::int32_t>{7, -1, 0, 0, 3, 7, -1, 0, 0, 3});
  CHECK(visible(result.problem, 1, 0, 0, 1));
  CHECK_FALSE(visible(result.problem, 1, 0, 1, 3));
  builder.set("documents_k", make_list(DType::i32, {0, 7, 3, -2, 0}));
  CHECK(contains(refused(builder), "entry 3 is -2"));
  builder.set("documents_k", make_list(DType::i32, {0, 7}));
  CHECK(contains(refused(builder), "must be [5]"));
  builder.erase("documents_k");
  CHECK(contains(refused(builder), "needs documents_k beside it"));
  CaseBuilder both = small_case();
  for (const char* name : {"documents_q", "documents_k"}) both.set(name, integers({5}, DType::i32));
  for (const char* name : {"cu_seqlens_q", "cu_seqlens_k"})
    both.set(name, make_list(DType::i32, {0, 5}));
  CHECK(contains(refused(both), "in place of cu_seqlens"));
}

TEST_CASE("positions are per row or per batch and row, within exact distances") {
  CaseBuilder builder = small_case(2, 2, 2, 3, 4);
  builder.spec = R"({"version": 1, "causal": "bottom_right"})";
  const Case plain = builder.assemble();
  CHECK(plain.problem.position_q == std::vector<std::int64_t>{1, 2, 3, 1, 2, 3});
  CHECK(plain.problem.position_k == std::vector<std::int64_t>{0, 1, 2, 3, 0, 1, 2, 3});
  builder.set("positions_q", make_list(DType::i64, {9, -2, 4}));
  CHECK(builder.assemble().problem.position_q == std::vector<std::int64_t>{9, -2, 4, 9, -2, 4});
  OwnedTensor each = make_list(DType::i64, {1, 2, 3, 4, 5, 6});
  each.shape = {2, 3};
  builder.set("positions_q", each);
  CHECK(builder.assemble().problem.position_q == std::vector<std::int64_t>{1, 2, 3, 4, 5, 6});
  each.shape = {3, 2};
  builder.set("positions_q", each);
  CHECK(contains(refused(builder), "must be [3] or [2, 3]"));
  each.shape = {6};
  builder.set("positions_q", each);
  CHECK(contains(refused(builder), "must be [3] or [2, 3]"));
  builder.erase("positions_q");
  const std::int64_t farthest = std::int64_t{1} << 52;
  builder.set("positions_k", make_list(DType::i64, {0, farthest, -farthest, 1}));
  CHECK_NOTHROW(builder.assemble());
  for (const std::int64_t bad : {farthest + 1, -farthest - 1}) {
    builder.set("positions_k", make_list(DType::i64, {0, 0, bad, 1}));
    CHECK(contains(refused(builder), "entry 2 is " + std::to_string(bad)));
  }
}

TEST_CASE("factors are per tensor, head, row or block, and blocks divide the axis") {
  CaseBuilder builder = small_case(2, 4, 2, 6, 6, 4, 3);
  builder.set("k_scale", make_tensor(DType::f32, {1, 2, 3, 1}, [](std::int64_t n) { return n; }));
  const Case result = builder.assemble();
  for (std::int64_t h = 0; h < 2; ++h) {
    for (std::int64_t n = 0; n < 6; ++n)
      CHECK(result.problem.k_scale.at(1, h, n, 3) == static_cast<double>(h * 3 + n / 2));
  }
  CHECK(result.problem.q_scale.at(1, 3, 5, 3) == 1);
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{1, 1, 1, 1},
                                                 {2, 4, 6, 4},
                                                 {1, 4, 1, 1},
                                                 {2, 2, 3, 2},
                                                 {1, 1, 2, 4}}) {
    builder.set("q_scale", counted(shape));
    CHECK_NOTHROW(builder.assemble());
  }
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{1, 3, 1, 1},
                                                 {1, 1, 4, 1},
                                                 {1, 1, 12, 1},
                                                 {1, 1, 0, 1},
                                                 {3, 1, 1, 1}}) {
    builder.set("q_scale", counted(shape));
    CHECK(contains(refused(builder), "tensor \"q_scale\""));
  }
  builder.set("q_scale", counted({1}));
  CHECK(contains(refused(builder), "must have 4 axes"));
  CaseBuilder empty = small_case(1, 2, 2, 5, 0);
  for (const std::int64_t size : {0, 1}) {
    empty.set("k_scale", counted({1, 2, size, 1}));
    CHECK_NOTHROW(empty.assemble());
  }
}

TEST_CASE("answers and upstream gradients have the shapes of what they answer") {
  CaseBuilder builder = small_case(2, 4, 2, 5, 6, 4, 3);
  builder.set("out", counted({2, 4, 5, 3})).set("lse", counted({2, 4, 5}));
  builder.set("dout", counted({2, 4, 5, 3})).set("dlse", counted({2, 4, 5}));
  builder.set("dq", counted({2, 4, 5, 4})).set("dk", counted({2, 2, 6, 4}));
  builder.set("dv", counted({2, 2, 6, 3})).set("sinks", counted({4})).set("dsinks", counted({4}));
  builder.set("bias", counted({4, 1, 6})).set("dbias", counted({4, 1, 6}));
  const Case result = builder.assemble();
  REQUIRE(result.answers.size() == 7);
  for (std::size_t n = 0; n < 7; ++n) CHECK(result.answers[n].kind == static_cast<AnswerKind>(n));
  CHECK(result.find(AnswerKind::lse)->tensor.shape == std::array<std::int64_t, 4>{2, 4, 5, 1});
  CHECK(result.find(AnswerKind::lse)->tensor.at(1, 2, 3, 0) == ((1 * 4 + 2) * 5 + 3) % 7 - 3);
  CHECK(result.find(AnswerKind::dbias)->tensor.shape == std::array<std::int64_t, 4>{1, 4, 1, 6});
  CHECK(result.find(AnswerKind::dsinks)->tensor.at(0, 3, 0, 0) == 0);
  CHECK(result.dlse.at(1, 3, 4, 0) == 39 % 7 - 3);
  CHECK(result.storage.empty());
  const std::pair<const char*, std::vector<std::int64_t>> wrong[] = {
      {"out", {2, 4, 5, 4}}, {"lse", {2, 5, 4}},      {"lse", {2, 4, 5, 1}}, {"dout", {2, 4, 6, 3}},
      {"dlse", {2, 4, 6}},   {"dq", {2, 4, 6, 4}},    {"dk", {2, 4, 6, 4}},  {"dv", {2, 2, 6, 4}},
      {"dbias", {4, 5, 6}},  {"dbias", {1, 4, 1, 6}}, {"dsinks", {2}},
  };
  for (const auto& [name, shape] : wrong) {
    CaseBuilder spoilt = builder;
    spoilt.set(name, counted(shape));
    CHECK(contains(refused(spoilt), "tensor \"" + std::string(name) + "\": shape"));
  }
  CHECK(contains(refused("dbias", counted({5, 5})), "there is no bias"));
  CHECK(contains(refused("dsinks", counted({2})), "there are no sinks"));
  CHECK(contains(refused("dq", counted({1, 2, 5, 4})), "needs dout or dlse"));
}

}  // namespace ringproof::test
