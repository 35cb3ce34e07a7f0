// Where an answer is refused, and whether a factor and an offset mend it.
#include "oracle/diagnose/locate.hpp"

#include "tests/unit/diagnose/planted.hpp"

using namespace ringproof::oracle;
using namespace ringproof::test;

namespace {

constexpr Sizes kSizes{.batches = 1,
                       .heads = 3,
                       .kv_heads = 3,
                       .queries = 40,
                       .keys = 40,
                       .head_dim = 4,
                       .value_dim = 8};

Location locate_in(const CaseBuilder& builder) {
  const Case input = builder.assemble();
  const Contract contract = read_contract("fp32", input.problem.spec);
  const Report report = check(input, contract, {});
  return locate(input, contract, error_field(input, contract, {}, report));
}

/// Spoils out where `where(h, i, c)` holds.
CaseBuilder spoilt(const std::function<bool(std::int64_t, std::int64_t, std::int64_t)>& where) {
  CaseBuilder builder = plain_case(R"({"version": 1})", kSizes, DType::f32);
  for (std::int64_t n = 0; n < 3 * 40 * 8; ++n) {
    if (where(n / 320, n / 8 % 40, n % 8)) {
      set_value(builder, "out", n, value_at(builder, "out", n) + 0.25);
    }
  }
  return builder;
}

bool says(const Location& location, const std::string& words) {
  for (const Finding& finding : location.findings) {
    if (finding.words == words) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("refused elements are found by head, query, column and residue") {
  const Location by_head = locate_in(spoilt([](auto h, auto, auto) { return h == 1; }));
  CHECK(by_head.refused == 320);
  CHECK(says(by_head, "head = 1"));
  const Location by_tile = locate_in(spoilt([](auto, auto i, auto) { return i % 16 >= 8; }));
  CHECK(says(by_tile, "query mod 16 from 8 to 15"));
  CHECK(by_tile.findings.front().refused_share < 1.01);
  const Location by_column = locate_in(spoilt([](auto, auto, auto c) { return c >= 6; }));
  CHECK(says(by_column, "column from 6 to 7"));
  const Location everywhere = locate_in(spoilt([](auto, auto, auto) { return true; }));
  CHECK(everywhere.findings.empty());
  CHECK(locate_in(spoilt([](auto, auto, auto) { return false; })).refused == 0);
}

TEST_CASE("one wrong row is no tile that was never written, and is found") {
  for (const std::int64_t wrong : {std::int64_t{39}, std::int64_t{21}}) {
    const CaseBuilder builder =
        spoilt([wrong](auto h, auto i, auto) { return h == 1 && i == wrong; });
    const Case input = builder.assemble();
    const Contract contract = read_contract("fp32", input.problem.spec);
    const Report report = check(input, contract, {});
    for (const Explanation& one : diagnose(input, contract, {}, report).explanations) {
      CAPTURE(one.id, one.words);
      CHECK(one.open <= 8);  // at most that row, never a tile whose other rows are right
    }
    const Location location = locate(input, contract, error_field(input, contract, {}, report));
    CHECK(says(location, "head = 1"));
    CHECK(says(location, "query = " + std::to_string(wrong)));
  }
}

TEST_CASE("a factor and an offset are found by regression and tested by their boxes") {
  CaseBuilder builder = plain_case(R"({"version": 1})", kSizes, DType::f32);
  CaseBuilder gain = builder;
  for (std::int64_t n = 0; n < 3 * 40 * 8; ++n) {
    set_value(gain, "out", n, 1.03125 * value_at(builder, "out", n));
  }
  const auto by_gain = locate_in(gain).regression;
  REQUIRE(by_gain);
  CHECK(close(by_gain->gain, 1.03125, 20));
  CHECK(by_gain->refused > 900);
  CHECK(by_gain->refused_by_gain == 0);
  const auto by_offset = locate_in(spoilt([](auto, auto, auto) { return true; })).regression;
  REQUIRE(by_offset);
  CHECK(close(by_offset->offset, 0.25, 18));
  CHECK(by_offset->refused_by_gain > 900);
  CHECK(by_offset->refused_by_both < by_offset->refused / 10);
}

TEST_CASE("the worst row points along the key that weighs too much") {
  CaseBuilder builder = plain_case(R"({"version": 1})", kSizes, DType::f32);
  const Case input = builder.assemble();
  PlainKernel kernel(input.problem);
  kernel.score = [before = kernel.score](std::int64_t h, std::int64_t i, std::int64_t j,
                                         double dot) {
    return before(h, i, j, dot) + (j == 11 && i == 7 ? 1.0 : 0.0);
  };
  store(input.problem, kernel, builder);
  const Location location = locate_in(builder);
  REQUIRE(location.worst);
  CHECK(location.worst->i == 7);
  CHECK(contains(location.along, "key 11, which weighs too much"));
}

TEST_CASE("refused rows of one document and of one rank are found by it") {
  const auto located = [](CaseBuilder builder, const char* contract_name,
                          const std::function<bool(std::int64_t i)>& where) {
    answer(builder, DType::f32);
    for (std::int64_t n = 0; n < 3 * 40 * 8; ++n) {
      if (where(n / 8 % 40)) set_value(builder, "out", n, value_at(builder, "out", n) + 0.25);
    }
    const Case input = builder.assemble();
    const Contract contract = read_contract(contract_name, input.problem.spec);
    const Report report = check(input, contract, {});
    return locate(input, contract, error_field(input, contract, {}, report));
  };
  CaseBuilder packed = random_case(DType::f32, kSizes, 3), ring = packed;
  for (const char* name : {"cu_seqlens_q", "cu_seqlens_k"}) {
    packed.set(name, make_list(DType::i32, {0, 13, 29, 40}));
  }
  CHECK(says(located(packed, "fp32", [](std::int64_t i) { return i >= 13 && i < 29; }),
             "document = 1"));
  ring.spec = R"({"version": 1, "ranks": 4, "ring": {"layout": "striped", "order": "down"}})";
  CHECK(says(located(ring, "fp32-ring4", [](std::int64_t i) { return i % 4 == 2; }),
             "rank (striped) = 2"));
}

TEST_CASE("a case without documents is not located by them, nor explained by their boundaries") {
  CaseBuilder builder =
      plain_case(R"({"version": 1, "causal": "top_left", "window": [5, 0]})", kSizes, DType::f32);
  const Case input = builder.assemble();
  PlainKernel kernel(input.problem);
  kernel.sees = [](std::int64_t, std::int64_t, std::int64_t) { return true; };
  store(input.problem, kernel, builder);
  const Diagnosed result = explain(builder, "fp32");
  CHECK(result.ids().count("MASK-DROP") == 1);
  for (const Explanation& one : result.diagnosis.explanations) {
    INFO(one.words);
    CHECK_FALSE(contains(one.words, "document"));
  }
}

TEST_CASE("a range of numbers is printed if refusals fill it, a few numbers as a list") {
  const auto text = [](const std::string& name, const std::set<std::int64_t>& refused) {
    Histogram histogram;
    for (std::int64_t n = 0; n < 64; ++n) histogram.add(n, 10, refused.count(n) != 0 ? 7 : 0);
    const auto finding = narrow(name, histogram);
    return finding ? finding->words : "";
  };
  std::set<std::int64_t> filled, odd, nearly;
  for (std::int64_t n = 8; n < 40; ++n) {
    filled.insert(n);
    if (n % 2 == 1) odd.insert(n);
    if (n != 20) nearly.insert(n);
  }
  CHECK(text("query mod 64", filled) == "query mod 64 from 8 to 39");
  CHECK(text("query mod 64", odd).empty());
  CHECK(text("query mod 64", nearly) == "query mod 64 from 8 to 39, with gaps");
  CHECK(text("query", odd) == "query from 9 to 39, with gaps");
  CHECK(text("query mod 64", {3, 17, 60}) == "query mod 64 in 3, 17, 60");
  CHECK(text("query", {5}) == "query = 5");
  std::set<std::int64_t> all;
  for (std::int64_t n = 0; n < 60; ++n) all.insert(n);
  CHECK(text("query", all).empty());  // no small part
}
