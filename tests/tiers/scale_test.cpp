// Large rings on the simulated cluster: scale.py ends with an error as soon as a ring does not take
// the time that the model derives for it, or a link carries more than another.
#include <array>
#include <cstdio>
#include <string>

#include "tests/support/catch.hpp"

TEST_CASE(
    "C22: on a simulated cluster time follows the model and every link carries the same bytes") {
  const std::string command = std::string(RINGPROOF_SCALE_COMMAND) + " --ranks 4 16 64 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  std::array<char, 4096> buffer;
  while (const std::size_t size = fread(buffer.data(), 1, buffer.size(), pipe)) {
    text.append(buffer.data(), size);
  }
  const int status = WEXITSTATUS(pclose(pipe));
  INFO(text);
  CHECK(status == 0);
  CHECK(text.find("| 64 | zigzag |") != std::string::npos);
  CHECK(text.find("Crossing point: ") != std::string::npos);
}
