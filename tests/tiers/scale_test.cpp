// Large rings on the simulated cluster: scale.py ends with an error as soon as a ring does not take
// the time that the model derives for it, a link carries more than another, or docs/performance.md
// shows another figure. Rings of 256 take a minute: `./run scale --check` compares them, too.
#include <array>
#include <cstdio>
#include <string>

#include "tests/support/catch.hpp"

TEST_CASE(
    "C22: on a simulated cluster time follows the model and every link carries the same bytes") {
  const std::string options = " --ranks 4 16 64 --check docs/performance.md 2>&1";
  const std::string command = RINGPROOF_SCALE_COMMAND + options;
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
  CHECK(text.find("shows what the simulator gives") != std::string::npos);
}
