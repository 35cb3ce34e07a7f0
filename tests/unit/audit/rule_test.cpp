// Statistics of tolerance rules, on numbers worked out by hand, and the rules as data.
#include <algorithm>
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

struct Refused {
  const char *text, *place, *reason;
};

/// What read_rule() says.
std::string message(const char* text) {
  try {
    read_rule(nlohmann::json::parse(text), "FILE");
  } catch (const BadInput& error) {
    return error.what();
  }
  return "read";
}

void check_message(const Refused& one) {
  CHECK(message(one.text) ==
        R"(FILE: rule "unnamed", )" + std::string(one.place) + ": " + one.reason);
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
  CHECK(ratio_of(rule, Numbers{-HUGE_VAL}, Numbers{HUGE_VAL}, {}) == HUGE_VAL);
}

TEST_CASE("close: a share of mismatches is the decimal as written") {
  Comparison rule = rule_of(Kind::close);
  // How many of `count` elements may be wrong.
  const auto allowed = [&](double fraction, std::size_t count) {
    rule.fraction = fraction;
    std::size_t wrong = 0;
    for (Numbers answer(count); wrong < count; ++wrong) {
      answer[wrong] = 1;
      if (ratio_of(rule, answer, Numbers(count), {}) > 1) break;
    }
    return wrong;
  };
  for (int percent = 0; percent < 100; ++percent) {
    INFO(percent);
    CHECK(allowed(percent / 100.0, 100) == static_cast<std::size_t>(percent));
  }
  CHECK(allowed(0.29, 50) == 14);
  CHECK(allowed(0.29, 99) == 28);
  CHECK(allowed(0.2899999999999999, 100) == 28);
  CHECK(allowed(0.001, 1000) == 1);
  CHECK(allowed(0.001, 999) == 0);
  CHECK(allowed(0x1p-1074, 10) == 0);
  CHECK(allowed(0.9999999999999999, 10) == 9);
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

TEST_CASE("a rule that means nothing is refused by rule, place and reason") {
  CHECK(message(R"({"compares": {"out": [{"atol": 1}]}})") == "read");
  CHECK(message(R"({"compares": {"lse": [{"atol": 0, "rtol": 0, "fraction": 0}]}})") == "read");
  CHECK(message(R"({"compares": {"out": [{"kind": "error ratio", "factor": 2}],
                                 "dq": [{"kind": "nmse", "limit": 3}]}})") == "read");
  for (const Refused& one : {
           Refused{R"([])", "FILE", "is a list, but an object is needed"},
           {R"({})", "FILE", "compares is missing"},
           {R"({"compare": {}})", "FILE", R"(unknown key "compare" (nearest known: compares))"},
           {R"({"name": 1})", "FILE", "name is 1, but a string is needed"},
       }) {
    CHECK(message(one.text) == std::string(one.place) + ": " + one.reason);
  }
  for (const Refused& one : {
           Refused{R"({"compares": []})", "compares", "is a list, but an object is needed"},
           {R"({"compares": {}})", "compares", "needs at least one of out, lse, dq, dk, dv"},
           {R"({"compares": {"out": []}})", "compares",
            "out needs a list of conditions, at least one"},
           {R"({"compares": {"out": {}}})", "compares",
            "out needs a list of conditions, at least one"},
           {R"({"compares": {"dbias": []}})", "compares",
            R"(unknown key "dbias" (nearest known: dk))"},
           {R"({"compares": {"out": [{}, 3]}})", "compares.out[1]",
            "is 3, but an object is needed"},
           {R"({"compares": {"out": [{"kind": "near"}]}})", "compares.out[0]",
            R"(kind is "near", but one of close, error ratio, cosine, rmse, nmse is needed)"},
           {R"({"compares": {"out": [{"tol": 1}]}})", "compares.out[0]",
            R"(unknown key "tol" (nearest known: atol))"},
           {R"({"compares": {"out": [{"atol": "1"}]}})", "compares.out[0]",
            R"(atol is "1", but 0 or more is needed)"},
           {R"({"compares": {"out": [{"atol": -1}]}})", "compares.out[0]",
            "atol is -1, but 0 or more is needed"},
           {R"({"compares": {"out": [{"rtol": -1}]}})", "compares.out[0]",
            "rtol is -1, but 0 or more is needed"},
           {R"({"compares": {"out": [{"fraction": 1}]}})", "compares.out[0]",
            "fraction is 1, but 0 or more and less than 1 is needed"},
           {R"({"compares": {"out": [{"fraction": -0.5}]}})", "compares.out[0]",
            "fraction is -0.5, but 0 or more and less than 1 is needed"},
       }) {
    check_message(one);
  }
}

