// Statistics of tolerance rules, on numbers worked out by hand, and the rules as data.
#include <cmath>

#include "oracle/audit/rule.hpp"
#include "oracle/case/error.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace ringproof::oracle;
using Kind = Comparison::Kind;
using Numbers = std::vector<double>;

Comparison rule_of(Kind kind) {
  Comparison rule;
  rule.kind = kind;
  return rule;
}

}  // namespace

TEST_CASE("close: the worst element over what it is allowed") {
  Comparison rule = rule_of(Kind::close);
  rule.atol = 0.5;
  rule.rtol = 0.25;
  // Allowed 1 and 1.5; measured 0.5 and 3.
  CHECK(ratio_of(rule, Numbers{2.5, -7}, Numbers{2, -4}, {}) == 2);
  rule.fraction = 0.5;
  CHECK(ratio_of(rule, Numbers{2.5, -7}, Numbers{2, -4}, {}) == 0.5);
  rule.fraction = 0;
  CHECK(ratio_of(rule, Numbers{NAN}, Numbers{1}, {}) == HUGE_VAL);
  CHECK(ratio_of(rule, Numbers{-HUGE_VAL}, Numbers{-HUGE_VAL}, {}) == 0);
}

TEST_CASE("close: nothing is allowed where exact and atol are zero") {
  Comparison rule = rule_of(Kind::close);
  rule.rtol = 0.25;
  CHECK(ratio_of(rule, Numbers{1}, Numbers{0}, {}) == HUGE_VAL);
  CHECK(ratio_of(rule, Numbers{0}, Numbers{0}, {}) == 0);
}

TEST_CASE("error ratio: largest error over a multiple of another run's largest error") {
  Comparison rule = rule_of(Kind::error_ratio);
  rule.factor = 2;
  CHECK(ratio_of(rule, Numbers{1, 5}, Numbers{1, 2}, Numbers{0.5, 1}) == 1.5);
  rule.atol = 1;
  CHECK(ratio_of(rule, Numbers{1, 5}, Numbers{1, 2}, Numbers{0.5, 1}) == 1);
  CHECK(ratio_of(rule, Numbers{1, NAN}, Numbers{1, 2}, Numbers{0.5, 1}) == HUGE_VAL);
}

TEST_CASE("cosine, RMSE and NMSE") {
  Comparison rule = rule_of(Kind::cosine);
  rule.limit = 0.5;
  CHECK(ratio_of(rule, Numbers{3, 4}, Numbers{6, 8}, {}) == 0);  // a gain shows in no angle
  CHECK(ratio_of(rule, Numbers{4, -3}, Numbers{3, 4}, {}) == 2);
  CHECK(ratio_of(rule, Numbers{0, 0}, Numbers{3, 4}, {}) == HUGE_VAL);
  rule.kind = Kind::rmse;
  CHECK(ratio_of(rule, Numbers{1, 1, 1, 3}, Numbers{1, 1, 1, 1}, {}) == 2);
  rule.kind = Kind::nmse;
  CHECK(ratio_of(rule, Numbers{1, 1, 1, 3}, Numbers{1, 1, 1, 1}, {}) == 2);
}

TEST_CASE("every public rule says where it stands, and looks at something") {
  CHECK(public_rules().size() >= 6);
  for (const Rule& rule : public_rules()) {
    INFO(rule.name);
    CHECK(!rule.project.empty());
    CHECK(!rule.file.empty());
    CHECK(rule.version.size() >= 4);
    CHECK(!rule.compares.empty());
  }
}

TEST_CASE("a rule with an unknown key or word is refused by name") {
  const auto read = [](const char* text) { return read_rule(nlohmann::json::parse(text), "r"); };
  CHECK_NOTHROW(read(R"({"compares": {"out": [{"atol": 1}]}})"));
  for (const char* text :
       {R"([])", R"({})", R"({"compares": {}, "tolerance": 1})", R"({"compares": {"dbias": []}})",
        R"({"compares": {"out": {}}})", R"({"compares": {"out": [{"kind": "near"}]}})",
        R"({"compares": {"out": [{"atol": "1"}]}})", R"({"compares": {}, "inputs": {"keys": 0}})",
        R"({"compares": {}, "inputs": {"dtype": "I32"}})"}) {
    INFO(text);
    CHECK_THROWS_AS(read(text), BadInput);
  }
}
