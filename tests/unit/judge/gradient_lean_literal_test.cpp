// (41) of docs/contract.md read literally: element by element and pair by pair, with loops over
// whole heads, none of the judge's groups and nothing hoisted. How large the numbers before a cast
// may be is taken from the bounds, which the contract's own tests compare with the page.
#include <cmath>
#include <vector>

#include "oracle/contract/cast_classes.hpp"
#include "oracle/contract/probabilistic.hpp"
#include "tests/unit/judge/gradient_case.hpp"

using namespace ringproof::oracle;
using namespace ringproof::test;

namespace {

using Index = std::int64_t;
// 80 rows of each KV head: more than one of the groups in which the judge takes them.
constexpr Sizes kSizes{.batches = 2, .heads = 4, .kv_heads = 2, .queries = 40, .keys = 23};

/// What the answers round to.
struct AnswerFormat {
  DType dtype;
  double unit, smallest;  // rounding to nearest moves a number x by unit |x| + smallest at most
  double largest;
};
constexpr AnswerFormat kSingle{DType::f32, 0x1p-24, 0x1p-150, 0x1.fffffep127},
    kBrain{DType::bf16, 0x1p-8, 0x1p-134, 0x1.fep127}, kHalf{DType::f16, 0x1p-11, 0x1p-25, 65504};

/// What one row of the second head is: not judged for a reason, or of gradients so large that fp16
/// holds few of them. It is not in the first group of its KV head.
enum class Blind { no, query_of_nan, upstream_overflows, large };
constexpr Index kBlindRow = 66;

/// Some queries and keys occur more than once, in other heads and batches as well.
CaseBuilder repeating_case(const std::string& spec, Blind blind, DType dtype) {
  CaseBuilder builder = random_case(DType::bf16, kSizes, 20);
  const auto copy_row = [&](const char* name, Index from, Index to) {
    for (Index d = 0; d < kSizes.head_dim; ++d) {
      set_value(builder, name, to * kSizes.head_dim + d,
                value_at(builder, name, from * kSizes.head_dim + d));
    }
  };
  copy_row("q", 1, 5), copy_row("q", 1, 145), copy_row("q", 8, 30);
  copy_row("k", 2, 4), copy_row("k", 2, 55), copy_row("k", 31, 32);
  for (Index d = 0; d < kSizes.head_dim; ++d) {  // zeros are equal, whatever their sign
    set_value(builder, "q", 6 * kSizes.head_dim + d, d % 2 == 0 ? 0.0 : -0.0);
    set_value(builder, "q", 9 * kSizes.head_dim + d, d % 2 == 0 ? -0.0 : 0.0);
  }
  if (blind == Blind::query_of_nan) set_value(builder, "q", kBlindRow * kSizes.head_dim, NAN);
  builder.spec = spec;
  builder.set("dout", normal(DType::bf16, {2, 4, kSizes.queries, 3}, 31));
  const bool large = blind == Blind::upstream_overflows || blind == Blind::large;
  for (Index c = 0; large && c < kSizes.value_dim; ++c) {
    set_value(builder, "dout", kBlindRow * kSizes.value_dim + c,
              blind == Blind::large ? 0x1p20 : 0x1p127);
  }
  builder.set("dlse", normal(DType::f32, {2, 4, kSizes.queries}, 32));
  std::mt19937_64 generator(33);
  std::uniform_real_distribution<double> draw(-0x1p-9, 0x1p-9);
  const auto answer = [&](const char* name, Index heads, Index rows, Index columns) {
    builder.set(name, make_tensor(dtype, {2, heads, rows, columns},
                                  [&](Index) { return round_nearest(dtype, draw(generator)); }));
  };
  answer("dq", 4, kSizes.queries, 4);
  answer("dk", 2, kSizes.keys, 4), answer("dv", 2, kSizes.keys, 3);
  return builder;
}

/// How often row (b, h, n) of a tensor occurs.
double occurrences(const Tensor& tensor, Index b, Index h, Index n) {
  double count = 0;
  for (Index row = 0; row < tensor.shape[0] * tensor.shape[1] * tensor.shape[2]; ++row) {
    const Index i = row % tensor.shape[2], head = row / tensor.shape[2];
    bool same = true;
    for (Index d = 0; d < tensor.shape[3]; ++d) {
      same = same && tensor.at(b, h, n, d) ==
                         tensor.at(head / tensor.shape[1], head % tensor.shape[1], i, d);
    }
    count += same;
  }
  return count;
}

/// One row with its bounds, under the contract and without the listed roundings.
struct BoundedRow {
  Index h, i;
  RowTruth truth;
  RowGradients gradients;
  RowGradientBound bound, exact_bound;
  RowMagnitudes cast, exact;
  bool known = true;
  double p(std::size_t n) const { return truth.p[n]; }
  double f(std::size_t n) const { return gradients.factor.empty() ? 1 : gradients.factor[n]; }
};

class LiteralLean {
 public:
  LiteralLean(const Case& input, const Contract& contract, const AnswerFormat& format)
      : input_(input),
        format_(format),
        p_(input.problem),
        contract_(contract),
        exact_contract_(without_gradient_casts(contract)) {
    for (Index b = 0; b < kSizes.batches; ++b) {
      for (Index kv = 0; kv < kSizes.kv_heads; ++kv) add_head(b, kv);
    }
  }

