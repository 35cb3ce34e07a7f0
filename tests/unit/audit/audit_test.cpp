// Whole audits on small inputs: a loose rule lets made-up answers pass, a tight one does not, and
// what a rule never looks at it accepts.
#include <algorithm>
#include <cmath>

#include "oracle/audit/audit.hpp"
#include "oracle/audit/low_precision.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace ringproof::oracle;

Rule rule_of(const char* compares) {
  const std::string text =
      R"({"name": "test", "inputs": {"dtype": "BF16", "keys": 48, "head_dim": 16,
    "causal": "top_left", "ranks": 2}, "compares": )" +
      std::string(compares) + "}";
  return read_rule(nlohmann::json::parse(text), "test");
}

AuditReport audit_of(const Rule& rule) {
  const GeneratedCase inputs = rule_inputs(rule, 1);
  const Case problem = inputs.as_case();
  AuditOptions options;
  options.threads = 1;
  options.rows = 24;
  options.forms_per_class = 1;
  return audit(problem, read_contract("bf16-flash", inputs.recipe.spec), rule, options);
}

const RuleFinding& find(const AuditReport& report, const std::string& id) {
  const auto place = std::find_if(report.findings.begin(), report.findings.end(),
                                  [&](const RuleFinding& one) { return one.id == id; });
  REQUIRE(place != report.findings.end());
  return *place;
}

}  // namespace

TEST_CASE("a loose rule accepts zeros, the mean of V and a gain") {
  const AuditReport report = audit_of(rule_of(R"({"out": [{"kind": "close", "atol": 8}]})"));
  CHECK(report.exact.accepted());
  REQUIRE(report.made_up.size() == 4);
  for (const RuleFinding& one : report.made_up) CHECK(one.accepted());
  for (const RuleFinding& one : report.findings) {
    INFO(one.id << ": " << one.words);
    CHECK((one.accepted() || std::isinf(one.ratio)));  // NaN is refused by every rule
  }
}

TEST_CASE("a tight rule refuses what is made up, and the mask that is dropped") {
  const AuditReport report =
      audit_of(rule_of(R"({"out": [{"kind": "close", "atol": 1e-5, "rtol": 0.016}]})"));
  CHECK(report.exact.accepted());
  for (const RuleFinding& one : report.made_up) CHECK(!one.accepted());
  CHECK(!find(report, "MASK-DROP").accepted());
  CHECK(find(report, "MASK-DROP").refused_by == "out");
}

TEST_CASE("a rule that never looks at the LSE accepts every mistake in it") {
  const char* out_alone = R"({"out": [{"kind": "close", "atol": 1e-5, "rtol": 0.016}]})";
  const char* both = R"({"out": [{"kind": "close", "atol": 1e-5, "rtol": 0.016}],
                         "lse": [{"kind": "close", "atol": 1e-3, "rtol": 1e-3}]})";
  CHECK(find(audit_of(rule_of(out_alone)), "LSE-BASE").accepted());
  const AuditReport report = audit_of(rule_of(both));
  CHECK(report.exact.accepted());
  CHECK(!find(report, "LSE-BASE").accepted());
  CHECK(find(report, "LSE-BASE").refused_by == "lse");
}

TEST_CASE("an angle accepts every gain") {
  const AuditReport report = audit_of(rule_of(R"({"out": [{"kind": "cosine", "limit": 1e-3}]})"));
  CHECK(report.made_up.back().accepted());
  CHECK(!report.made_up.front().accepted());
}

