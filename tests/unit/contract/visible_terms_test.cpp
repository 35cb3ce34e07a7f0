// Runs of visible keys and the assumption H1 on formats that few contracts have: by hand.
#include "oracle/contract/visible_terms.hpp"

#include "tests/support/catch.hpp"
#include "tests/unit/contract/row_fixture.hpp"

using namespace ringproof;
using namespace ringproof::oracle;

namespace {

/// The terms of a row that sees these places of eight keys, whose range begins at `first`.
Terms terms_of(const std::string& contract, const std::vector<std::int64_t>& positions,
               const std::vector<std::int64_t>& places, std::int64_t first = 0) {
  test::RowFixture fixture(8, 16, 1);
  fixture.problem.position_k = positions;
  fixture.row.keys = {first, 8};
  RowKeys keys;
  keys.index = places;
  keys.visible = static_cast<std::int64_t>(places.size());
  Terms terms;
  visible_terms(read_contract(contract, Spec{}), fixture.problem, fixture.row, keys, terms);
  return terms;
}

using List = std::vector<std::int64_t>;
const List kInOrder{0, 1, 2, 3, 4, 5, 6, 7}, kStriped{0, 4, 1, 5, 2, 6, 3, 7};

}  // namespace

TEST_CASE("a ring deals out keys by position, one device by their place in the file") {
  CHECK(terms_of("bf16-ring2", kInOrder, {0, 2, 4}).runs == List{1, 1, 1});
  CHECK(terms_of("bf16-ring2", kStriped, {0, 2, 4}).runs == List{3});
  CHECK(terms_of("bf16-ring2", kStriped, {0, 1, 2}).runs == List{2, 1});  // positions 0, 4, 1
  CHECK(terms_of("bf16-split2", kStriped, {0, 2, 4}).runs == List{1, 1, 1});
  CHECK(terms_of("bf16-flash", kStriped, {0, 1, 2}).runs == List{3});
}

TEST_CASE("the grid of tiles starts at the first key of the file, or of the positions of a ring") {
  CHECK(terms_of("bf16-flash", kInOrder, {0, 1}).first_at_zero);
  CHECK_FALSE(terms_of("bf16-flash", kInOrder, {1, 2}).first_at_zero);
  CHECK_FALSE(terms_of("bf16-flash", kInOrder, {0, 1}, 4).first_at_zero);
  CHECK(terms_of("bf16-ring2", {7, 6, 5, 4, 3, 2, 1, 0}, {0, 3}, 4).first_at_zero);
  CHECK_FALSE(terms_of("bf16-ring2", {7, 6, 5, 4, 3, 2, 1, 0}, {0, 1}).first_at_zero);
}

TEST_CASE("one run of a partial is as long as the partial") {
  Terms part;
  partial_terms(Terms::contiguous(20), 7, part);
  CHECK(part.count == 7);
  CHECK(part.runs == List{7});
  Terms several = Terms::contiguous(20);
  several.runs = {10, 10};
  partial_terms(several, 7, part);
  CHECK(part.count == 7);
  CHECK(part.runs == List{10, 10});
  partial_terms(Terms::contiguous(20), 0, part);
  CHECK(part.runs == List{20});
}

TEST_CASE("partials, denominators and lazy weights may leave the range of their format, too") {
  const auto reason = [](const std::string& contract, double value) {
    test::RowFixture fixture(4, 16, 1);
    fixture.values.assign(4, value);
    fixture.finish();
    return fixture.bound(read_contract(contract, Spec{})).not_applicable;
  };
  CHECK(reason("fp16-ring4", 2e4).empty());
  CHECK(reason("fp16-ring4-lowp", 1e4).empty());
  CHECK(reason("fp16-ring4-lowp", 2e4) == "H1: the sum of values may overflow");
  const auto lazy = [](const std::string& base, int octaves) {
    return R"({"base":)" + base + R"(,"softmax":{"rescale":"lazy","lazy_log2":)" +
           std::to_string(octaves) + "}}";
  };
  CHECK(reason(lazy(R"("fp16-flash")", 15), 1).empty());
  CHECK(reason(lazy(R"("fp16-flash")", 17), 1) == "H1: a probability may overflow");
  const std::string narrow = R"({"base":"fp32","l":{"u":"0x1p-11","eta":"0x1p-25"}})";
  CHECK(reason(lazy(narrow, 13), 1).empty());
  CHECK(reason(lazy(narrow, 15), 1) == "H1: the denominator may overflow");
}

TEST_CASE("scores may leave the range of their format on either side of zero") {
  const auto reason = [](double score) {
    test::RowFixture fixture(4, 16, 1);
    fixture.problem.spec.scale = 1;  // so that the products are no larger than the scores
    fixture.row.dot.assign(4, score);
    fixture.row.abs_dot.assign(4, std::abs(score));
    fixture.finish();
    return fixture.bound(read_contract("fp16-eager", Spec{})).not_applicable;
  };
  // The rounding of a score of 65500 exceeds what is left below 65504.
  for (const double score : {-65000.0, 65000.0}) CHECK(reason(score) == "");
  for (const double score : {-65500.0, 65500.0}) {
    CHECK(reason(score) == "H1: a score may overflow");
  }
}