  Suspicion dq, dk, dv;

 private:
  void add_head(Index b, Index kv) {
    const Upstream upstream{input_.dout, input_.dlse, {}};
    const HeadTruth forward(p_, b, kv, Precision::fast);
    const HeadGradients backward(p_, upstream, forward);
    const BackwardHead head(p_, backward.keys(), backward.keys_stride(), forward.values(),
                            forward.values_stride());
    const GradientShape shape(contract_, p_, b, kv), exact_shape(exact_contract_, p_, b, kv);
    GradientBoundSums bounds(shape), exact_bounds(exact_shape);
    GradientSums sums(p_);
    std::vector<BoundedRow> rows;
    std::vector<char> doubtful(kSizes.keys);
    for (Index h = kv * p_.group(); h < (kv + 1) * p_.group(); ++h) {
      for (Index i = 0; i < kSizes.queries; ++i) {
        BoundedRow& row = rows.emplace_back(BoundedRow{h, i, {}, {}, {}, {}, {}, {}});
        const HeadTruth::RowId id{h, i};
        backward.rows({&id, 1}, &row.truth, &row.gradients, &sums);
        row.known = row.gradients.not_applicable.empty();
        if (row.known) {
          bound_row_backward(contract_, p_, {}, head, row.truth, row.gradients, row.bound, &bounds,
                             &row.cast);
          row.known = row.bound.not_applicable.empty();
        }
        for (Index j = 0; !row.known && j < kSizes.keys; ++j) {
          if (visible(p_, b, h, i, j)) doubtful[static_cast<std::size_t>(j)] = 1;
        }
        if (!row.known) continue;
        bound_row_backward(exact_contract_, p_, {}, head, row.truth, row.gradients, row.exact_bound,
                           &exact_bounds, &row.exact);
      }
    }
    bounds.finish();
    exact_bounds.finish();
    std::vector<double> sign_k(kSizes.keys * 4), sign_v(kSizes.keys * 3);
    for (Index j = 0; j < kSizes.keys; ++j) {
      if (doubtful[static_cast<std::size_t>(j)] != 0) continue;
      for (Index d = 0; d < 4; ++d) {
        sign_k[static_cast<std::size_t>(j * 4 + d)] =
            add_element(input_.find(AnswerKind::dk)->tensor.at(b, kv, j, d), sums.dk(j, d),
                        bounds.dk(j, d), exact_bounds.dk(j, d), dk);
      }
      for (Index c = 0; c < 3; ++c) {
        sign_v[static_cast<std::size_t>(j * 3 + c)] =
            add_element(input_.find(AnswerKind::dv)->tensor.at(b, kv, j, c), sums.dv(j, c),
                        bounds.dv(j, c), exact_bounds.dv(j, c), dv);
      }
    }
    for (const BoundedRow& row : rows) {
      if (!row.known) continue;
      add_query(b, kv, row, head);
      add_keys(b, kv, row, shape, sign_k, sign_v);
    }
  }