TEST_CASE("a loose rule accepts gradients of zero, a tight one does not") {
  const auto gradients = [](const char* compares) {
    const Rule rule = rule_of(compares);
    const GeneratedCase inputs = rule_inputs(rule, 1);
    const Case problem = inputs.as_case();
    AuditReport report;
    AuditOptions options;
    options.forms_per_class = 3;
    audit_gradients(problem, read_contract("bf16-flash", inputs.recipe.spec), rule, options,
                    report);
    return report;
  };
  const AuditReport loose = gradients(R"({"dq": [{"kind": "close", "atol": 64}]})");
  const AuditReport tight =
      gradients(R"({"dq": [{"kind": "close", "atol": 1e-5, "rtol": 0.016}]})");
  CHECK(find(loose, "DQ-ZERO").accepted());
  CHECK(!find(tight, "DQ-ZERO").accepted());
  CHECK(find(tight, "DQ-ZERO").refused_by == "dq");
  CHECK(!find(tight, "DOUT-IGNORED").accepted());
  CHECK(gradients(R"({"out": [{"kind": "close", "atol": 1}]})").findings.empty());
}

TEST_CASE("a mistake of the forward pass is left open where gradients are compared") {
  const auto report_of = [](const char* compares, bool backward) {
    const Rule rule = rule_of(compares);
    AuditReport report = audit_of(rule);
    if (backward) {
      const GeneratedCase inputs = rule_inputs(rule, 1);
      audit_gradients(inputs.as_case(), read_contract("bf16-flash", inputs.recipe.spec), rule, {},
                      report);
    }
    return report;
  };
  const auto made_up = [](const AuditReport& report, const std::string& words) {
    for (const RuleFinding& one : report.made_up) {
      if (one.words == words) return one;
    }
    return RuleFinding{};
  };
  const char* loose = R"({"out": [{"atol": 8}], "dq": [{"atol": 64}], "dv": [{"atol": 64}]})";
  const std::vector<AnswerKind> gradients{AnswerKind::dq, AnswerKind::dv};
  // Not computed at all without audit_gradients, as where a case has no dout.
  const AuditReport forward = report_of(loose, false);
  CHECK(forward.exact.open());
  for (const RuleFinding& one : forward.made_up) CHECK(one.not_computed == gradients);
  const AuditReport both = report_of(loose, true);
  CHECK(both.exact.accepted());
  CHECK(made_up(both, "zeros").accepted());
  CHECK(made_up(both, "0.9 of the answer").accepted());
  CHECK(made_up(both, "the first row of V").open());
  CHECK(made_up(both, "the mean of the visible values").open());
  CHECK(find(both, "SCALE").open());
  CHECK(find(both, "SCALE").not_computed == gradients);
  CHECK(find(both, "BLOCK-SKIP").open());
  CHECK(find(both, "DQ-ZERO").accepted());
  CHECK(to_text(both).find("SCALE: accepts 0 of 1 forms, leaves open 1") != std::string::npos);
  CHECK(to_text(both).find("leaves open the first row of V: ratio") != std::string::npos);
  CHECK(to_text(both).find("dq, dv not computed") != std::string::npos);

  // One tensor is enough to refuse.
  const AuditReport tight = report_of(R"({"out": [{"atol": 1e-5}], "dq": [{"atol": 64}]})", true);
  CHECK(find(tight, "SCALE").refused());
  CHECK(find(tight, "DQ-ZERO").refused());  // so is the exact answer, rounded
  CHECK(tight.exact.refused());

  // Where gradients alone are compared, the forward pass is not looked at.
  const AuditReport alone = report_of(R"({"dq": [{"atol": 0.01, "rtol": 0.01}]})", true);
  REQUIRE(alone.made_up.size() == 2);
  CHECK(made_up(alone, "zeros").refused());
  CHECK(made_up(alone, "zeros").refused_by == "dq");
  CHECK(made_up(alone, "0.9 of the answer").refused());
  CHECK(made_up(alone, "0.9 of the answer").ratio < made_up(alone, "zeros").ratio);
  CHECK(alone.exact.accepted());
  for (const RuleFinding& one : alone.findings) {
    INFO(one.id);
    CHECK(one.id != "SCALE");
    CHECK(one.id != "BLOCK-SKIP");
    CHECK(one.not_computed.empty());
  }
}

TEST_CASE("the report names the made-up answers and the classes") {
  const std::string text =
      to_text(audit_of(rule_of(R"({"out": [{"kind": "error ratio", "factor": 2}]})")));
  CHECK(text.find("zeros") != std::string::npos);
  CHECK(text.find("MASK-DROP") != std::string::npos);
}

