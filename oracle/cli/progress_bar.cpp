#include "oracle/cli/progress_bar.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

namespace ringproof::oracle::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kQuiet = std::chrono::seconds(2);
constexpr auto kInterval = std::chrono::milliseconds(200);
constexpr std::int64_t kWidth = 40;

struct Bar {
  const char* what;
  Clock::time_point start = Clock::now(), shown{};
  bool visible = false;

  void operator()(std::int64_t done, std::int64_t total) {
    const Clock::time_point now = Clock::now();
    if (done >= total) {
      if (visible) fmt::print(stderr, "\r\033[K");
      visible = false;
      start = now;  // the next case has its own two seconds
      return;
    }
    if (now - start < kQuiet || now - shown < kInterval) return;
    shown = now;
    visible = true;
    const auto filled = static_cast<std::size_t>(done * kWidth / total);
    fmt::print(stderr, "\r[{:<40}] {} of {} {}", std::string(filled, '#'), done, total, what);
    std::fflush(stderr);
  }
};

}  // namespace

std::function<void(std::int64_t, std::int64_t)> progress_bar(const char* what) {
  if (isatty(STDERR_FILENO) == 0) return {};
  return Bar{what};
}

}  // namespace ringproof::oracle::cli