  double add_element(double answer, const Certified& exact, double bound, double exact_bound,
                     Suspicion& found) const {
    const double x = exact.hi, g = x > 0 ? 1 : x < 0 ? -1 : 0;
    if (g == 0 || !(std::abs(x) + bound < format_.largest)) return 0;
    ++found.elements;
    found.lean += g * (answer - x);
    found.remainder += exact_bound + format_.smallest;
    found.variance += std::pow(format_.unit * (std::abs(x) + bound), 2);
    found.drift += g * (round_nearest(format_.dtype, x) - x);
    found.drift_scale += std::pow(format_.unit * x, 2);
    return g;
  }

  /// V and b of one row: `y` and `Y` of every key with what A grows them by.
  struct Pair {
    double y = 0, Y = 0, growth = 0;
    double c() const { return std::abs(y) + growth * Y; }
  };
  void add_scores(Index b, Index kv, const BoundedRow& row, const std::vector<Pair>& pairs,
                  double scale, Suspicion& found) const {
    double casts = 0, along = 0, beyond = 0, drift = 0;
    for (std::size_t n = 0; n < pairs.size(); ++n) {
      const Index j = row.truth.keys.first + static_cast<Index>(n);
      if (!visible(p_, b, row.h, row.i, j)) continue;
      const Pair& x = pairs[n];
      const double u = contract_.backward.ds_u, ds = row.gradients.ds[n];
      casts += occurrences(p_.k, b, kv, j) * std::pow(u * row.cast.score_gradient[n] * x.c(), 2);
      along += row.p(n) * row.f(n) * x.y;
      beyond += (row.exact.weight[n] - row.p(n) * row.f(n)) * std::abs(x.y) +
                row.exact.weight[n] * x.growth * x.Y;
      drift += ds * cast_error(std::abs(ds), u) * x.y;
    }
    const double of_delta = row.cast.delta_norm * (std::abs(along) + beyond);
    const double V =
        occurrences(p_.q, b, row.h, row.i) * scale * scale * (casts + of_delta * of_delta);
    found.variance += V;
    found.drift_scale += V;
    found.drift += scale * (drift - along * row.cast.delta_drift);
  }

  void add_query(Index b, Index kv, const BoundedRow& row, const BackwardHead& head) {
    std::vector<double> g(4);
    for (Index d = 0; d < 4; ++d) {
      const auto at = static_cast<std::size_t>(d);
      g[at] = add_element(input_.find(AnswerKind::dq)->tensor.at(b, row.h, row.i, d),
                          row.gradients.dq[at], row.bound.dq[at], row.exact_bound.dq[at], dq);
    }
    std::vector<Pair> pairs(row.truth.score.size());
    for (std::size_t n = 0; n < pairs.size(); ++n) {
      const Index j = row.truth.keys.first + static_cast<Index>(n);
      pairs[n].growth = row.cast.after_query;
      for (Index d = 0; d < 4; ++d) {
        const double k = head.keys[j * head.keys_stride + d];
        pairs[n].y += g[static_cast<std::size_t>(d)] * k;
        pairs[n].Y += std::abs(g[static_cast<std::size_t>(d)] * k);
      }
    }
    add_scores(b, kv, row, pairs, scale() * (1 + row.cast.after_query), dq);
  }

