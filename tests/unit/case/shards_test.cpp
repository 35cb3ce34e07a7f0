// Shards: a random case is cut by rows into files in every way that is allowed, and what is read
// back must be the case; then every way that is not allowed, and the row the refusal must name.
#include <numeric>

#include "oracle/case/case_file.hpp"
#include "tests/support/property.hpp"
#include "tests/unit/case/sharded_case.hpp"

namespace ringproof::test {
namespace {

using namespace oracle;

std::vector<std::string> write_all(const TemporaryFolder& folder,
                                   const std::vector<CaseBuilder>& shards) {
  std::vector<std::string> paths;
  for (const CaseBuilder& shard : shards) {
    paths.push_back(folder.write("rank" + std::to_string(paths.size()), shard.file()));
  }
  return paths;
}

void check_equal(const Tensor& a, const Tensor& b) {
  RC_ASSERT(static_cast<bool>(a) == static_cast<bool>(b));
  RC_ASSERT(a.shape == b.shape);
  for (std::int64_t x = 0; x < a.shape[0]; ++x) {
    for (std::int64_t y = 0; y < a.shape[1]; ++y) {
      for (std::int64_t z = 0; z < a.shape[2]; ++z) {
        for (std::int64_t w = 0; w < a.shape[3]; ++w)
          RC_ASSERT(a.at(x, y, z, w) == b.at(x, y, z, w));
      }
    }
  }
}

void check_equal_factors(const Problem& p, const Factors& a, const Factors& b) {
  for (std::int64_t x = 0; x < p.batches; ++x) {
    for (std::int64_t n = 0; n < p.keys; ++n)
      RC_ASSERT(a.at(x, p.kv_heads - 1, n, 0) == b.at(x, p.kv_heads - 1, n, 0));
  }
}

void check_equal(const Case& joined, const Case& whole) {
  const Problem &a = joined.problem, &b = whole.problem;
  RC_ASSERT(a.queries == b.queries);
  RC_ASSERT(a.keys == b.keys);
  const std::pair<const Tensor*, const Tensor*> tensors[] = {{&a.q, &b.q},
                                                             {&a.k, &b.k},
                                                             {&a.v, &b.v},
                                                             {&a.bias, &b.bias},
                                                             {&a.sinks, &b.sinks},
                                                             {&a.mask, &b.mask},
                                                             {&joined.dout, &whole.dout},
                                                             {&a.alibi_slopes, &b.alibi_slopes}};
  for (const auto& [left, right] : tensors) check_equal(*left, *right);
  RC_ASSERT(joined.answers.size() == whole.answers.size());
  for (std::size_t n = 0; n < joined.answers.size(); ++n) {
    RC_ASSERT(joined.answers[n].kind == whole.answers[n].kind);
    check_equal(joined.answers[n].tensor, whole.answers[n].tensor);
  }
  check_equal_factors(a, a.q_scale, b.q_scale);
  check_equal_factors(a, a.k_scale, b.k_scale);
  RC_ASSERT(a.key_length == b.key_length);
  RC_ASSERT(a.position_q == b.position_q);
  RC_ASSERT(a.position_k == b.position_k);
  RC_ASSERT(a.document_q == b.document_q);
  RC_ASSERT(a.document_k == b.document_k);
  RC_ASSERT(a.spec == b.spec);
}

/// Two shards of four rows each, own keys, contiguous.
struct TwoShards {
  TemporaryFolder folder;
  std::vector<CaseBuilder> shards{part({0, 1, 2, 3}), part({4, 5, 6, 7})};

