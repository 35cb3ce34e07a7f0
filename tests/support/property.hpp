// Joins RapidCheck to Catch2: property("addition commutes", [](int a, int b) { RC_ASSERT(...); });
// Every failure prints the line that repeats it (RC_PARAMS with its seed).
#pragma once

#include <rapidcheck.h>

#include <sstream>
#include <string>

#include "tests/support/catch.hpp"

namespace ringproof::test {

/// Checks a RapidCheck property inside a Catch2 test case; `sentence` says what holds.
template <class Testable>
void property(const std::string& sentence, Testable&& testable) {
  rc::detail::TestMetadata metadata{.id = sentence, .description = sentence};
  const auto result = rc::detail::checkTestable(std::forward<Testable>(testable), metadata);
  std::ostringstream text;
  rc::detail::printResultMessage(result, text);
  INFO(sentence << "\n" << text.str());
  CHECK(result.template is<rc::detail::SuccessResult>());
}

}  // namespace ringproof::test
