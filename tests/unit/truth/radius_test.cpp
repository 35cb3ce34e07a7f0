// Every radius is what the lemmas say, no less and no more: against literal_radius.hpp. That the
// exact numbers lie inside is for nesting_test.cpp; a bound that is a little too small or too large
// would not show there.
#include <algorithm>
#include <cmath>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/unit/truth/families.hpp"
#include "tests/unit/truth/literal_radius.hpp"

namespace ringproof::test {
namespace {

using namespace oracle;

/// The literal sums are rounded; what a guard of 2^-30 covers must still show.
constexpr double kRounding = 1e-11;

bool same(double a, double b, double relative = kRounding) {
  return std::abs(a - b) <= relative * std::max(a, b);
}

struct Sample {
  const char* what;
  Shape shape;
  Family family = Family::randn;
};

/// Problems without masks, one part of the score rule and of the arithmetic after the other.
std::vector<Sample> samples() {
  Shape plain;
  plain.queries = 3;
  plain.keys = 150;
  plain.head_dim = 16;
  plain.value_dim = 5;
  std::vector<Sample> all{{"three tiles", plain}};
  const auto add = [&](const char* what, auto change, Family family = Family::randn) {
    Shape shape = plain;
    change(shape);
    all.push_back({what, shape, family});
  };
  add("sums of products that are exact", [](Shape& s) { s.q_type = s.kv_type = DType::f8_e4m3; });
  add("values in slices", [](Shape& s) { s.q_type = s.kv_type = DType::bf16; });
  add("products that are not exact", [](Shape& s) { s.q_type = s.kv_type = DType::f64; });
  add("softcap", [](Shape& s) { s.softcap = 1.5; });
  add("bias", [](Shape& s) { s.bias = true; });
  add("ALiBi and a scale", [](Shape& s) {
    s.alibi = true;
    s.scale = -0.3;
  });
  add("a sink", [](Shape& s) { s.sinks = true; });
  add(
      "blocks that raise the reference", [](Shape& s) { s.keys = 600; }, Family::ascending);
  add(
      "values of zero", [](Shape&) {}, Family::value_zero);
  add(
      "queries of zero", [](Shape& s) { s.keys = 40; }, Family::query_zero);
  add(
      "queries of zero under a softcap",
      [](Shape& s) {
        s.keys = 40;
        s.softcap = 1.5;
      },
      Family::query_zero);
  add("sums that cancel", [](Shape& s) { s.scale = 1; });
  return all;
}

void put(const Tensor& tensor, std::int64_t row, std::int64_t column, double value) {
  encode(tensor.dtype, round_nearest(tensor.dtype, value),
         const_cast<std::byte*>(tensor.address(0, 0, row, column)));
}

/// Products of size 2^44 that cancel, for query 0, to a score of size 1: there the error of the sum
/// is more than what follows it.
void cancel(OwnedProblem& owned) {
  const Problem& p = owned.problem;
  std::mt19937_64 random(9);
  for (std::int64_t d = 0; d < 14; ++d) put(p.q, 0, d, 0x1p22 * normal(random));
  put(p.q, 0, 14, 0x1p22);
  put(p.q, 0, 15, 1);
  for (std::int64_t j = 0; j < p.keys; ++j) {
    long double sum = normal(random);
    for (std::int64_t d = 0; d < 14; ++d) {
      put(p.k, j, d, 0x1p22 * normal(random));
      sum += static_cast<long double>(p.q.at(0, 0, 0, d)) * p.k.at(0, 0, j, d);
    }
    put(p.k, j, 14, static_cast<double>(-sum * 0x1p-22L));
    sum += 0x1p22L * p.k.at(0, 0, j, 14);
    put(p.k, j, 15, static_cast<double>(-sum));
  }
}

/// A bias of `make_problem` without the keys that it hides.
void show_all_keys(OwnedProblem& owned, const Shape& shape) {
  if (!shape.bias) return;
  std::mt19937_64 random(7);
  std::vector<double> bias(static_cast<std::size_t>(shape.queries * shape.keys));
  for (double& value : bias) value = normal(random);
  owned.problem.bias = owned.tensor(DType::f32, {1, 1, shape.queries, shape.keys}, bias);
}

TEST_CASE("the radius of an answer is what the lemmas say, neither less nor more") {
  for (const Sample& sample : samples()) {
    INFO(sample.what);
    OwnedProblem owned = make_problem(sample.family, sample.shape, 3);
    show_all_keys(owned, sample.shape);
    const bool cancels = std::string(sample.what) == "sums that cancel";
    if (cancels) cancel(owned);
    for (const Precision precision : {Precision::fast, Precision::tight}) {
      const HeadTruth head(owned.problem, 0, 0, precision);
      for (std::int64_t i = 0; i < (cancels ? 1 : sample.shape.queries); ++i) {
        const HeadTruth::RowId id{0, i};
        RowTruth row;
        head.rows({&id, 1}, &row);
        REQUIRE(std::isfinite(row.lse.radius));
        const LiteralRow literal =
            literal_row(owned.problem, row, precision == Precision::tight, nullptr, nullptr);
        CHECK(same(row.lse.radius, literal.lse, 1e-9));
        CHECK(row.score_radius >= literal.score_excess * (1 - 0x1p-20));
        RowTruth exact;
        interval_row(owned.problem, 0, 0, i, 512, exact);
        for (std::size_t c = 0; c < row.out.size(); ++c) {
          const Certified &a = row.out[c], &b = exact.out[c];
          CHECK(std::abs((a.hi - b.hi) + (a.lo - b.lo)) + b.radius <= a.radius * (1 + 0x1p-40));
        }
        for (std::size_t j = 0; j < row.abs_dot.size(); ++j) {
          CHECK(same(row.abs_dot[j], literal.abs_dot[j]));
        }
        for (std::size_t c = 0; c < row.out.size(); ++c) {
          INFO(row.out[c].radius << " and literally " << literal.out[c]);
          CHECK(same(row.out[c].radius, literal.out[c]));
        }
      }
    }
  }
}

void check_gradients(const OwnedProblem& owned, const Upstream& upstream, Precision precision,
                     std::size_t at_once) {
  const Problem& p = owned.problem;
  const HeadTruth forward(p, 0, 0, precision);
  const HeadGradients head(p, upstream, forward);
  GradientSums sums(p);
  const bool tight = precision == Precision::tight;
  std::vector<RowGradients> all;
  std::vector<LiteralRow> literal;
  for (std::int64_t first = 0; first < p.queries; first += static_cast<std::int64_t>(at_once)) {
    std::vector<HeadTruth::RowId> ids;
    for (std::int64_t i = first;
         i < std::min(p.queries, first + static_cast<std::int64_t>(at_once)); ++i) {
      ids.push_back({0, i});
    }
    std::vector<RowTruth> rows(ids.size());
    std::vector<RowGradients> gradients(ids.size());
    head.rows(ids, rows.data(), gradients.data(), &sums);
    for (std::size_t n = 0; n < ids.size(); ++n) {
      REQUIRE(!gradients[n].failed);
      literal.push_back(literal_row(p, rows[n], tight, &upstream, &gradients[n]));
      const LiteralRow& said = literal.back();
      // The radius handed on holds the low word of D as well.
      CHECK(gradients[n].D_radius >= said.D * (1 - kRounding));
      CHECK(gradients[n].D_radius <= said.D * (1 + kRounding) + 0x1p-53 * std::abs(gradients[n].D));
      CHECK(same(gradients[n].dsink.radius, said.dsink));
      for (std::size_t d = 0; d < gradients[n].dq.size(); ++d) {
        CHECK(same(gradients[n].dq[d].radius, said.dq[d]));
      }
      for (std::size_t j = 0; j < gradients[n].dbias.size(); ++j) {
        CHECK(same(gradients[n].dbias[j].radius, said.dbias[j]));
      }
      all.push_back(std::move(gradients[n]));
    }
  }
  const LiteralKeys keys = literal_keys(p, all, literal, tight, at_once);
  for (std::int64_t j = 0; j < p.keys; ++j) {
    for (std::int64_t d = 0; d < p.head_dim; ++d) {
      CHECK(same(sums.dk(j, d).radius, keys.dk[static_cast<std::size_t>(j * p.head_dim + d)]));
    }
    for (std::int64_t c = 0; c < p.value_dim; ++c) {
      CHECK(same(sums.dv(j, c).radius, keys.dv[static_cast<std::size_t>(j * p.value_dim + c)]));
    }
  }
}

TEST_CASE("the radius of a gradient is what the lemmas say, neither less nor more") {
  for (const Sample& sample : samples()) {
    if (std::string(sample.what) == "sums that cancel") continue;  // its other rows escalate
    for (const bool given : {false, true}) {
      INFO(sample.what << (given ? ", isolated" : ""));
      OwnedProblem owned = make_problem(sample.family, sample.shape, 4);
      show_all_keys(owned, sample.shape);
      if (sample.shape.sinks) owned.problem.spec.lse_base = LseBase::two;
      const Upstream upstream = make_upstream(sample.family, sample.shape, 6, owned, given);
      for (const Precision precision : {Precision::fast, Precision::tight}) {
        check_gradients(owned, upstream, precision, 1);
        check_gradients(owned, upstream, precision, 3);
      }
    }
  }
}

}  // namespace
}  // namespace ringproof::test
