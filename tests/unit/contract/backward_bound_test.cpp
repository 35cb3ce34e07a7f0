// The bounds of gradients against the literal reading of the document, and what must hold whatever
// the formulas are.
#include <string>

#include "tests/support/catch.hpp"
#include "tests/unit/contract/literal_backward.hpp"

using namespace ringproof;
using namespace ringproof::oracle;

namespace {

const std::string kContracts[] = {
    "fp64",
    "fp32",
    "fp32-simd",
    "fp32-gpu",
    "tf32-flash",
    "fp16-flash",
    "bf16-flash",
    "fp8-e4m3-flash",
    "fp16-eager",
    "bf16-eager",
    "bf16-unfused",
    "bf16-io",
    "bf16-p16",
    "bf16-ring4",
    "bf16-ring4-lowp",
    "fp32-ring3",
    "fp16-ring3+sigmoid",
    "bf16-decode4",
    "bf16-flash+gacc32",
    "fp16-flash+gacc8",
    "fp16-io+gacc8",
    "bf16-flash+softcap",
    R"({"base":"bf16-flash","backward":{"p_from":"any","D_from":"any","ds_from_p":"cast"}})",
    R"({"base":"fp32","backward":{"p_from":"recompute","D_from":"p_dp"},"p":{"scale":3}})",
    R"({"base":"fp32","softmax":{"u":"0x1p-10","exp_rel":"0x1p-10","arg":"sub_log2"},)"
    R"("backward":{"ds_u":"0x1p-9","dp_store":["0x1p-9"],"grad_store":["0x1p-9"]}})",
};

struct Judged {
  std::vector<RowGradientBound> rows;
  GradientShape shape;
  GradientBoundSums sums;
  Judged(const Contract& contract, const test::GradientFixture& f)
      : rows(static_cast<std::size_t>(f.rows)), shape(contract, f.problem, 0, 0), sums(shape) {
    const BackwardHead head = f.head();
    GradientBoundSums other(shape);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      bound_row_backward(contract, f.problem, f.given(), head, f.truth[row], f.gradients[row],
                         rows[row], 2 * row < rows.size() ? &sums : &other);
    }
    sums.merge(other);
    sums.finish();
  }
  bool applicable() const {
    return std::all_of(rows.begin(), rows.end(),
                       [](const RowGradientBound& row) { return row.not_applicable.empty(); });
  }
};

/// `size`: the sum of absolute values behind the bound.
void check_agrees(double bound, long double literal, long double budget, long double size = 0) {
  if (std::isinf(bound)) {  // beyond 2^800 nothing is claimed, nor of sums that a type cannot hold
    CHECK((literal > 0x1p799L || size > 65504));
    return;
  }
  CHECK(bound >= static_cast<double>(literal));
  if (budget < 0.5L) CHECK(bound <= static_cast<double>(literal * (1 + 0x1p-28L)));
}

}  // namespace

TEST_CASE("the bounds of gradients are the document's, read literally") {
  std::int64_t compared = 0;
  for (std::string name : kContracts) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      const auto f = test::GradientFixture::random(seed);
      std::string text = name;
      if (f.isolated())
        text = R"({"base":)" + (name[0] == '{' ? name : '"' + name + '"') +
               R"(,"backward":{"mode":"isolated","p_from":"recompute","D_from":"out"}})";
      const Contract contract = read_contract(text, Spec{});
      CAPTURE(text, seed);
      const Judged judged(contract, f);
      if (!judged.applicable()) continue;
      const test::LiteralGradients literal = test::literal_gradients(contract, f);
      const long double budget = literal.largest_budget;
      for (std::size_t row = 0; row < judged.rows.size(); ++row) {
        CAPTURE(row);
        const RowGradientBound& bound = judged.rows[row];
        for (std::size_t d = 0; d < bound.dq.size(); ++d) {
          check_agrees(bound.dq[d], literal.dq[row][d], budget);
          ++compared;
        }
        for (std::size_t j = 0; j < bound.dbias.size(); ++j) {
          check_agrees(bound.dbias[j], literal.dbias[row][j], budget);
        }
        check_agrees(bound.dsink, literal.dsink[row], budget);
      }
      for (std::int64_t j = 0; j < f.problem.keys; ++j) {
        CAPTURE(j);
        const auto key = static_cast<std::size_t>(j);
        for (std::int64_t d = 0; d < f.problem.head_dim; ++d) {
          check_agrees(judged.sums.dk(j, d), literal.dk[key][static_cast<std::size_t>(d)], budget,
                       literal.dk_size[key]);
        }
        for (std::int64_t c = 0; c < f.problem.value_dim; ++c) {
          check_agrees(judged.sums.dv(j, c), literal.dv[key][static_cast<std::size_t>(c)], budget,
                       literal.dv_size[key]);
        }
      }
    }
  }
  CHECK(compared > 10000);
}

TEST_CASE("a key that no row sees has gradients that must be zero") {
  auto f = test::GradientFixture::random(3);
  f.mask.assign(static_cast<std::size_t>(f.problem.queries * f.problem.keys), 1);
  for (std::int64_t i = 0; i < f.problem.queries; ++i) {
    f.mask[static_cast<std::size_t>(i * f.problem.keys)] = 0;
  }
  f.problem.mask = {DType::boolean,
                    {1, 1, f.problem.queries, f.problem.keys},
                    {0, 0, f.problem.keys, 1},
                    reinterpret_cast<const std::byte*>(f.mask.data())};
  f.finish();
  const Judged judged(read_contract("bf16-flash", Spec{}), f);
  for (std::int64_t d = 0; d < f.problem.head_dim; ++d) CHECK(judged.sums.dk(0, d) == 0);
  for (std::int64_t c = 0; c < f.problem.value_dim; ++c) CHECK(judged.sums.dv(0, c) == 0);
}

TEST_CASE("a key left out changes nothing for the others") {
  const auto f = test::GradientFixture::random(11);
  const Contract contract = read_contract("bf16-flash", Spec{});
  const Judged all(contract, f);
  std::vector<std::uint8_t> wanted(static_cast<std::size_t>(f.problem.keys), 0);
  wanted.back() = 1;
  const GradientShape shape(contract, f.problem, 0, 0, wanted);
  GradientBoundSums sums(shape);
  const BackwardHead head = f.head();
  RowGradientBound bound;
  for (std::size_t row = 0; row < f.truth.size(); ++row) {
    bound_row_backward(contract, f.problem, f.given(), head, f.truth[row], f.gradients[row], bound,
                       &sums);
  }
  sums.finish();
  const std::int64_t last = f.problem.keys - 1;
  for (std::int64_t d = 0; d < f.problem.head_dim; ++d) {
    CHECK(sums.dk(last, d) == all.sums.dk(last, d));
  }
}
