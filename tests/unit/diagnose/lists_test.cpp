// What the lists of mistakes are written with: layouts of a ring, sizes of tiles, names of wrong
// gradients and the pairs that count in them.
#include <set>

#include "oracle/contract/backward_budget.hpp"
#include "oracle/diagnose/gradient_table.hpp"
#include "tests/unit/judge/gradient_case.hpp"

using namespace ringproof::oracle;
using namespace ringproof::test;

namespace {

using Index = std::int64_t;
constexpr const char* kPlain = R"({"version": 1})";

CaseBuilder of_size(Index queries, Index keys, const char* spec = kPlain) {
  CaseBuilder builder = random_case(DType::f32, {.queries = queries, .keys = keys});
  builder.spec = spec;
  return builder;
}

/// Calls work with the lists' view of the case.
template <class Work>
auto with_subject(const CaseBuilder& builder, Index ranks, const char* contract_name,
                  const Work& work) {
  const Case input = builder.assemble();
  const Contract contract = read_contract(contract_name, input.problem.spec);
  return work(Subject{input, contract, ranks, {}});
}

std::vector<Index> stripes(Index keys, Index ranks, const char* spec = kPlain,
                           const char* contract = "fp32") {
  return with_subject(of_size(keys, keys, spec), ranks, contract, [](const Subject& subject) {
    std::vector<Index> all;
    for (const Sharing& one : wide_stripes(subject)) all.push_back(one.stripe);
    return all;
  });
}

}  // namespace

TEST_CASE("a ring is tried in every layout, and in stripes that deal all keys out evenly") {
  constexpr const char* kNamed =
      R"({"version": 1, "ranks": 3, "ring": {"layout": "zigzag", "order": "down"}})";
  CHECK(stripes(24, 3) == std::vector<Index>{2, 4});
  CHECK(stripes(20, 2) == std::vector<Index>{2});
  CHECK(stripes(24, 1).empty());
  CHECK(stripes(24, 3, kNamed, "fp32-ring3").empty());
  const auto layouts = [](const CaseBuilder& builder, Index ranks, const char* contract = "fp32") {
    return with_subject(builder, ranks, contract, [](const Subject& subject) {
      std::string all;
      for (const Sharing& one : sharings(subject)) all += std::string(one.name) + " ";
      return all;
    });
  };
  CHECK(layouts(of_size(24, 24), 3) == "contiguous zigzag striped ");
  CHECK(layouts(of_size(24, 24, kNamed), 3, "fp32-ring3") == "zigzag ");
  CHECK(layouts(of_size(24, 24), 1).empty());
  CHECK(layouts(of_size(24, 24), 256) == "contiguous zigzag striped ");
  CHECK(layouts(of_size(24, 24), 257).empty());
}

TEST_CASE("rows are owned by position where positions number them, else by place") {
  const auto owners = [](const CaseBuilder& builder, bool of_keys) {
    return with_subject(builder, 3, "fp32", [of_keys](const Subject& subject) {
      const Sharing contiguous = sharings(subject).front();
      std::vector<Index> all;
      const Index rows = of_keys ? subject.problem().keys : subject.problem().queries;
      for (Index n = 0; n < rows; ++n) {
        all.push_back(of_keys ? contiguous.key_rank(0, n) : contiguous.query_rank(0, n));
      }
      return all;
    });
  };
  CaseBuilder builder = of_size(6, 6);
  CHECK(owners(builder, true) == std::vector<Index>{0, 0, 1, 1, 2, 2});
  builder.set("positions_k", make_list(DType::i64, {4, 0, 2, 5, 1, 3}));
  builder.set("positions_q", make_list(DType::i64, {4, 0, 2, 5, 1, 3}));
  CHECK(owners(builder, true) == std::vector<Index>{2, 0, 1, 2, 0, 1});
  CHECK(owners(builder, false) == std::vector<Index>{2, 0, 1, 2, 0, 1});
  builder.set("positions_k", make_list(DType::i64, {14, 10, 12, 15, 11, 13}));
  builder.set("positions_q", make_list(DType::i64, {14, 10, 12, 15, 11, 13}));
  CHECK(owners(builder, true) == std::vector<Index>{0, 0, 1, 1, 2, 2});
  // A file of the last rank's queries.
  CaseBuilder few = of_size(2, 6);
  few.set("positions_q", make_list(DType::i64, {4, 5}));
  few.set("positions_k", make_list(DType::i64, {0, 1, 2, 3, 4, 5}));
  CHECK(owners(few, false) == std::vector<Index>{2, 2});
}