TEST_CASE("a report in words counts the forms of each class, and lists those that are accepted") {
  AuditReport report;
  report.rule = "rule";
  report.rows = 2;
  report.rows_total = 8;
  report.exact = {.id = "", .words = "the answer", .ratio = 0.5};
  report.made_up = {{.id = "", .words = "zeros", .ratio = HUGE_VAL, .refused_by = "out"}};
  report.findings = {{.id = "A", .words = "one", .ratio = 0.25},
                     {.id = "A", .words = "two", .ratio = 4, .refused_by = "out"},
                     {.id = "B", .words = "three", .ratio = 8, .refused_by = "out"},
                     {.id = "B", .words = "four", .ratio = 0.5, .not_computed = {AnswerKind::dq}}};
  CHECK(to_text(report) ==
        "rule: 2 of 8 rows; the ratio is measured over allowed\n"
        "  accepts the answer: ratio 0.5\n"
        "  refuses zeros: ratio inf\n"
        "  A: accepts 1 of 2 forms, smallest ratio 0.25\n"
        "  B: accepts 0 of 2 forms, leaves open 1, smallest ratio 0.5\n"
        "    A: one: ratio 0.25\n"
        "    B: four: ratio 0.5, dq not computed\n");
}

TEST_CASE("an eager run in the type of the inputs rounds scores, probabilities and outputs") {
  const Rule rule = rule_of(R"({"out": [{"kind": "close"}]})");
  const GeneratedCase inputs = rule_inputs(rule, 1);
  const Case problem = inputs.as_case();
  const Problem& p = problem.problem;
  const auto bf16 = [](double x) { return round_nearest(DType::bf16, x); };
  for (const std::int64_t i : {0, 7, 47}) {
    const std::vector<double> row = low_precision_row(p, 0, 0, i);
    std::vector<double> weight(static_cast<std::size_t>(i + 1));
    double sum = 0, largest = -HUGE_VAL;
    for (std::int64_t j = 0; j <= i; ++j) {
      double dot = 0;
      for (std::int64_t d = 0; d < 16; ++d) dot += p.q.at(0, 0, i, d) * p.k.at(0, 0, j, d);
      weight[static_cast<std::size_t>(j)] = bf16(bf16(dot) * 0.25);
      largest = std::max(largest, weight[static_cast<std::size_t>(j)]);
    }
    for (double& x : weight) sum += x = std::exp(x - largest);
    for (std::int64_t c = 0; c < 16; ++c) {
      double out = 0;
      for (std::int64_t j = 0; j <= i; ++j) {
        out += bf16(weight[static_cast<std::size_t>(j)] / sum) * p.v.at(0, 0, j, c);
      }
      CHECK(row[static_cast<std::size_t>(c)] == bf16(out));
    }
  }
}

TEST_CASE("inputs are drawn as the rule's own test draws them") {
  const auto largest = [](const char* distribution) {
    const std::string text =
        std::string(R"({"name": "test", "inputs": {"dtype": "F32", "keys": 48, "head_dim": 16,
    "distribution": ")") +
        distribution + R"("}, "compares": {"out": [{"atol": 1}]}})";
    const GeneratedCase inputs = rule_inputs(read_rule(nlohmann::json::parse(text), "test"), 1);
    const Case problem = inputs.as_case();
    double most = 0, least = 0;
    for (std::int64_t i = 0; i < 48; ++i) {
      for (std::int64_t d = 0; d < 16; ++d) {
        most = std::max(most, problem.problem.q.at(0, 0, i, d));
        least = std::min(least, problem.problem.q.at(0, 0, i, d));
      }
    }
    return std::pair(least, most);
  };
  CHECK(largest("normal").second > 2);
  CHECK(largest("clamped") == std::pair(-1.0, 1.0));
  CHECK(largest("uniform").first == 0);
  CHECK(largest("uniform").second < 1);
}