  void add_keys(Index b, Index kv, const BoundedRow& row, const GradientShape& shape,
                const std::vector<double>& sign_k, const std::vector<double>& sign_v) {
    std::vector<Pair> of_query(row.truth.score.size());
    double V = 0, drift = 0;
    for (std::size_t n = 0; n < of_query.size(); ++n) {
      const Index j = row.truth.keys.first + static_cast<Index>(n);
      if (!visible(p_, b, row.h, row.i, j)) continue;
      Pair of_upstream{.growth = shape.relative_upstream()[j]};
      of_query[n].growth = shape.relative_query()[j];
      for (Index d = 0; d < 4; ++d) {
        const double term =
            sign_k[static_cast<std::size_t>(j * 4 + d)] * p_.q.at(b, row.h, row.i, d);
        of_query[n].y += term;
        of_query[n].Y += std::abs(term);
      }
      for (Index c = 0; c < 3; ++c) {
        const double term =
            sign_v[static_cast<std::size_t>(j * 3 + c)] * input_.dout.at(b, row.h, row.i, c);
        of_upstream.y += term;
        of_upstream.Y += std::abs(term);
      }
      const double u = contract_.p.u;
      V +=
          occurrences(p_.k, b, kv, j) * std::pow(u * row.exact.probability[n] * of_upstream.c(), 2);
      drift += row.p(n) * cast_error(row.p(n), u) * of_upstream.y;
    }
    add_scores(b, kv, row, of_query, scale(), dk);
    const double repeated = occurrences(p_.q, b, row.h, row.i) * V;
    dv.variance += repeated;
    dv.drift_scale += repeated;
    dv.drift += drift;
  }

  double scale() const { return p_.spec.scale.value_or(0.5); }

  const Case& input_;
  const AnswerFormat& format_;
  const Problem& p_;
  const Contract& contract_;
  Contract exact_contract_;
};

}  // namespace

namespace {

void compare_leans(const std::string& spec, Blind blind, const AnswerFormat& format) {
  const CaseBuilder builder = repeating_case(spec, blind, format.dtype);
  const Case input = builder.assemble();
  const Contract contract = read_contract("bf16-flash", input.problem.spec);
  const LiteralLean literal(input, contract, format);
  CheckOptions options;
  options.probabilistic = true;
  options.only = {AnswerKind::dq, AnswerKind::dk, AnswerKind::dv};
  const Report report = judge(builder, "bf16-flash", options);
  REQUIRE(report.probabilistic->gradients.size() == 3);
  const Suspicion* expected[] = {&literal.dq, &literal.dk, &literal.dv};
  for (std::size_t n = 0; n < 3; ++n) {
    INFO("gradient " << n);
    const GradientLean& lean = report.probabilistic->gradients[n];
    const Suspicion &found = lean.found, &right = *expected[n];
    const auto close = [](double a, double b) {
      return std::abs(a - b) <= 0x1p-26 * std::abs(b) + 0x1p-43;
    };
    CHECK(found.elements == right.elements);
    CHECK(std::abs(found.variance - right.variance) <= 0x1p-26 * right.variance);
    CHECK(std::abs(found.drift_scale - right.drift_scale) <= 0x1p-26 * right.drift_scale);
    CHECK(close(found.remainder, right.remainder));
    CHECK(close(found.lean, right.lean));
    CHECK(close(found.drift, right.drift));
    const double lambda = azuma_factor(contract.prob_failure, 3);
    CHECK(close(lean.bound, lambda * std::sqrt(found.variance) + found.remainder));
  }
}

}  // namespace

TEST_CASE("what gradients lean to, and may lean to, is the document's, read literally") {
  const char* specs[] = {R"({"version": 1})", R"({"version": 1, "causal": "bottom_right"})",
                         R"({"version": 1, "causal": "top_left", "softcap": 1.5, "scale": 0.7})",
                         R"({"version": 1, "causal": "top_left", "window": [7, -1]})"};
  for (const char* spec : specs) {
    for (const Blind blind :
         {Blind::no, Blind::query_of_nan, Blind::upstream_overflows, Blind::large}) {
      // Beside so large a number the truth of keys that its row does not see has a larger radius.
      if (blind == Blind::upstream_overflows && spec != specs[0]) continue;
      for (const AnswerFormat& format : {kSingle, kBrain, kHalf}) {
        if ((blind == Blind::large) != (format.dtype == DType::f16)) continue;
        INFO(spec << ", blind " << static_cast<int>(blind) << ", unit " << format.unit);
        compare_leans(spec, blind, format);
      }
    }
  }
}
