// Forms of the catalogue are the functions that their words say: each against a plain kernel with
// the same mistake, element by element in binary64. And forms of too few digits are found.
#include "oracle/diagnose/catalogue.hpp"

#include "oracle/diagnose/expected_rows.hpp"
#include "tests/unit/diagnose/planted.hpp"

using namespace ringproof::oracle;
using namespace ringproof::test;

namespace {

using Index = std::int64_t;
constexpr Sizes kSizes{.batches = 1,
                       .heads = 4,
                       .kv_heads = 2,
                       .queries = 21,
                       .keys = 21,
                       .head_dim = 8,
                       .value_dim = 6};

/// Every part of the score rule at once, in binary64.
CaseBuilder full_case() {
  CaseBuilder builder = random_case(DType::f64, kSizes, 5);
  builder.set("bias", normal(DType::f64, {1, 4, 21, 21}, 6));
  builder.set("alibi_slopes", make_tensor(DType::f32, {4}, [](Index h) { return 0.5 / (1 + h); }));
  builder.set("sinks", make_tensor(DType::f64, {4}, [](Index h) { return 0.25 * h - 0.5; }));
  answer(builder, DType::f64);
  return builder;
}

/// What a kernel stores: [H, Nq, Dv] and [H, Nq].
struct Stored {
  std::vector<double> out, lse;
};
Stored stored(CaseBuilder builder) {
  Stored result;
  for (Index n = 0; n < 4 * 21 * 6; ++n) result.out.push_back(value_at(builder, "out", n));
  for (Index n = 0; n < 4 * 21; ++n) result.lse.push_back(value_at(builder, "lse", n));
  return result;
}

/// The same from the form of the catalogue that has these words.
Stored catalogued(const Case& input, const std::string& words, Index ranks = 1) {
  const Contract contract = read_contract("fp64", input.problem.spec);
  const Subject subject{input, contract, ranks, {}};
  for (const Family& family : mutant_catalogue(subject)) {
    for (std::size_t m = 0; m < family.mutants.size(); ++m) {
      if (family.mutants[m].words != words) continue;
      const auto solved = [&](const std::function<Row(const Row&)>& from, Index h, Index i) {
        const Row row = from ? from(Row{0, h, i}) : Row{0, h, i};
        std::string reason;
        const SolvedRows rows =
            solve(subject, family.setting, row.b, row.h, 0, {row.i}, Precision::fast);
        return expected_rows(family, rows, 0, reason).at(m);
      };
      Stored result;
      for (Index h = 0; h < 4; ++h) {
        for (Index i = 0; i < 21; ++i) {
          for (const Expected& x : solved(family.setting.out_from, h, i).out) {
            result.out.push_back(x.exact.hi);
          }
          result.lse.push_back(solved(family.setting.lse_from, h, i).lse.front().value.exact.hi);
        }
      }
      return result;
    }
  }
  FAIL("the catalogue has no form: " << words);
  return {};
}

void check_form(const CaseBuilder& builder, const char* words, const Stored& expected) {
  INFO(words);
  const Case input = builder.assemble();
  const Stored found = catalogued(input, words), right = stored(builder);
  double change = 0;
  for (std::size_t n = 0; n < found.out.size(); ++n) {
    CHECK(close(found.out[n], expected.out[n], 40));
    change = std::max(change, std::abs(found.out[n] - right.out[n]));
  }
  for (std::size_t n = 0; n < found.lse.size(); ++n) {
    CHECK(close(found.lse[n], expected.lse[n], 20));  // stored in binary32
    change = std::max(change, std::abs(found.lse[n] - right.lse[n]));
  }
  CHECK(change > 0x1p-10);
}

struct Form {
  const char* words;
  std::function<void(const Problem&, PlainKernel&)> plant;
};

/// The score rule with other numbers in the place of bias and slope.
auto score_with(const Problem& p, std::function<double(Index h, Index i, Index j)> bias,
                std::function<double(Index h)> slope) {
  return [&p, bias = std::move(bias), slope = std::move(slope)](Index h, Index i, Index j,
                                                                double dot) {
    return dot / std::sqrt(8.0) + bias(h, i, j) - slope(h) * static_cast<double>(std::abs(i - j));
  };
}
double slope_of(const Problem& p, Index h) { return p.alibi_slopes.at(0, h, 0, 0); }

const Form kForms[] = {
    {"the sign of the bias",
     [](const Problem& p, PlainKernel& k) {
       k.score = score_with(
           p, [&p](Index h, Index i, Index j) { return -p.bias.at(0, h, i, j); },
           [&p](Index h) { return slope_of(p, h); });
     }},
    {"the bias is transposed",
     [](const Problem& p, PlainKernel& k) {
       k.score = score_with(
           p, [&p](Index h, Index i, Index j) { return p.bias.at(0, h, j, i); },
           [&p](Index h) { return slope_of(p, h); });
     }},
    {"the bias of the next head",
     [](const Problem& p, PlainKernel& k) {
       k.score = score_with(
           p, [&p](Index h, Index i, Index j) { return p.bias.at(0, (h + 1) % 4, i, j); },
           [&p](Index h) { return slope_of(p, h); });
     }},
    {"the ALiBi slope of the next head",
     [](const Problem& p, PlainKernel& k) {
       k.score = score_with(
           p, [&p](Index h, Index i, Index j) { return p.bias.at(0, h, i, j); },
           [&p](Index h) { return slope_of(p, (h + 1) % 4); });
     }},
    {"head h reads KV head h mod Hkv",
     [](const Problem&, PlainKernel& k) { k.k_head = k.v_head = [](Index h) { return h % 2; }; }},
    {"the next KV head in V",
     [](const Problem&, PlainKernel& k) { k.v_head = [](Index h) { return (h / 2 + 1) % 2; }; }},
    {"the sink is counted 2 times",
     [](const Problem&, PlainKernel& k) {
       k.sink = [before = k.sink](Index h) { return before(h) + std::log(2.0); };
     }},
    {"the sink of the next head",
     [](const Problem& p, PlainKernel& k) {
       k.sink = [&p](Index h) { return p.sinks.at(0, (h + 1) % 4, 0, 0); };
     }},
    {"tile 2 (tiles of 8) is never absorbed",
     [](const Problem&, PlainKernel& k) { k.sees = [](Index, Index, Index j) { return j < 16; }; }},
    {"V of the next tile, around the end (tiles of 8)",
     [](const Problem&, PlainKernel& k) { k.v_row = [](Index j) { return (j + 8) % 21; }; }},
};

}  // namespace

