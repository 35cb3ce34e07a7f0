// The machinery under the catalogue: a head that is not changed is the truth, and the parts of a
// row put together rightly are the row.
#include "oracle/diagnose/expected_rows.hpp"

#include "oracle/diagnose/combine.hpp"
#include "tests/unit/diagnose/planted.hpp"

using namespace ringproof::oracle;
using namespace ringproof::test;

namespace {

using Index = std::int64_t;

CaseBuilder rich_case() {
  CaseBuilder builder = random_case(DType::bf16, {.batches = 1,
                                                  .heads = 4,
                                                  .kv_heads = 2,
                                                  .queries = 11,
                                                  .keys = 19,
                                                  .head_dim = 8,
                                                  .value_dim = 5});
  builder.set("bias", normal(DType::f32, {1, 4, 11, 19}, 8));
  builder.set("alibi_slopes", normal(DType::f32, {4}, 9));
  builder.set("sinks", normal(DType::f32, {4}, 10));
  builder.set("key_lengths", make_list(DType::i32, {17}));
  builder.spec =
      R"({"version": 1, "causal": "bottom_right", "window": [9, 0], "softcap": 3, "scale": 0.5})";
  return builder;
}

}  // namespace

TEST_CASE("a head that is not changed has the rows and bounds of the problem itself") {
  const CaseBuilder builder = rich_case();
  const Case input = builder.assemble();
  const Contract contract = read_contract("bf16-flash", input.problem.spec);
  const Subject subject{input, contract, 1, std::nullopt};
  std::vector<Index> queries;
  for (Index i = 0; i < input.problem.queries; ++i) queries.push_back(i);
  for (Index h = 0; h < input.problem.heads; ++h) {
    const SolvedRows solved = solve(subject, {}, 0, h, 0, queries, Precision::fast);
    for (Index i = 0; i < input.problem.queries; ++i) {
      const HeadTruth head(input.problem, 0, input.problem.kv_head(h), Precision::fast);
      RowTruth row;
      const HeadTruth::RowId id{h, i};
      head.rows({&id, 1}, &row);
      RowBound bound;
      bound_row(contract, input.problem, row, head.values() + row.keys.first * head.values_stride(),
                head.values_stride(), false, bound);
      const ExpectedRow expected = unchanged_row(solved, static_cast<std::size_t>(i));
      REQUIRE(expected.out.size() == row.out.size());
      for (std::size_t c = 0; c < row.out.size(); ++c) {
        const double apart = std::abs(expected.out[c].exact.hi - row.out[c].hi);
        CHECK(apart <= expected.out[c].exact.radius + row.out[c].radius +
                           std::ldexp(std::abs(row.out[c].hi), -52));
        CHECK(close(expected.out[c].bound / bound.out[c], 1, 20));
      }
      CHECK(close(expected.lse[0].value.bound / bound.lse, 1, 20));
    }
  }
}

TEST_CASE("families that leave the problem as it is share its rows, the others have their own") {
  const CaseBuilder builder = rich_case();
  const Case input = builder.assemble();
  const Contract contract = read_contract("bf16-flash", input.problem.spec);
  const Subject subject{input, contract, 1, std::nullopt};
  RowSolver solver(subject, Precision::fast);
  Setting in_parts, scaled, looser;
  in_parts.part = [](Index, Index, Index j) { return j / 4; };
  in_parts.parts = 5;
  scaled.change = [](HeadChange& change) { change.scale = 2; };
  looser.contract = [](Contract& changed) { changed.softmax.exp_rel = 0x1p-9; };
  const auto rows = solver.solve({}, 0, 1, 0, {0, 4});
  CHECK(solver.solve(in_parts, 0, 1, 0, {0, 4}) == rows);
  const std::vector<Index> others[] = {{0, 5}, {4, 0}, {0}};
  for (const auto& queries : others) CHECK(solver.solve({}, 0, 1, 0, queries) != rows);
  CHECK(solver.solve({}, 0, 2, 0, {0, 4}) != rows);
  CHECK(solver.solve({}, 0, 1, 1, {0, 4})->change->rank == 1);
  const auto of = [&](const Setting& setting) {
    return unchanged_row(*solver.solve(setting, 0, 1, 0, {0, 4}), 1).out[0];
  };
  CHECK(of(scaled).exact.hi != of({}).exact.hi);
  CHECK(of(looser).bound > of({}).bound);
}

