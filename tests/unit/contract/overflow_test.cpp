// H1 of docs/contract.md by hand: sums that fit the format if they are exact, and that a conforming
// kernel overflows on the way.
#include <cmath>
#include <limits>

#include "tests/support/catch.hpp"
#include "tests/unit/contract/row_fixture.hpp"

using namespace ringproof;
using namespace ringproof::oracle;

namespace {

constexpr double kLargest = std::numeric_limits<float>::max();
const std::string kScore = "H1: a score may overflow",
                  kValues = "H1: the sum of values may overflow";

template <class Change>
std::string reason(const std::string& contract, std::int64_t keys, const Change& change) {
  test::RowFixture fixture(keys, 16, 1);
  fixture.problem.spec.scale = 1;
  fixture.values.assign(static_cast<std::size_t>(keys), 1);
  change(fixture);
  fixture.finish();
  return fixture.bound(read_contract(contract, Spec{})).not_applicable;
}

auto values(const std::vector<double>& v) {
  return [v](test::RowFixture& f) { f.values = v; };
}

}  // namespace

TEST_CASE("a sum of values may overflow though the exact sum fits") {
  // 64 times a little more than one and a half units of the sum, each rounded up to two.
  const double unit = 0x1p104;
  std::vector<double> v(66, 1.5 * unit * (1 + 0x1p-20));
  v.front() = 0x1p127, v.back() = 0x1p127 - 113 * unit;
  double exact = 0;
  float sum = 0;
  for (const double x : v) exact += x, sum += static_cast<float>(x);
  CHECK(exact < kLargest * (1 - 0x1p-21));
  CHECK(std::isinf(sum));
  CHECK(reason("fp32", 66, values(v)) == kValues);
  CHECK(reason("fp32", 3, values({0x1p126, 0x1p126, 0x1p126})) == "");
}

TEST_CASE("an output that a ring carries in fp16 may overflow though its values fit") {
  const std::vector<double> v{32768, 16.02, 16.02, 0, 16.02, 0, 32672, 0};
  double sum = 0;
  for (const double x : v) sum += x;
  CHECK(sum < 65504);
  CHECK(reason("fp16-ring4-lowp", 8, values(v)) == kValues);
  CHECK(reason("fp16-ring4", 8, values(v)) == "");
}

TEST_CASE("products of q and k may overflow though their exact sum fits") {
  const auto product = [](double abs_dot, double scale) {
    return [=](test::RowFixture& f) {
      f.problem.spec.scale = scale;
      f.row.abs_dot[0] = abs_dot;
    };
  };
  CHECK(reason("fp32", 2, product(kLargest * (1 - 0x1p-21), 1)) == kScore);
  CHECK(reason("fp32", 2, product(kLargest * (1 - 0x1p-16), 1)) == "");
  // Behind a scale above 1 as well, and before one below it.
  CHECK(reason("fp16-eager", 2, product(40000, 4)) == "");
  CHECK(reason("fp16-eager", 2, product(70000, 4)) == kScore);
  CHECK(reason("fp16-eager", 2, product(20000, 0.25)) == kScore);
}

TEST_CASE("a maximum times log2 e may overflow in a fused argument") {
  const auto at_maximum = [](test::RowFixture& f) {
    f.row.dot = {0.8 * kLargest, 0.8 * kLargest};
    f.row.abs_dot = f.row.dot;
  };
  CHECK(reason(R"({"base":"fp32","softmax":{"arg":"fma_scaled"}})", 2, at_maximum) == kScore);
  CHECK(reason(R"({"base":"fp32","softmax":{"arg":"sub"}})", 2, at_maximum) == "");
}

TEST_CASE("a score may overflow between two biases, and below where the key has no weight") {
  const auto biases = [](double dot, double bias, double alibi) {
    return [=](test::RowFixture& f) {
      f.row.dot = {dot, 0};
      f.row.abs_dot = {std::abs(dot), 0};
      f.row.bias = {bias, 0};
      f.row.alibi = {alibi, 0};
    };
  };
  const char* const contract = "fp16-eager+biasstore";
  CHECK(reason(contract, 2, biases(20000, 20000, -20000)) == "");
  CHECK(reason(contract, 2, biases(20000, 60000, -40000)) == kScore);
  CHECK(reason(contract, 2, biases(-20000, -60000, 40000)) == kScore);
  CHECK(reason(contract, 2, biases(-20000, -1e9, 30000)) == "");
  CHECK(reason("fp32", 2, biases(20000, 60000, -40000)) == "");
}

TEST_CASE("a denominator of cast probabilities has their factor") {
  const std::string narrow =
      R"("p":{"scale":256},"l":{"u":"0x1p-11","eta":"0x1p-25","acc":{"model":"any_order",)"
      R"("u":"0x1p-24","products":"exact"}}})";
  const auto nothing = [](test::RowFixture&) {};
  const std::string full = "H1: the denominator may overflow";
  CHECK(reason(R"({"base":"fp16-flash+sumcast",)" + narrow, 240, nothing) == "");
  CHECK(reason(R"({"base":"fp16-flash+sumcast",)" + narrow, 260, nothing) == full);
  CHECK(reason(R"({"base":"fp16-flash",)" + narrow, 260, nothing) == "");
}

TEST_CASE("exponentials behind a lazy maximum may exceed its lag") {
  // 2^15 times (1 + 2^-11), and what the exponential errs by: 65504 is 2^16 (1 - 2^-11).
  const auto lazy = [](const std::string& exp_rel) {
    return R"({"base":"fp16-flash","p":{"scale":2},"softmax":{"rescale":"lazy","lazy_log2":15,)"
           R"("exp_rel":")" +
           exp_rel + R"("}})";
  };
  const auto nothing = [](test::RowFixture&) {};
  CHECK(reason(lazy("0x1p-21"), 2, nothing) == "H1: a probability may overflow");
  const std::string below = R"({"base":"fp16-flash","p":{"scale":1},"softmax":{"rescale":"lazy",)"
                            R"("lazy_log2":"0x1.ffep3","exp_rel":")";
  CHECK(reason(below + R"(0x1p-21"}})", 2, nothing) == "");
  const std::string cast = R"({"base":"fp16-flash","p":{"scale":1},"softmax":{"rescale":"lazy",)"
                           R"("lazy_log2":"0x1.fff7cep3"}})";  // 65490, or 65522 by the cast
  CHECK(reason(cast, 2, nothing) == "H1: a probability may overflow");
  CHECK(reason(below + R"(0x1p-8"}})", 2, nothing) == "H1: a probability may overflow");
}
