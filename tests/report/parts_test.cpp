// Parts of the reports that the files alone show badly: text from anywhere, and bins at the bound.
#include <cmath>
#include <limits>
#include <vector>

#include "oracle/report/error_spread.hpp"
#include "oracle/report/heat_map.hpp"
#include "oracle/report/markup.hpp"
#include "oracle/report/pictures.hpp"
#include "tests/support/catch.hpp"

using namespace ringproof::oracle;

namespace {

FieldElement element(float ratio, bool refused) { return {.ratio = ratio, .refused = refused}; }

constexpr float kNothing = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinite = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("markup in a name is text, and what XML has no character for is replaced") {
  CHECK(escaped("a<b>&\"c\"") == "a&lt;b&gt;&amp;&quot;c&quot;");
  CHECK(escaped("\xC3\xA9 \xE2\x88\x92 \xF0\x9F\x98\x80") ==
        "\xC3\xA9 \xE2\x88\x92 \xF0\x9F\x98\x80");
  const std::string replaced = "\xEF\xBF\xBD";
  CHECK(escaped(std::string("a\0b\x1B", 4)) == "a" + replaced + "b" + replaced);
  CHECK(escaped("\xFF") == replaced);
  CHECK(escaped("\xC3") == replaced);                 // cut off
  CHECK(escaped("\xC0\xBC") == replaced + replaced);  // "<" in two bytes
  CHECK(escaped("\xED\xA0\x80") == replaced);         // half a surrogate pair
  CHECK(escaped("\xEF\xBF\xBF") == replaced);         // U+FFFF
  CHECK(escaped("\xF4\x90\x80\x80") == replaced);     // beyond U+10FFFF
}

TEST_CASE("accepted elements stay left of the bound and refused ones right of it") {
  const std::vector<FieldElement> elements{element(0, false),     element(1, false),
                                           element(1, true),      element(kInfinite, true),
                                           element(0.99F, false), element(kNothing, false)};
  const ErrorSpread spread = error_spread(elements);
  const auto bound = static_cast<std::size_t>(-ErrorSpread::kLowest * ErrorSpread::kBinsOfADecade);
  CHECK(spread.total == 5);
  CHECK(spread.bins.front() == 1);
  CHECK(spread.bins[bound - 1] == 2);
  CHECK(spread.bins[bound] == 1);
  CHECK(spread.bins.back() == 1);
  CHECK(spread.start(bound) == 1);
  CHECK(error_spread({}).total == 0);
}

TEST_CASE("a heat map shows the worst of the elements in a cell, and the LSE apart") {
  ErrorField field;
  field.columns = 200;  // more than there are cells
  for (std::int64_t i = 0; i < 2; ++i) field.rows.push_back({0, 3, i});
  field.out.assign(400, element(0.1F, false));
  field.out[399] = element(50, true);
  field.lse = {element(0.9F, false), element(kNothing, false)};
  const HeatMap map = heat_map(field);
  REQUIRE(map.panels.size() == 1);
  const HeatPanel& panel = map.panels.front();
  CHECK(panel.name == "b 0, h 3");
  CHECK(panel.width == 98);  // 96 cells, a gap, the LSE
  CHECK(panel.height == 2);
  CHECK(panel.paths.find("<path class=\"r1\" d=\"M95 1h1v1h-1z\"/>") != std::string::npos);
  CHECK(panel.paths.find("<path class=\"a4\" d=\"M97 0h1v1h-1z\"/>") != std::string::npos);
  CHECK(panel.paths.find("<path class=\"n\" d=\"M97 1h1v1h-1z\"/>") != std::string::npos);
  CHECK(panel.paths.find("<path class=\"a0\" d=\"M0 0h96v1h-96zM0 1h95v1h-95z\"/>") !=
        std::string::npos);
}

TEST_CASE("gradients have panels of their own: keys downwards, no strip, each named in the file") {
  ErrorField nothing;
  GradientField field{.kind = AnswerKind::dk, .columns = 2};
  for (std::int64_t j = 0; j < 3; ++j) field.rows.push_back({1, 0, j});
  field.elements.assign(6, element(0.5F, false));
  field.elements[4] = element(2000, true);
  const HeatMap map = heat_map(field);
  REQUIRE(map.panels.size() == 1);
  CHECK(map.panels.front().width == 2);
  CHECK(map.panels.front().height == 3);
  CHECK(map.panels.front().paths.find("<path class=\"r3\" d=\"M0 2h1v1h-1z\"/>") !=
        std::string::npos);
  const std::string file = heat_map_svg(nothing, {field}, "t");
  CHECK(file.find(">dk: b 1, h 0</text>") != std::string::npos);
  const std::string page = pictures(nothing, {field});
  CHECK(page.find("<b>where, dk</b> error over bound: keys down") != std::string::npos);
  CHECK(page.find("<b>dk</b> error over bound of 6 elements") != std::string::npos);
  CHECK(pictures(nothing, {}).empty());
}
