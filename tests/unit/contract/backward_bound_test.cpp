// The bounds of gradients against the literal reading of the document, and what must hold whatever
// the formulas are.
#include <limits>
#include <string>

#include "oracle/contract/assumptions.hpp"
#include "oracle/contract/cast_classes.hpp"
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
    R"({"base":"fp16-flash","p":{"scale":"0x1p-3"}})",
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
          check_agrees(bound.dq[d], literal.dq[row][d], budget, literal.dq_size[row]);
          ++compared;
        }
        for (std::size_t j = 0; j < bound.dbias.size(); ++j) {
          check_agrees(bound.dbias[j], literal.dbias[row][j], budget, literal.dq_size[row]);
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

TEST_CASE("how large numbers are before their casts is the document's (41), read literally") {
  std::int64_t compared = 0, of_delta = 0;
  for (const char* name : {"bf16-flash", "fp16-flash", "bf16-ring4", "bf16-flash+softcap"}) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      const auto f = test::GradientFixture::random(seed);
      const std::string text =
          f.isolated() ? R"({"base":")" + std::string(name) + R"(","backward":{"mode":"isolated"}})"
                       : name;
      const Contract contract = read_contract(text, Spec{});
      CAPTURE(text, seed);
      const test::LiteralGradients literal = test::literal_gradients(contract, f);
      if (literal.largest_budget > 0.5L) continue;
      const BackwardHead head = f.head();
      for (std::size_t row = 0; row < f.truth.size(); ++row) {
        RowGradientBound bound;
        RowMagnitudes found;
        bound_row_backward(contract, f.problem, f.given(), head, f.truth[row], f.gradients[row],
                           bound, nullptr, &found);
        if (!bound.not_applicable.empty() || f.truth[row].empty()) continue;
        CAPTURE(row);
        const test::LiteralMagnitudes& right = literal.magnitudes[row];
        const auto close = [](double a, long double b) {
          return std::abs(a - static_cast<double>(b)) <= 0x1p-28 * std::abs(static_cast<double>(b));
        };
        const auto first = static_cast<std::size_t>(f.truth[row].keys.first);
        for (std::size_t n = 0; n < found.weight.size(); ++n) {
          CHECK(close(found.score_gradient[n], right.S[first + n]));
          CHECK(close(found.probability[n], right.P[first + n]));
          CHECK(close(found.weight[n], right.w[first + n]));
          ++compared;
        }
        CHECK(close(found.after_query, expm1l(right.Aq)));
        CHECK(close(found.delta_norm, right.F));
        of_delta += right.F > 0;
        // What casts of the exact weights do to D, by the definition of b.
        double drift = 0;
        for (std::size_t n = 0; right.lists_delta && n < found.weight.size(); ++n) {
          if (f.truth[row].score[n] == -HUGE_VAL) continue;
          const double w = std::exp(f.truth[row].score[n] - f.truth[row].max_score);
          drift += f.truth[row].p[n] * f.gradients[row].dp[n] * cast_error(w, contract.p.u);
        }
        CHECK(std::abs(found.delta_drift - drift) <= 0x1p-40);
      }
    }
  }
  CHECK(compared > 1000);
  CHECK(of_delta > 100);
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