TEST_CASE("a condition holds the keys of its kind, and what it needs") {
  for (const Refused& one : {
           Refused{R"({"compares": {"out": [{"limit": 1}]}})", "compares.out[0]",
                   "limit belongs to cosine, rmse and nmse, not to close"},
           {R"({"compares": {"dq": [{"kind": "cosine", "atol": 0.5}]}})", "compares.dq[0]",
            "atol belongs to close and error ratio, not to cosine"},
           {R"({"compares": {"out": [{"kind": "error ratio", "factor": 2, "rtol": 1}]}})",
            "compares.out[0]", "rtol belongs to close, not to error ratio"},
           {R"({"compares": {"out": [{"kind": "rmse", "limit": 1, "factor": 2}]}})",
            "compares.out[0]", "factor belongs to error ratio, not to rmse"},
           {R"({"compares": {"out": [{"kind": "nmse", "limit": 1, "fraction": 0}]}})",
            "compares.out[0]", "fraction belongs to close, not to nmse"},
           {R"({"compares": {"out": [{"kind": "cosine"}]}})", "compares.out[0]",
            "limit is missing"},
           {R"({"compares": {"out": [{"kind": "cosine", "limit": 2}]}})", "compares.out[0]",
            "limit is 2, but more than 0 and less than 2 is needed"},
           {R"({"compares": {"out": [{"kind": "rmse", "limit": 0}]}})", "compares.out[0]",
            "limit is 0, but more than 0 is needed"},
           {R"({"compares": {"out": [{"kind": "nmse", "limit": -1}]}})", "compares.out[0]",
            "limit is -1, but more than 0 is needed"},
           {R"({"compares": {"out": [{"kind": "error ratio"}]}})", "compares.out[0]",
            "factor is missing"},
           {R"({"compares": {"out": [{"kind": "error ratio", "factor": 0}]}})", "compares.out[0]",
            "factor is 0, but more than 0 is needed"},
           {R"({"compares": {"dv": [{"kind": "error ratio", "factor": 2}]}})", "compares.dv[0]",
            "error ratio is of out alone: the run in low precision has no other tensor"},
       }) {
    check_message(one);
  }
}

TEST_CASE("inputs and the source of a rule are refused by place and reason") {
  for (const Refused& one : {
           Refused{R"({"inputs": {"keys": 0}})", "inputs",
                   "keys is 0, but an integer from 1 to 65536 is needed"},
           {R"({"inputs": {"keys": 65536, "queries": 65536, "batches": 65536, "heads": 65536}})",
            "inputs", "a tensor of more than 2^28 elements"},
           {R"({"inputs": {"keys": 4, "queries": 65536, "head_dim": 8192}})", "inputs",
            "a tensor of more than 2^28 elements"},
           {R"({"inputs": {"dtype": "I32"}})", "inputs", "dtype is no float type"},
           {R"({"inputs": {"factor": 0}})", "inputs", "factor is 0, but more than 0 is needed"},
           {R"({"inputs": {"causal": "left"}})", "inputs",
            R"(causal is "left", but one of none, top_left, bottom_right is needed)"},
           {R"({"source": {"commit": "1"}})", "source",
            R"(unknown key "commit" (nearest known: project))"},
       }) {
    check_message(one);
  }
}