  static CaseBuilder part(const List& rows) {
    const auto count = static_cast<std::int64_t>(rows.size());
    CaseBuilder builder = small_case(1, 2, 2, count, count);
    builder.set("out", counted({1, 2, count, 3}));
    builder.set("positions_q", make_list(DType::i64, rows))
        .set("positions_k", make_list(DType::i64, rows));
    return builder;
  }
  Case read() { return read_shards(write_all(folder, shards)); }
  std::string refused() {
    return refusal([&] { read(); });
  }
  void positions(std::size_t shard, const char* name, const List& rows) {
    shards[shard].set(name, make_list(DType::i64, rows));
  }
};

}  // namespace

TEST_CASE("shards of any cut, order, layout and number join to the case they were cut from") {
  const TemporaryFolder folder;
  property("read_shards(cut(c)) == c", [&] {
    const std::uint64_t seed =
        *rc::gen::resize(rc::kNominalSize, rc::gen::arbitrary<std::uint64_t>());
    for (std::uint64_t n = 0; n < 4; ++n) {
      ShardedCase sharded(seed + n);
      const auto shards = sharded.shards();
      const Case joined = read_shards(write_all(folder, shards));
      // With no shard that has a row, N is 0 whatever was cut.
      check_equal(joined, sharded.whole.assemble());
    }
  });
}

TEST_CASE("shards of answers alone go to the rows of their problem file by position") {
  const TemporaryFolder folder;
  property("answers join around a whole problem", [&] {
    ShardedCase sharded(*rc::gen::resize(rc::kNominalSize, rc::gen::arbitrary<std::uint64_t>()));
    List places(static_cast<std::size_t>(sharded.rows));  // positions of the problem's rows
    std::iota(places.begin(), places.end(), -2);
    std::shuffle(places.begin(), places.end(), sharded.random);
    sharded.whole.set("positions_q", make_list(DType::i64, places));
    CaseBuilder problem = sharded.whole;
    const std::vector<std::string> answers{"out", "lse", "dout", "dk"};
    for (const std::string& name : answers) problem.erase(name);
    folder.write("problem", problem.file());
    auto shards = sharded.shards();
    for (CaseBuilder& shard : shards) {
      const OwnedTensor& rows = *shard.find("positions_q");
      CaseBuilder answer;
      answer.spec = R"({"version": 1, "contract": "fp32", "problem": "problem"})";
      for (const std::string& name : answers) answer.set(name, *shard.find(name));
      answer.set("positions_q", make_tensor(DType::i64, rows.shape, [&](std::int64_t n) {
                   const auto row = decode_integer(DType::i64, rows.bytes.data() + 8 * n);
                   return places[static_cast<std::size_t>(row)];
                 }));
      answer.set("positions_k", *shard.find("positions_k"));
      shard = std::move(answer);
    }
    const Case joined = read_shards(write_all(folder, shards));
    sharded.whole.spec.insert(sharded.whole.spec.size() - 1, R"(, "contract": "fp32")");
    check_equal(joined, sharded.whole.assemble());
  });
}

TEST_CASE("a missing, doubled or impossible row is refused by its number") {
  TwoShards files;
  CHECK(files.read().problem.queries == 8);
  SECTION("missing query") {
    files.positions(0, "positions_q", {0, 1, 9, 3});
    files.positions(0, "positions_k", {0, 1, 9, 3});
    CHECK(contains(files.refused(), "query row 2 of 10 is in no shard"));
  }
  SECTION("missing key") {
    files.positions(1, "positions_k", {4, 9, 6, 7});
    files.positions(1, "positions_q", {4, 9, 6, 7});
    CHECK(contains(files.refused(), "row 5 of 10 is in no shard"));
  }
  SECTION("one N for both sides: rows that only keys have are missing queries") {
    files.shards.pop_back();
    files.shards[0] = TwoShards::part({0, 1, 2, 3});
    files.shards[0].set("k", counted({1, 2, 6, 4})).set("v", counted({1, 2, 6, 3}));
    files.positions(0, "positions_k", {0, 1, 2, 3, 4, 5});
    CHECK(contains(files.refused(), "query row 4 of 6 is in no shard"));
  }
  SECTION("doubled query") {
    files.positions(1, "positions_q", {4, 3, 6, 7});
    CHECK(contains(files.refused(), "rank1: query row 3 is doubled: "));
  }
  SECTION("doubled key") {
    files.positions(1, "positions_k", {4, 5, 6, 0});
    CHECK(contains(files.refused(), "rank1: key row 0 is doubled: "));
  }
  SECTION("doubled within a shard") {
    files.positions(0, "positions_q", {0, 1, 1, 3});
    CHECK(contains(files.refused(), "rank0: query row 1 is doubled: "));
  }
  SECTION("the same file twice") {
    files.shards[1] = files.shards[0];
    CHECK(contains(files.refused(), "query row 0 is doubled"));
  }
  SECTION("below 0") {
    files.positions(0, "positions_q", {-1, 1, 2, 3});
    CHECK(contains(files.refused(), "query row -1 is below 0"));
  }
  SECTION("far away, in little memory") {
    files.positions(0, "positions_q", {0, 1, 2, std::int64_t{1} << 52});
    CHECK(contains(files.refused(), "query row 3 of 4503599627370497 is in no shard"));
  }
}

TEST_CASE("what every shard repeats must be equal bit for bit") {
  TwoShards files;
  for (std::size_t r = 0; r < 2; ++r) {
    files.shards[r].set("k", counted({1, 2, 8, 4})).set("v", counted({1, 2, 8, 3}));
    files.positions(r, "positions_k", {0, 1, 2, 3, 4, 5, 6, 7});
    files.shards[r]
        .set("sinks", counted({2}))
        .set("mask", make_tensor(DType::boolean, {1, 8}, [](auto n) { return n % 2; }));
  }
  CHECK(files.read().problem.keys == 8);
  const auto spoil = [&](const char* name, std::size_t byte) {
    files.shards[1].find(name)->bytes[byte] ^= std::byte{1};
  };
  SECTION("keys") {
    spoil("k", (8 * 4 + 5 * 4 + 1) * 4);
    CHECK(contains(files.refused(), "rank1: tensor \"k\": row 5 differs from that in"));
  }
  SECTION("values") {
    spoil("v", 7 * 3 * 4);
    CHECK(contains(files.refused(), "tensor \"v\": row 7 differs"));
  }
  SECTION("sinks") {
    spoil("sinks", 1);
    CHECK(contains(files.refused(), "rank1: tensor \"sinks\": differs"));
  }
  SECTION("a mask for all queries of a shard becomes one for each query") {
    spoil("mask", 2);
    const Case joined = files.read();
    CHECK_FALSE(visible(joined.problem, 0, 0, 3, 2));
    CHECK(visible(joined.problem, 0, 0, 4, 2));
  }
}

TEST_CASE("shards must be shards of one problem") {
  TwoShards files;
  SECTION("another spec") {
    files.shards[1].spec = R"({"version": 1, "softcap": 3})";
    CHECK(contains(files.refused(), "rank1: the spec differs"));
  }
  SECTION("a tensor too few or too many") {
    files.shards[1].erase("out");
    CHECK(contains(files.refused(), "rank1: tensor \"out\": is missing, but "));
    files.shards[1] = TwoShards::part({4, 5, 6, 7});
    files.shards[0].erase("out");
    CHECK(contains(files.refused(), "rank0: tensor \"out\": is missing, but "));
  }
  SECTION("another type") {
    files.shards[1].set("q", counted({1, 2, 4, 4}, DType::f16));
    CHECK(contains(files.refused(), "rank1: tensor \"q\": has another type"));
  }
  SECTION("another number of heads or batches") {
    files.shards[1].set("q", counted({1, 4, 4, 4})).set("out", counted({1, 4, 4, 3}));
    CHECK(contains(files.refused(), "does not join [1, 2, 4, "));
    files.shards[1] = small_case(2, 2, 2, 4, 4);
    files.shards[1].set("out", counted({2, 2, 4, 3}));
    files.positions(1, "positions_q", {4, 5, 6, 7});
    files.positions(1, "positions_k", {4, 5, 6, 7});
    CHECK(contains(files.refused(), "another number of batches"));
  }
  SECTION("no positions") {
    files.shards[1].erase("positions_q");
    CHECK(contains(files.refused(), "rank1: tensor \"positions_q\": is missing"));
    files.shards = {TwoShards::part({0, 1, 2, 3})};  // one file is no exception
    CHECK(files.read().problem.queries == 4);
    files.shards[0].erase("positions_q");
    CHECK(contains(files.refused(), "rank0: tensor \"positions_q\": is missing"));
  }
  SECTION("packed documents by boundaries") {
    for (const char* name : {"cu_seqlens_q", "cu_seqlens_k"}) {
      files.shards[0].set(name, make_list(DType::i32, {0, 4}));
    }
    CHECK(contains(files.refused(), "\"cu_seqlens_q\": a shard says the document of each row"));
  }
  SECTION("scores of queries and keys that lie in different files") {
    for (CaseBuilder& shard : files.shards) shard.set("bias", counted({4, 4}));
    CHECK(contains(files.refused(), "every shard must hold all keys"));
  }
  SECTION("key lengths count the keys of the whole") {
    for (CaseBuilder& shard : files.shards) shard.set("key_lengths", make_list(DType::i32, {7}));
    CHECK(files.read().problem.key_length == List{7});
    for (CaseBuilder& shard : files.shards) shard.set("key_lengths", make_list(DType::i32, {9}));
    CHECK(contains(files.refused(), "\"key_lengths\": entry 0 is 9, outside 0 .. 8"));
  }
  SECTION("no file at all") { CHECK_THROWS_AS(read_shards({}), BadInput); }
}

TEST_CASE("every batch of a shard has its own positions") {
  // The second batch is dealt out the other way round.
  TwoShards files;
  for (std::int64_t r = 0; r < 2; ++r) {
    CaseBuilder& shard = files.shards[static_cast<std::size_t>(r)];
    shard = small_case(2, 2, 2, 4, 4);
    shard.set("out", make_tensor(DType::f32, {2, 2, 4, 3}, [&](auto) { return r; }));
    for (const char* name : {"positions_q", "positions_k"}) {
      shard.set(name, make_tensor(DType::i64, {2, 4},
                                  [&](auto n) { return n % 4 + (n / 4 == r ? 0 : 4); }));
    }
  }
  const Case joined = files.read();
  const Tensor& out = joined.find(AnswerKind::out)->tensor;
  for (std::int64_t b = 0; b < 2; ++b) {
    for (std::int64_t n = 0; n < 8; ++n) CHECK(out.at(b, 1, n, 2) == (n < 4 ? b : 1 - b));
  }
}

TEST_CASE("factors of blocks, of rows and of whole shards become factors of rows") {
  TwoShards files;
  files.shards[0].set("k_scale",
                      make_tensor(DType::f32, {1, 2, 2, 1}, [](auto n) { return 10 + n; }));
  files.shards[1].set("k_scale",
                      make_tensor(DType::f32, {1, 2, 1, 1}, [](auto n) { return 20 + n; }));
  const Case result = files.read();
  const Problem& joined = result.problem;
  for (std::int64_t h = 0; h < 2; ++h) {
    for (std::int64_t n = 0; n < 8; ++n) {
      const auto expected = n < 4 ? 10 + 2 * h + n / 2 : 20 + h;
      CHECK(joined.k_scale.at(0, h, n, 3) == static_cast<double>(expected));
    }
  }
}

TEST_CASE(
    "one shard with positions and all keys needs no flag, and shards may name their problems") {
  TwoShards files;
  CaseBuilder alone = TwoShards::part({4, 5, 6, 7});
  alone.set("k", counted({1, 2, 8, 4})).set("v", counted({1, 2, 8, 3}));
  alone.set("positions_k", make_list(DType::i64, {7, 6, 5, 4, 3, 2, 1, 0}));
  alone.spec = R"({"version": 1, "causal": "bottom_right"})";
  const Case plain = read_case(files.folder.write("alone", alone.file()));
  CHECK(plain.problem.position_q == List{4, 5, 6, 7});
  CHECK(visible_range(plain.problem, 0, 1).first == 2);

  for (std::size_t r = 0; r < 2; ++r) {
    CaseBuilder answer;
    answer.set("out", *files.shards[r].find("out"));
    const std::string name = "problem" + std::to_string(r);
    answer.spec = R"({"version": 1, "contract": "fp32", "problem": ")" + name + "\"}";
    files.shards[r].erase("out");
    files.folder.write(name, files.shards[r].file());
    files.shards[r] = std::move(answer);
  }
  const Case joined = files.read();
  CHECK(joined.problem.queries == 8);
  CHECK(joined.find(AnswerKind::out)->tensor.at(0, 1, 4, 2) == (4 * 3 + 2) % 7 - 3);
}

TEST_CASE("answers cannot be placed in a problem whose positions repeat or are others") {
  TwoShards files;
  CaseBuilder problem = small_case(1, 2, 2, 8, 8);
  const auto refused = [&](const List& positions) {
    problem.set("positions_q", make_list(DType::i64, positions));
    const std::string path = files.folder.write("problem", problem.file());
    std::vector<CaseBuilder> answers(2);
    for (std::size_t r = 0; r < 2; ++r) {
      answers[r].set("out", *files.shards[r].find("out"));
      answers[r].set("positions_q", *files.shards[r].find("positions_q"));
    }
    const auto paths = write_all(files.folder, answers);
    return refusal([&] { read_shards(paths, {.problem_file = path}); });
  };
  CHECK(contains(refused({0, 1, 2, 3, 0, 1, 2, 3}), "position 0 has more than one row"));
  CHECK(contains(refused({10, 1, 2, 3, 4, 5, 6, 7}), "has position 0"));
}

}  // namespace ringproof::test
