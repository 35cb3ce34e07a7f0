// Edges first: every row once, and the rows where kernels go wrong before all others.
#include "oracle/judge/edge_rows.hpp"

#include <algorithm>
#include <set>

#include "tests/unit/judge/answered_case.hpp"

using namespace ringproof::oracle;
using namespace ringproof::test;

TEST_CASE("the order holds every row once, depends on the seed, and puts edges first") {
  CaseBuilder builder = random_case(DType::f32, {.batches = 2, .heads = 3, .queries = 200});
  const Case input = builder.assemble();
  const Problem& problem = input.problem;
  const std::vector<std::int64_t> order = edges_first(problem, 1);
  CHECK(std::set<std::int64_t>(order.begin(), order.end()).size() == 2 * 3 * 200);
  CHECK(order.size() == 2 * 3 * 200);
  CHECK(order == edges_first(problem, 1));
  CHECK(order != edges_first(problem, 2));
  for (const std::int64_t b : {0, 1}) {  // the first and the last row of every batch entry
    CHECK(edge_class(problem, b, 0) == 0);
    CHECK(edge_class(problem, b, 199) == 0);
    CHECK(edge_class(problem, b, 198) == 2);
  }
  int previous = 0;
  for (const std::int64_t number : order) {
    const int now = edge_class(problem, number / 600, number % 200);
    CHECK(now >= previous);
    previous = now;
  }
}

TEST_CASE("edges are those of sequences, documents, ranks and tiles") {
  CaseBuilder builder = random_case(DType::f32, {.queries = 300, .keys = 300});
  builder.set("cu_seqlens_q", make_list(DType::i32, {0, 100, 300}));
  builder.set("cu_seqlens_k", make_list(DType::i32, {0, 100, 300}));
  const Case packed = builder.assemble();
  for (const std::int64_t i : {0, 99, 100, 299}) CHECK(edge_class(packed.problem, 0, i) == 0);
  for (const std::int64_t i : {63, 64, 127, 128}) CHECK(edge_class(packed.problem, 0, i) == 1);
  for (const std::int64_t i : {1, 98, 101, 200}) CHECK(edge_class(packed.problem, 0, i) == 2);

  builder.erase("cu_seqlens_q").erase("cu_seqlens_k");
  builder.spec = R"({"version": 1, "ranks": 3})";
  const Case ring = builder.assemble();
  for (const std::int64_t i : {99, 100, 199, 200}) CHECK(edge_class(ring.problem, 0, i) == 0);
  CHECK(edge_class(ring.problem, 0, 150) == 2);
  builder.spec = R"({"version": 1, "ranks": 3, "ring": {"layout": "striped", "order": "down"}})";
  const Case striped = builder.assemble();
  CHECK(edge_class(striped.problem, 0, 150) == 2);
}

TEST_CASE("named rows are a row set, and so are keys") {
  const CaseBuilder builder = random_case(DType::f32, {.batches = 2, .queries = 10, .keys = 6});
  const Case input = builder.assemble();
  const RowSet rows(input.problem, std::vector<std::int64_t>{3, 12, 39});
  CHECK(rows.size() == 3);
  CHECK(rows.row(1).h == 1);
  CHECK(rows.row(1).i == 2);
  CHECK(rows.contains({1, 1, 9}));
  CHECK_FALSE(rows.contains({1, 1, 8}));
  const RowSet keys = RowSet::keys_of(input.problem);
  CHECK(keys.size() == 2 * 6);
  CHECK(keys.row(11).b == 1);
  CHECK(keys.row(11).i == 5);
  const RowSet some = RowSet::keys_of(input.problem, 4, 7);
  CHECK(some.size() == 4);
  int found = 0;
  for (std::int64_t n = 0; n < keys.size(); ++n) found += some.contains(keys.row(n));
  CHECK(found == 4);
  const RowSet none(input.problem, std::vector<std::int64_t>{});
  CHECK(none.size() == 0);
  CHECK_FALSE(none.contains({0, 0, 0}));
}
