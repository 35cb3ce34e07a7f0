// The spec: every key, every refusal by name, writing and reading back, joining two files' specs.
#include "oracle/case/spec.hpp"

#include <cmath>
#include <limits>
#include <sstream>

#include "oracle/case/json_text.hpp"
#include "tests/support/property.hpp"
#include "tests/unit/case/case_builder.hpp"

namespace ringproof::test {
namespace {

using namespace oracle;

Spec parse(const std::string& keys) {
  return parse_spec(R"({"version": 1)" + (keys.empty() ? "" : ", " + keys) + "}", "FILE");
}
std::string refused(const std::string& text) {
  return refusal([&] { parse_spec(text, "FILE"); });
}
std::string refused_key(const std::string& keys) {
  return refused(R"({"version": 1, )" + keys + "}");
}

}  // namespace

TEST_CASE("a spec without keys has the documented defaults") {
  const Spec spec = parse("");
  CHECK(spec == Spec{});
  CHECK(spec.layout == AxisOrder::bhnd);
  CHECK_FALSE(spec.scale.has_value());
  CHECK(spec.causal == Causal::none);
  CHECK(spec.window_left == -1);
  CHECK(spec.window_right == -1);
  CHECK(spec.softcap == 0);
  CHECK(spec.empty_row == EmptyRow::zero);
}

TEST_CASE("every key of the documentation is read") {
  const std::string path = std::string(RINGPROOF_SOURCE) + "/tests/unit/case/every_key.json";
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  SpecKeys keys;
  const Spec spec = parse_spec(text.str(), "FILE", &keys);
  CHECK(keys.size() == 14);
  CHECK(spec.layout == AxisOrder::bnhd);
  CHECK(spec.scale == 0.125);
  CHECK(spec.causal == Causal::bottom_right);
  CHECK(spec.window_left == 512);
  CHECK(spec.window_right == -1);
  CHECK(spec.softcap == 30);
  CHECK(spec.empty_row == EmptyRow::nan);
  CHECK(spec.lse_base == LseBase::two);
  CHECK(spec.contract == "bf16-ring");
  CHECK(spec.ranks == 4);
  CHECK(spec.ring == Ring{RingLayout::zigzag, RingOrder::down});
  CHECK(spec.problem == "p.safetensors");
  CHECK(spec.problem_sha256.starts_with("f669ab75"));
  CHECK(parse(R"("problem_sha256": ")" + std::string(64, 'A') + '"').problem_sha256 ==
        std::string(64, 'a'));
  CHECK(parse(R"("lse_base": 2)").lse_base == LseBase::two);
  CHECK(parse(R"("contract": {"base": "fp32"})").contract == R"({"base":"fp32"})");
  CHECK(parse(R"("empty_row": "any")").empty_row == EmptyRow::any);
  CHECK(parse(R"("layout": "nhd", "causal": "top_left", "lse_base": "e")").layout ==
        AxisOrder::nhd);
}

TEST_CASE("scale is a JSON number or a C99 hexadecimal number, always finite") {
  CHECK(parse(R"("scale": 0.1767766922712326)").scale == 0.1767766922712326);
  CHECK(parse(R"("scale": 1)").scale == 1);
  CHECK(parse(R"("scale": -2e-3)").scale == -2e-3);
  CHECK(parse(R"("scale": "-0x1.8p+1")").scale == -3);
  CHECK(parse(R"("scale": "+0X.8P1")").scale == 1);
  CHECK(parse(R"("scale": "0x1.fffffffffffffp1023")").scale == std::numeric_limits<double>::max());
  CHECK(parse(R"("scale": "0x1p-1074")").scale == std::numeric_limits<double>::denorm_min());
  CHECK(parse(R"("scale": "0x10")").scale == 16);
  for (const char* bad : {"\"inf\"", "\"nan\"", "\"0xinf\"", "\"0xnan\"", "\"0x1p1024\"", "\"0x\"",
                          "\"0x.\"", "\"0x1p\"", "\"0x1p1x\"", "\"1.5\"", "\"\"", "\" 0x1p1\"",
                          "\"--0x1\"", "\"0x-1\"", "\"0x1p-1080\"", "true", "null", "[1]", "{}"}) {
    INFO(bad);
    CHECK(contains(refused_key(std::string("\"scale\": ") + bad), "FILE: spec key \"scale\""));
  }
  CHECK(contains(refused_key("\"scale\": 1e400"), "number out of range"));
}

TEST_CASE("unknown, doubled and reserved keys are refused by name, with the nearest known key") {
  CHECK(contains(refused_key(R"("casual": "none")"), "\"casual\" (nearest: \"causal\")"));
  CHECK(contains(refused_key(R"("soft_cap": 1)"), "(nearest: \"softcap\")"));
  CHECK(contains(refused_key(R"("Scale": 1)"), "(nearest: \"scale\")"));
  CHECK(contains(refused_key(R"("scale": 1, "scale": 1)"), "key \"scale\" occurs twice"));
  CHECK(contains(refused_key(R"("about": {"a": 1, "a": 2})"), "key \"a\" occurs twice"));
  CHECK(contains(refused_key(R"("contract": {"p": {"u": "0", "u": "0"}})"),
                 "key \"u\" occurs twice"));
  CHECK(
      contains(refused_key(R"("v_from_k": true)"), "\"v_from_k\" is reserved, not supported yet"));
  CHECK(contains(refused_key(R"("ring": {"layout": "zigzag", "odrer": "up"})"),
                 "\"ring.odrer\" (nearest: \"ring.order\")"));
}

TEST_CASE("types and ranges are checked, and the message names the key") {
  const std::pair<const char*, const char*> bad[] = {
      {"layout", "\"hbnd\""},
      {"layout", "1"},
      {"causal", "true"},
      {"causal", "\"Top_Left\""},
      {"window", "[-5, 3]"},
      {"window", "[1]"},
      {"window", "[1, 2, 3]"},
      {"window", "[1.0, 2]"},
      {"window", "[1, -2]"},
      {"window", "[9223372036854775808, 0]"},
      {"window", "3"},
      {"softcap", "-1"},
      {"softcap", "\"inf\""},
      {"softcap", "null"},
      {"empty_row", "\"zeros\""},
      {"lse_base", "\"10\""},
      {"lse_base", "3"},
      {"lse_base", "2.0"},
      {"contract", "1"},
      {"contract", "\"\""},
      {"contract", "[]"},
      {"contract", "\"{}\""},
      {"ranks", "0"},
      {"ranks", "-4"},
      {"ranks", "1.5"},
      {"ranks", "true"},
      {"ranks", "1048577"},
      {"ranks", "18446744073709551615"},
      {"ring", "\"zigzag\""},
      {"ring", "{}"},
      {"ring", "{\"layout\": \"zigzag\"}"},
      {"ring", "{\"layout\": \"zig\", \"order\": \"up\"}"},
      {"problem", "\"../p\""},
      {"problem", "\"/p\""},
      {"problem", "\"a\\\\b\""},
      {"problem", "\"..\""},
      {"problem", "\"\""},
      {"problem", "\"a\\u0000b\""},
      {"problem", "\"\\u001b[2J\""},
      {"problem_sha256", "\"abc\""},
      {"problem_sha256", "7"},
      {"about", "\"text\""},
      {"about", "[]"},
  };
  for (const auto& [key, value] : bad) {
    INFO(key << ": " << value);
    const std::string message = refused_key('"' + std::string(key) + "\": " + value);
    CHECK(message.starts_with("FILE: spec key \"" + std::string(key)));
  }
  CHECK(contains(refused(R"({"version": 2})"), "\"version\""));
  CHECK(contains(refused(R"({"version": "1"})"), "\"version\""));
  CHECK(contains(refused("{}"), "\"version\" is missing"));
}

TEST_CASE("text that is not a JSON object is refused, however deep or long it is") {
  CHECK(contains(refused("[1, 2]"), "not a JSON object"));
  CHECK(contains(refused(""), "not JSON"));
  CHECK(contains(refused(R"({"version": 1} x)"), "not JSON"));
  CHECK(contains(refused(R"({"version": 1,})"), "not JSON"));
  CHECK(contains(refused("{\"version\": 1, \"about\": {\"\xff\": 1}}"), "not JSON"));
  CHECK(contains(refused(std::string(200'000, '[')), "nested deeper"));
  std::string objects;
  for (int n = 0; n < 100'000; ++n) objects += "{\"a\":";
  CHECK(contains(refused(objects), "nested deeper"));
  std::string many = R"({"version": 1, "about": {"n": [0)";
  for (int n = 0; n < 100'000; ++n) many += ",0";
  CHECK(contains(refused(many + "]}}"), "JSON values"));
}

TEST_CASE("nesting is refused exactly beyond the limit, and so is the number of values") {
  const auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '[') +
           std::string(static_cast<std::size_t>(depth), ']');
  };
  CHECK_NOTHROW(parse_json(nested(4), "FILE", {.depth = 4}));
  CHECK_THROWS_AS(parse_json(nested(5), "FILE", {.depth = 4}), BadInput);
  CHECK_NOTHROW(parse_json("[1, [], {}, \"x\"]", "FILE", {.values = 5}));
  CHECK_THROWS_AS(parse_json("[1, [], {}, \"x\"]", "FILE", {.values = 4}), BadInput);
  CHECK_THROWS_AS(parse_json("[1, \"x\", {}, []]", "FILE", {.values = 4}), BadInput);
}

namespace {

/// Any spec that can be said.
Spec any_spec() {
  const auto one_of = [](auto... values) { return *rc::gen::element(values...); };
  const auto any_number = [] {
    const auto bits = *rc::gen::arbitrary<std::uint64_t>();
    const auto value = std::bit_cast<double>(bits);
    return std::isfinite(value) ? value : 0.5;
  };
  Spec spec;
  spec.layout = one_of(AxisOrder::bhnd, AxisOrder::bnhd, AxisOrder::nhd);
  if (*rc::gen::arbitrary<bool>()) spec.scale = any_number();
  spec.causal = one_of(Causal::none, Causal::top_left, Causal::bottom_right);
  const auto most = std::numeric_limits<std::int64_t>::max();
  spec.window_left = one_of(std::int64_t{-1}, std::int64_t{0}, std::int64_t{17}, most);
  spec.window_right = one_of(std::int64_t{-1}, std::int64_t{0}, std::int64_t{17}, most);
  spec.softcap = std::fabs(any_number());
  spec.empty_row = one_of(EmptyRow::zero, EmptyRow::nan, EmptyRow::any);
  if (*rc::gen::arbitrary<bool>()) spec.lse_base = one_of(LseBase::e, LseBase::two);
  spec.contract =
      one_of(std::string(), std::string("bf16-flash"), std::string(R"({"base":"fp32"})"));
  if (*rc::gen::arbitrary<bool>()) spec.ranks = *rc::gen::inRange(1, 1 << 20);
  if (*rc::gen::arbitrary<bool>()) {
    spec.ring = Ring{one_of(RingLayout::contiguous, RingLayout::zigzag, RingLayout::striped),
                     one_of(RingOrder::down, RingOrder::up)};
  }
  spec.problem = one_of(std::string(), std::string("p.safetensors"), std::string("\xc3\xa4 b"));
  spec.problem_sha256 = one_of(std::string(), std::string(64, '7'));
  return spec;
}

}  // namespace

TEST_CASE("a written spec reads back as itself") {
  property("parse_spec(to_json(s)) == s", [] {
    const Spec spec = any_spec();
    RC_ASSERT(parse_spec(to_json(spec), "FILE") == spec);
  });
  CHECK(to_json(Spec{}) == R"({"version":1})");
}

TEST_CASE("an answer takes the problem's keys and may repeat but not change them") {
  SpecKeys answer_keys, problem_keys;
  const auto join = [&](const std::string& answer, const std::string& problem) {
    answer_keys.clear();
    problem_keys.clear();
    const Spec a = parse_spec(answer, "ANSWER", &answer_keys);
    const Spec p = parse_spec(problem, "PROBLEM", &problem_keys);
    return join_specs(a, answer_keys, "ANSWER", p, problem_keys, "PROBLEM");
  };
  const Spec joined = join(
      R"({"version": 1, "scale": "0x1p-3", "ranks": 4, "contract": "fp32", "softcap": 3})",
      R"({"version": 1, "scale": 0.125, "causal": "top_left", "window": [7, 0], "layout": "bnhd",
          "empty_row": "any", "ranks": 2, "lse_base": "2", "about": {}})");
  CHECK(joined.scale == 0.125);
  CHECK(joined.causal == Causal::top_left);
  CHECK(joined.window_left == 7);
  CHECK(joined.layout == AxisOrder::bnhd);
  CHECK(joined.empty_row == EmptyRow::any);
  CHECK(joined.softcap == 3);
  CHECK(joined.ranks == 4);
  CHECK(joined.contract == "fp32");
  CHECK_FALSE(joined.lse_base.has_value());
  const std::pair<const char*, std::pair<const char*, const char*>> different[] = {
      {"layout", {"\"bhnd\"", "\"bnhd\""}},
      {"scale", {"1", "1.0000000000000002"}},
      {"causal", {"\"none\"", "\"top_left\""}},
      {"window", {"[1, 2]", "[1, 3]"}},
      {"softcap", {"0", "1"}},
      {"empty_row", {"\"zero\"", "\"nan\""}},
  };
  for (const auto& [key, values] : different) {
    INFO(key);
    const auto text = [&](const char* value) {
      return R"({"version": 1, ")" + std::string(key) + "\": " + value + "}";
    };
    const std::string message = refusal([&] { join(text(values.first), text(values.second)); });
    CHECK(contains(message, "ANSWER: spec key \"" + std::string(key) + "\" differs"));
    CHECK(contains(message, "PROBLEM"));
    CHECK_NOTHROW(join(text(values.second), text(values.second)));
  }
}

}  // namespace ringproof::test