TEST_CASE("parts put together with their own weights are the row, within their own errors") {
  const CaseBuilder builder = rich_case();
  const Case input = builder.assemble();
  const Contract contract = read_contract("bf16-flash", input.problem.spec);
  const Subject subject{input, contract, 1, std::nullopt};
  for (const Index size : {1, 3, 4, 8, 19}) {
    Family family;
    family.setting.part = [size](Index, Index, Index j) { return j / size; };
    family.setting.parts = (input.problem.keys + size - 1) / size;
    family.mutants.push_back({"", "", "", absorbed({}, 1)});
    family.mutants.push_back({"", "", "", online({})});
    const SolvedRows solved = solve(subject, family.setting, 0, 1, 0, {0, 4, 10}, Precision::fast);
    for (std::size_t n = 0; n < 3; ++n) {
      std::string reason;
      const std::vector<ExpectedRow> expected = expected_rows(family, solved, n, reason);
      REQUIRE(reason.empty());
      const ExpectedRow right = unchanged_row(solved, n);
      for (const ExpectedRow& one : expected) {
        for (std::size_t c = 0; c < right.out.size(); ++c) {
          const double exact = right.out[c].exact.hi;
          CHECK(close(one.out[c].exact.hi, exact, 30));
          CHECK(one.out[c].bound >= 0);
        }
        CHECK(close(one.lse.front().value.exact.hi, right.lse[0].value.exact.hi, 30));
      }
    }
  }
}

TEST_CASE("what is masked leaves no trace in a changed head, and what is seen and no number does") {
  CaseBuilder builder = random_case(DType::f32, {.heads = 1, .queries = 4, .keys = 6}, 2);
  set_value(builder, "v", 5 * 3 + 1, std::numeric_limits<double>::quiet_NaN());
  builder.spec = R"({"version": 1, "causal": "top_left"})";
  const Case input = builder.assemble();
  const Contract contract = read_contract("fp32", input.problem.spec);
  const Subject subject{input, contract, 1, std::nullopt};
  const SolvedRows hidden = solve(subject, {}, 0, 0, 0, {0, 3}, Precision::fast);
  for (const Expected& x : unchanged_row(hidden, 1).out) CHECK(x.kind == Expected::Kind::ball);
  Setting all;
  all.change = [](HeadChange& c) { c.visible = [](Index, Index) { return true; }; };
  const SolvedRows seen = solve(subject, all, 0, 0, 0, {0, 3}, Precision::fast);
  const ExpectedRow row = unchanged_row(seen, 0);
  CHECK(row.out[0].kind == Expected::Kind::ball);
  CHECK(row.out[1].kind == Expected::Kind::not_finite);
}

TEST_CASE("a part alone is a kernel without merges, whose casts need not be exact") {
  // In a row of its own the largest weight is exp(0), and its cast exact.
  const CaseBuilder builder = random_case(DType::bf16, {.queries = 3, .keys = 19});
  const Case input = builder.assemble();
  const Problem& problem = input.problem;
  const Contract contract = read_contract("bf16-ring4", problem.spec);
  Contract alone = contract;
  alone.partials.count = 1;
  alone.partials.merge = {Merge::none};
  alone.p.round = RoundMode::faithful;
  const HeadTruth head(problem, 0, 0, Precision::fast);
  RowTruth row;
  const HeadTruth::RowId id{1, 2};
  head.rows({&id, 1}, &row);
  const std::vector<Index> one_part(row.score.size(), 0);
  PartialRows parts(contract, problem);
  REQUIRE(parts.cut(row, head.values(), head.values_stride(), one_part, 1, 0).empty());
  RowBound bound;
  bound_row(alone, problem, row, head.values(), head.values_stride(), false, bound);
  const Part& part = parts.parts().front();
  for (std::size_t c = 0; c < bound.out.size(); ++c) {
    CHECK(close(part.bound[c] / bound.out[c], 1, 20));
  }
  CHECK(close(part.lse_error / bound.lse, 1, 20));
}
