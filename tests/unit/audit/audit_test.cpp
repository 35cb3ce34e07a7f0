// Whole audits on small inputs: a loose rule lets made-up answers pass, a tight one does not, and
// what a rule never looks at it accepts.
#include <algorithm>
#include <cmath>

#include "oracle/audit/audit.hpp"
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
  CHECK(report.exact.accepted);
  REQUIRE(report.made_up.size() == 4);
  for (const RuleFinding& one : report.made_up) CHECK(one.accepted);
  for (const RuleFinding& one : report.findings) {
    INFO(one.id << ": " << one.words);
    CHECK((one.accepted || std::isinf(one.ratio)));  // NaN is refused by every rule
  }
}

TEST_CASE("a tight rule refuses what is made up, and the mask that is dropped") {
  const AuditReport report =
      audit_of(rule_of(R"({"out": [{"kind": "close", "atol": 1e-5, "rtol": 0.016}]})"));
  CHECK(report.exact.accepted);
  for (const RuleFinding& one : report.made_up) CHECK(!one.accepted);
  CHECK(!find(report, "MASK-DROP").accepted);
  CHECK(find(report, "MASK-DROP").refused_by == "out");
}

TEST_CASE("a rule that never looks at the LSE accepts every mistake in it") {
  const char* out_alone = R"({"out": [{"kind": "close", "atol": 1e-5, "rtol": 0.016}]})";
  const char* both = R"({"out": [{"kind": "close", "atol": 1e-5, "rtol": 0.016}],
                         "lse": [{"kind": "close", "atol": 1e-3, "rtol": 1e-3}]})";
  CHECK(find(audit_of(rule_of(out_alone)), "LSE-BASE").accepted);
  const AuditReport report = audit_of(rule_of(both));
  CHECK(report.exact.accepted);
  CHECK(!find(report, "LSE-BASE").accepted);
  CHECK(find(report, "LSE-BASE").refused_by == "lse");
}

TEST_CASE("an angle accepts every gain") {
  const AuditReport report = audit_of(rule_of(R"({"out": [{"kind": "cosine", "limit": 1e-3}]})"));
  CHECK(report.made_up.back().accepted);
  CHECK(!report.made_up.front().accepted);
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
  CHECK(find(loose, "DQ-ZERO").accepted);
  CHECK(!find(tight, "DQ-ZERO").accepted);
  CHECK(find(tight, "DQ-ZERO").refused_by == "dq");
  CHECK(!find(tight, "DOUT-IGNORED").accepted);
  CHECK(gradients(R"({"out": [{"kind": "close", "atol": 1}]})").findings.empty());
}

TEST_CASE("the report names the made-up answers and the classes") {
  const std::string text =
      to_text(audit_of(rule_of(R"({"out": [{"kind": "error ratio", "factor": 2}]})")));
  CHECK(text.find("zeros") != std::string::npos);
  CHECK(text.find("MASK-DROP") != std::string::npos);
}