TEST_CASE("the gradient of a neighbour's shard is that of the same place, or zero behind its end") {
  CaseBuilder builder = of_size(10, 10);
  add_upstream(builder, DType::f32);
  answer_gradients(builder, DType::f32);
  with_subject(builder, 3, "fp32", [](const Subject& subject) {
    const Sharing contiguous = sharings(subject).front();
    std::vector<std::vector<Index>> shards(3);
    for (Index j = 0; j < 10; ++j) shards[index(contiguous.key_rank(0, j))].push_back(j);
    REQUIRE(shards[2].size() > shards[1].size());
    int found = 0, zeros = 0;
    for (const GradientMutant& form : gradient_classes(subject)) {
      if (form.words != "dk of the previous rank's shard (contiguous)") continue;
      ++found;
      for (std::size_t rank = 0; rank < 3; ++rank) {
        const std::vector<Index>& other = shards[(rank + 2) % 3];
        for (std::size_t n = 0; n < shards[rank].size(); ++n) {
          CHECK(form.rule.dk_from(shards[rank][n]) == (n < other.size() ? other[n] : -1));
          zeros += n >= other.size();
        }
      }
    }
    CHECK(found == 1);
    CHECK(zeros > 0);
    return 0;
  });
}

TEST_CASE("which tile sizes are tried, and whether a case has documents") {
  const auto has = [](const std::vector<Index>& sizes, Index size) {
    return std::find(sizes.begin(), sizes.end(), size) != sizes.end();
  };
  const std::vector<Index> small = tile_sizes(20);
  CHECK(small.size() == 19);
  CHECK(small[0] == 8);
  CHECK(small[1] == 16);
  CHECK_FALSE(has(small, 20));
  CHECK(tile_sizes(320).size() == 319);
  CHECK_FALSE(has(tile_sizes(321), 100));
  const std::vector<Index> large = tile_sizes(4096);
  for (const Index size : {16, 48, 128, 384, 2048}) CHECK(has(large, size));
  for (const Index size : {8, 100, 272, 2176}) CHECK_FALSE(has(large, size));
  for (const Tiles& one : tiled_families(8192)) CHECK(one.family.setting.parts <= 320);
  Problem p;
  p.document_q = p.document_k = {0, 0};
  CHECK_FALSE(has_documents(p));
  p.document_k[1] = 1;
  CHECK(has_documents(p));
  p.document_k[1] = 0;
  p.document_q[1] = 1;
  CHECK(has_documents(p));
}

TEST_CASE("wrong gradients have names, and the case says which there are") {
  CHECK(names(kDq) == "dq");
  CHECK(names(kDq + kDk) == "dq and dk");
  CHECK(names(kDq + kDk + kDv) == "dq, dk and dv");
  CHECK(names(kDbias + kDsinks) == "dbias and dsinks");
  for (int wrong = 1; wrong <= kAllGradients; ++wrong) {
    Mutants one;
    add(one, "", names(wrong), wrong, [](GradientRule&) {});
    const GradientMutant& form = one.front();
    const bool flags[] = {form.dq, form.dk, form.dv, form.dbias, form.dsinks};
    for (int bit = 0; bit < 5; ++bit) CHECK(flags[bit] == ((wrong >> bit & 1) != 0));
  }
  CaseBuilder builder = of_size(6, 6);
  builder.set("bias", normal(DType::f32, {1, 2, 6, 6}, 5));
  builder.set("sinks", normal(DType::f32, {2}, 6));
  add_upstream(builder, DType::f32);
  answer_gradients(builder, DType::f32);
  const Case all = builder.assemble();
  CHECK(judged_gradients(all) == kAllGradients);
  CHECK(with_additions(all, 3) == std::vector<int>{3, 11, 19, 27});
  CHECK(with_additions(all, 3, kDbias) == std::vector<int>{3, 11});
  builder.erase("dbias").erase("dk");
  const Case some = builder.assemble();
  CHECK(judged_gradients(some) == kDq + kDv + kDsinks);
  CHECK(with_additions(some, 3) == std::vector<int>{3, 19});

  GradientRule rule;
  const auto counts = [](Index h, Index i, Index j) {
    return static_cast<double>(100 * h + 10 * i + j);
  };
  count_pairs(rule, kDk, counts);
  CHECK(rule.counts_k);
  CHECK_FALSE((rule.counts_q || rule.counts_v || rule.counts_bias || rule.counts_sinks));
  count_pairs(rule, kAllGradients, counts);
  CHECK(rule.counts_q(1, 2, 3) == 123);
  CHECK(rule.counts_v(1, 2, 3) == 123);
  REQUIRE((rule.counts_bias && rule.counts_sinks));
  CHECK(rule.counts_bias({9, 1, 2, 3}) == 123);
  CHECK(rule.counts_sinks({9, 1, 2, 0}) == 120);
}

TEST_CASE("probabilities in another base are an estimate where a kernel recomputes none") {
  CaseBuilder builder = of_size(6, 6);
  add_upstream(builder, DType::f32);
  answer_gradients(builder, DType::f32);
  for (const char* name : {"fp32", "bf16-eager"}) {
    with_subject(builder, 1, name, [](const Subject& subject) {
      std::set<double> exponents;
      for (const GradientMutant& form : gradient_classes(subject)) {
        exponents.insert(form.rule.p_exponent);
        CHECK(form.estimated == (form.rule.p_exponent != 1 && !may_recompute(subject.contract)));
      }
      CHECK(exponents == std::set<double>{kLn2, 1, 1 / kLn2});
      return 0;
    });
  }
}