TEST_CASE("a row on which a gradient may overflow is not judged, and says which number does") {
  // dO of 2^30 beside values, weights and keys of about one: too large for fp16, not for fp32.
  const auto ordinary = [](const std::vector<double>& numbers) {
    double most = 0;
    for (const double x : numbers) most = std::max(most, std::abs(x));
    return most > 1 && most < 20;
  };
  auto f = test::GradientFixture::random(0);
  for (std::uint64_t seed = 1;
       f.isolated() || f.problem.keys < 5 || !ordinary(f.dout) || !ordinary(f.v); ++seed) {
    f = test::GradientFixture::random(seed);
  }
  const auto reason = [&](const char* backward) {
    const std::string text =
        R"({"base":"fp32","inputs":{"dtype":"fp16"},"backward":)" + std::string(backward) + "}";
    const Judged judged(read_contract(text, Spec{}), f);
    std::string first;
    for (const RowGradientBound& row : judged.rows) {
      if (first.empty()) first = row.not_applicable;
      if (first.empty() && !row.dq.empty() && std::isinf(row.dq[0])) first = "dq has no bound";
    }
    return first;
  };
  const char* const dp = R"({"dp_store":["0x1p-11"],"dp_store_eta":"0x1p-25"})";
  const char* const ds = R"({"ds_u":"0x1p-11","ds_eta":"0x1p-25"})";
  const char* const sum = R"({"ring":{"acc_u":"0x1p-11"},"grad_eta":"0x1p-25"})";
  // Partial sums that travel or wait in 16 bits.
  const char* const ring = R"({"ring":{"store_u":"0x1p-11","count":4}})";
  const char* const chunks = R"({"ring":{"count":{"keys":1,"rows":1}},"group_store_u":"0x1p-11"})";
  for (const char* backward : {"{}", dp, ds, sum, ring, chunks}) CHECK(reason(backward) == "");
  for (double& x : f.dout) x *= 0x1p30;
  f.finish();
  CHECK(reason("{}") == "");
  CHECK(reason(dp) == "H1: dP may overflow");
  CHECK(reason(ds) == "H1: dS may overflow");
  // A sum that may overflow has no bound, and leaves the other gradients theirs.
  for (const char* backward : {sum, ring, chunks}) {
    CHECK(reason(backward) == "dq has no bound");
  }
}

TEST_CASE("the difference of dP and D may overflow where both fit") {
  const GradientLimits limits = gradient_limits(read_contract("fp32", Spec{}));
  const double omega = std::numeric_limits<float>::max();
  CHECK(limits.products_fit(omega / 4, omega / 4, 0));
  CHECK_FALSE(limits.products_fit(0.75 * omega, omega / 4, 0));
  CHECK_FALSE(limits.products_fit(omega / 4, 0.75 * omega, 0));
  CHECK_FALSE(limits.products_fit(omega / 4, omega / 4, omega / 2));
}

TEST_CASE("where probabilities may vanish altogether no gradient of the row has a bound") {
  // Exponentials that may lose a half each: a denominator of nothing.
  const char* const text = R"({"base":"fp32","softmax":{"exp_eta":"0x1p-1"}})";
  for (const std::uint64_t seed : {1, 4, 11, 23}) {
    const auto f = test::GradientFixture::random(seed);
    if (f.isolated()) continue;
    CAPTURE(seed);
    const Judged judged(read_contract(text, Spec{}), f);
    for (std::size_t row = 0; row < judged.rows.size(); ++row) {
      const RowGradientBound& bound = judged.rows[row];
      if (!bound.not_applicable.empty() || f.truth[row].empty()) continue;
      for (const double one : bound.dq) CHECK(std::isinf(one));
      for (std::size_t n = 0; n < f.truth[row].score.size(); ++n) {
        if (f.truth[row].score[n] == -HUGE_VAL) continue;
        if (!bound.dbias.empty()) CHECK(std::isinf(bound.dbias[n]));
        const std::int64_t j = f.truth[row].keys.first + static_cast<std::int64_t>(n);
        CHECK(std::isinf(judged.sums.dk(j, 0)));
        CHECK(std::isinf(judged.sums.dv(j, 0)));
      }
      if (f.truth[row].has_sink) CHECK(std::isinf(bound.dsink));
    }
  }
}

TEST_CASE("a row without a bound leaves the keys that it sees without one, and no others") {
  const auto f = test::GradientFixture::random(11);
  const GradientShape shape(read_contract("bf16-flash", Spec{}), f.problem, 0, 0);
  const auto keys = static_cast<std::size_t>(f.problem.keys);
  std::vector<std::int64_t> index(keys);
  std::vector<double> none(keys, 1.0), some = none, columns(64, 1.0);
  for (std::size_t j = 0; j < keys; ++j) index[j] = static_cast<std::int64_t>(j);
  some[1] = HUGE_VAL;
  for (const bool of_query : {false, true}) {
    GradientBoundSums sums(shape);
    sums.add({0, f.problem.keys, index.data(), of_query ? some.data() : none.data(),
              of_query ? none.data() : some.data(), none.data(), none.data(), columns.data(),
              columns.data()});
    GradientBoundSums together(shape);
    together.merge(sums);  // the mark goes with the sums
    together.finish();
    for (std::int64_t j = 0; j < f.problem.keys; ++j) {
      CHECK(std::isinf(together.dk(j, 0)) == (j == 1));
      CHECK(std::isinf(together.dv(j, 0)) == (j == 1));
    }
  }
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
