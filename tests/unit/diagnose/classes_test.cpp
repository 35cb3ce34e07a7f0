// Planted mistakes are named by the class they belong to; right answers are explained by nothing.
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

struct Planted {
  const char* id;
  const char* spec;
  std::function<void(const Problem&, PlainKernel&)> plant;
};

/// Positions are places in these cases.
const char* const kPlain = R"({"version": 1})";
const char* const kCausal = R"({"version": 1, "causal": "top_left"})";
const char* const kWindow = R"({"version": 1, "causal": "top_left", "window": [6, 0]})";
const char* const kBoth = R"({"version": 1, "window": [7, 2]})";
const char* const kCapped = R"({"version": 1, "causal": "top_left", "softcap": 1.5})";

const Planted kPlanted[] = {
    {"MASK-OFF1", kCausal,
     [](const Problem&, PlainKernel& k) {
       k.sees = [](Index, Index i, Index j) { return j <= i + 1; };
     }},
    {"MASK-OFF1", kCausal,
     [](const Problem&, PlainKernel& k) {
       k.sees = [](Index, Index i, Index j) { return j < i; };
     }},
    {"MASK-OFF1", kWindow,
     [](const Problem&, PlainKernel& k) {
       k.sees = [](Index, Index i, Index j) { return j <= i && i - j <= 5; };
     }},
    {"MASK-OFF1", kBoth,
     [](const Problem&, PlainKernel& k) {
       k.sees = [](Index, Index i, Index j) { return i - j <= 2 && j - i <= 7; };
     }},
    {"MASK-DROP", kCausal,
     [](const Problem&, PlainKernel& k) { k.sees = [](Index, Index, Index) { return true; }; }},
    {"MASK-DROP", kWindow,
     [](const Problem&, PlainKernel& k) {
       k.sees = [](Index, Index i, Index j) { return j <= i; };
     }},
    {"MASK-DROP", kCausal,
     [](const Problem&, PlainKernel& k) {  // the tile on the diagonal is not masked
       k.sees = [](Index, Index i, Index j) { return j / 8 <= i / 8; };
     }},
    {"SCALE", kPlain,
     [](const Problem&, PlainKernel& k) {
       k.score = [](Index, Index, Index, double dot) { return dot; };
     }},
    {"SCALE", kPlain,
     [](const Problem& p, PlainKernel& k) {
       const double right = 1 / std::sqrt(static_cast<double>(p.head_dim));
       k.score = [right](Index, Index, Index, double dot) { return 1.01 * right * dot; };
     }},
    {"SOFTCAP-ORDER", kCapped,
     [](const Problem& p, PlainKernel& k) {
       const double scale = 1 / std::sqrt(static_cast<double>(p.head_dim));
       k.score = [scale](Index, Index, Index, double dot) { return scale * dot; };
     }},
    {"SOFTCAP-ORDER", kCapped,
     [](const Problem& p, PlainKernel& k) {  // -infinity becomes -cap
       k.sees = [](Index, Index, Index) { return true; };
       k.score = [&p, before = k.score](Index h, Index i, Index j, double dot) {
         return j <= i ? before(h, i, j, dot) : -p.spec.softcap;
       };
     }},
    {"GQA-MAP", kPlain,
     [](const Problem& p, PlainKernel& k) {
       k.k_head = k.v_head = [&p](Index h) { return h % p.kv_heads; };
     }},
    {"GQA-MAP", kPlain,
     [](const Problem& p, PlainKernel& k) { k.k_head = [&p](Index h) { return h % p.kv_heads; }; }},
    {"LSE-BASE", kPlain,
     [](const Problem&, PlainKernel& k) { k.lse = [](double x) { return x / std::log(2.0); }; }},
    {"LSE-BASE", kPlain,
     [](const Problem&, PlainKernel& k) { k.lse = [](double x) { return -x; }; }},
    {"TAIL", kPlain,
     [](const Problem&, PlainKernel& k) {  // 21 = 2 * 8 + 5
       k.sees = [](Index, Index, Index j) { return j < 16; };
     }},
    {"BLOCK-SKIP", kPlain,
     [](const Problem&, PlainKernel& k) {
       k.sees = [](Index, Index, Index j) { return j / 4 != 2; };
     }},
    {"BLOCK-TWICE", kPlain,
     [](const Problem&, PlainKernel& k) {
       k.score = [before = k.score](Index h, Index i, Index j, double dot) {
         return before(h, i, j, dot) + (j / 4 == 1 ? std::log(2.0) : 0);
       };
     }},
    {"RING-STALE", kPlain, [](const Problem&, PlainKernel& k) {  // V of the next tile of seven
       k.v_row = [](Index j) { return (j + 7) % 21; };
     }}};

bool is_refused(const Diagnosed& result) { return result.report.verdict == Verdict::fail; }

}  // namespace