TEST_CASE("forms of the catalogue are the functions that their words say") {
  const CaseBuilder builder = full_case();
  const Case input = builder.assemble();
  for (const Form& form : kForms) {
    PlainKernel kernel(input.problem);
    form.plant(input.problem, kernel);
    CaseBuilder wrong = builder;
    store(input.problem, kernel, wrong);
    check_form(builder, form.words, stored(wrong));
  }
}

TEST_CASE("keys of padding weigh as much as a sink, and channels that are left out nothing") {
  CaseBuilder builder = random_case(DType::f64, kSizes, 5);
  answer(builder, DType::f64);
  const Case input = builder.assemble();
  PlainKernel kernel(input.problem);
  kernel.sink = [](Index) { return std::log(11.0); };  // 32 - 21 keys of score 0
  CaseBuilder wrong = builder;
  store(input.problem, kernel, wrong);
  check_form(builder, "11 keys of padding are counted", stored(wrong));

  CaseBuilder without = builder;
  for (Index row = 0; row < 4 * 21; ++row) set_value(without, "q", row * 8 + 7, 0);
  answer(without, DType::f64);
  check_form(builder, "the last channel is not in the dot product", stored(without));
}

TEST_CASE("answers in another place are the right ones of that place") {
  const CaseBuilder builder = full_case();
  const Stored right = stored(builder);
  Stored wrong = right;
  for (std::size_t n = 0; n < wrong.lse.size(); ++n) {  // flat is h 21 + i, read as i 4 + h
    wrong.lse[n] = right.lse[n % 4 * 21 + n / 4];
  }
  check_form(builder, "lse: [B, N, H] in the place of [B, H, N]", wrong);
  wrong = right;
  for (std::size_t n = 0; n < wrong.out.size(); ++n) {
    const std::size_t h = n / 126, i = n / 6 % 21;
    wrong.out[n] = right.out[h * 126 + (20 - i) * 6 + n % 6];
  }
  check_form(builder, "out: the rows in reverse", wrong);
  wrong = right;
  for (std::size_t n = 0; n < wrong.out.size(); ++n) wrong.out[n] *= n % 6 < 4;
  check_form(builder, "the columns of out from 4 on are zero", wrong);
}

TEST_CASE("parts put together wrongly are sums of the parts with the weights that the words say") {
  CaseBuilder builder = random_case(DType::f64, kSizes, 5);
  answer(builder, DType::f64);
  const Case input = builder.assemble();
  const auto merged = [&](Index size, const std::function<double(double lse)>& weight) {
    std::vector<double> sum(4 * 21), out(4 * 21 * 6);
    for (Index part = 0; part * size < 21; ++part) {
      PlainKernel kernel(input.problem);
      kernel.sees = [=](Index, Index, Index j) { return j / size == part; };
      CaseBuilder one = builder;
      store(input.problem, kernel, one);
      const Stored of_part = stored(one);
      for (std::size_t n = 0; n < out.size(); ++n) {
        const double w = weight(of_part.lse[n / 6]);
        out[n] += w * of_part.out[n];
        sum[n / 6] += n % 6 == 0 ? w : 0;
      }
    }
    for (std::size_t n = 0; n < out.size(); ++n) out[n] /= sum[n / 6];
    return out;
  };
  const auto check_merge = [&](const char* words, Index ranks, const std::vector<double>& out) {
    INFO(words);
    const Stored found = catalogued(input, words, ranks);
    for (std::size_t n = 0; n < out.size(); ++n) CHECK(close(found.out[n], out[n], 18));
  };
  const auto base_two = [](double lse) { return std::exp2(lse); };
  const auto base_big = [](double lse) { return std::exp(lse / std::log(2.0)); };
  check_merge("parts are weighed by 2^lse (tiles of 8)", 1, merged(8, base_two));
  check_merge("parts are weighed by e^(lse log2 e) (tiles of 8)", 1, merged(8, base_big));
  check_merge("parts are weighed by 2^lse of ranks (contiguous, in rank order)", 3,
              merged(7, base_two));
}

TEST_CASE("exponentials and scores of too few digits are found by their size") {
  const CaseBuilder builder = plain_case(R"({"version": 1})", kSizes, DType::f32);
  const Case input = builder.assemble();
  const auto words_of = [&](const char* id, const std::function<double(double)>& change) {
    PlainKernel kernel(input.problem);
    kernel.score = [before = kernel.score, change](Index h, Index i, Index j, double dot) {
      return change(before(h, i, j, dot));
    };
    CaseBuilder wrong = builder;
    store(input.problem, kernel, wrong);
    for (const Explanation& one : explain(wrong, "fp32").diagnosis.explanations) {
      if (one.id == id) return one.words;
    }
    return std::string("nothing");
  };
  int turn = 0;
  const std::string exponentials =
      words_of("EXP-APPROX", [&](double s) { return s + (++turn % 2 == 0 ? 1 : -1) * 0x1p-12; });
  // 2^-12 of every weight, up and down: of their sums less is left.
  CHECK(exponentials.starts_with("exponentials with relative errors of 2^-1"));
  const auto rounded = [](DType type) {
    return [type](double s) { return round_nearest(type, s); };
  };
  CHECK(words_of("LOWP-S", rounded(DType::f16)) == "scores rounded to fp16");
  CHECK(words_of("LOWP-S", rounded(DType::bf16)) == "scores rounded to bf16");
}