TEST_CASE("planted mistakes are named by their class, and the right answer by none") {
  for (const Planted& planted : kPlanted) {
    for (const DType type : {DType::f32, DType::bf16}) {
      if (type == DType::bf16 && &planted != &kPlanted[0] && &planted != &kPlanted[7]) continue;
      CaseBuilder builder = plain_case(planted.spec, kSizes, type);
      const Case input = builder.assemble();
      const std::string contract = type == DType::f32 ? "fp32" : "bf16-flash";
      const Diagnosed right = explain(builder, contract);
      INFO(planted.id << " " << planted.spec << " " << name(type));
      REQUIRE(right.report.verdict == Verdict::pass);
      CHECK(right.ids().empty());
      PlainKernel kernel(input.problem);
      planted.plant(input.problem, kernel);
      CaseBuilder wrong = builder;
      store(input.problem, kernel, wrong);
      const Diagnosed result = explain(wrong, contract);
      // A percent of the scale does not show in bf16 on scores as small as these.
      if (!is_refused(result) && type == DType::bf16) continue;
      CHECK(result.ids().count(planted.id) == 1);
    }
  }
}

TEST_CASE("bias, ALiBi and sinks read wrongly are named") {
  CaseBuilder builder = random_case(DType::f32, kSizes, 5);
  builder.set("bias", normal(DType::f32, {1, 4, 21, 21}, 8));
  builder.set("alibi_slopes", normal(DType::f32, {4}, 9));
  builder.set("sinks", normal(DType::f32, {4}, 10));
  builder.spec = kCausal;
  answer(builder, DType::f32);
  const Case input = builder.assemble();
  const Problem& p = input.problem;
  const auto planted = [&](const std::function<void(PlainKernel&)>& plant) {
    PlainKernel kernel(p);
    plant(kernel);
    CaseBuilder wrong = builder;
    store(p, kernel, wrong);
    return explain(wrong, "fp32");
  };
  CHECK(planted([](PlainKernel&) {}).report.verdict == Verdict::pass);
  CHECK(planted([&](PlainKernel& k) {
          k.sink = [&p](Index h) { return p.sinks.at(0, (h + 1) % 4, 0, 0); };
        })
            .ids()
            .count("SINK") == 1);
  CHECK(planted([](PlainKernel& k) { k.sink = nullptr; }).ids().count("SINK") == 1);
  CHECK(planted([&](PlainKernel& k) {
          k.score = [&p, before = k.score](Index h, Index i, Index j, double dot) {
            return before(h, i, j, dot) - p.bias.at(0, h, i, j) + p.bias.at(0, h, j, i);
          };
        })
            .ids()
            .count("BIAS-OFFSET") == 1);
  CHECK(planted([&](PlainKernel& k) {
          k.score = [&p, before = k.score](Index h, Index i, Index j, double dot) {
            const auto distance = static_cast<double>(std::abs(i - j));
            return before(h, i, j, dot) + 2 * p.alibi_slopes.at(0, h, 0, 0) * distance;
          };
        })
            .ids()
            .count("BIAS-OFFSET") == 1);
}

TEST_CASE("one spoilt element is explained by no function") {
  CaseBuilder builder = plain_case(kCausal, kSizes, DType::f32);
  set_value(builder, "out", 72, value_at(builder, "out", 72) + 0.5);
  const Diagnosed result = explain(builder, "fp32");
  REQUIRE(is_refused(result));
  CHECK(result.diagnosis.functions == 0);
  CHECK(result.diagnosis.refuted > 500);
}

TEST_CASE("a mistake beside one more spoilt element is refuted") {
  CaseBuilder builder = plain_case(kCausal, kSizes, DType::f32);
  const Case input = builder.assemble();
  PlainKernel kernel(input.problem);
  kernel.sees = [](Index, Index i, Index j) { return j <= i + 1; };
  store(input.problem, kernel, builder);
  REQUIRE(explain(builder, "fp32").ids().count("MASK-OFF1") == 1);
  set_value(builder, "out", 5, 3.25);
  CHECK(explain(builder, "fp32").diagnosis.functions == 0);
}

TEST_CASE("a fitted factor explains no answer of which fewer than three elements are refused") {
  const CaseBuilder right = plain_case(kPlain, kSizes, DType::f32);
  const auto gains = [](const Diagnosed& result) {
    std::int64_t count = 0;
    for (const Explanation& one : result.diagnosis.explanations) count += one.id == "GAIN";
    return count;
  };
  for (const Index refused : {Index{1}, Index{2}}) {
    CaseBuilder wrong = right;
    for (Index n = 0; n < refused; ++n)
      set_value(wrong, "out", n, 1.37 * value_at(wrong, "out", n));
    const Diagnosed result = explain(wrong, "fp32");
    CHECK(result.report.find(AnswerKind::out)->tally.failed == refused);
    CHECK(gains(result) == 0);
  }
  CaseBuilder all = right;
  for (Index n = 0; n < 4 * 21 * 6; ++n) set_value(all, "out", n, 1.37 * value_at(all, "out", n));
  CHECK(gains(explain(all, "fp32")) == 1);
}
