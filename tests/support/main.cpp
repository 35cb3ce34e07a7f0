// The entry point of every test executable. Where RINGPROOF_RESULTS names a file, each test case
// leaves a line in it, "passed|failed TAB source file TAB name", for docs/claims.md.
#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#include <catch2/catch_test_case_info.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>
#else
#define CATCH_CONFIG_RUNNER
#define CATCH_CONFIG_EXTERNAL_INTERFACES
#include <catch2/catch.hpp>
#endif

#include <cstdlib>
#include <fstream>

namespace {

#if __has_include(<catch2/catch_session.hpp>)
using Listener = Catch::EventListenerBase;
const Catch::TestCaseInfo& info_of(const Catch::TestCaseStats& stats) { return *stats.testInfo; }
#else
using Listener = Catch::TestEventListenerBase;
const Catch::TestCaseInfo& info_of(const Catch::TestCaseStats& stats) { return stats.testInfo; }
#endif

class Results : public Listener {
 public:
  using Listener::Listener;

  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    Listener::testCaseEnded(stats);
    const char* file = std::getenv("RINGPROOF_RESULTS");
    if (!file) return;
    if (!lines_.is_open()) lines_.open(file);
    const auto& test = info_of(stats);
    lines_ << (stats.totals.assertions.allOk() ? "passed" : "failed") << '\t' << test.lineInfo.file
           << '\t' << test.name << std::endl;  // flushed: a crash later keeps what was done
  }

 private:
  std::ofstream lines_;
};

CATCH_REGISTER_LISTENER(Results)

}  // namespace

int main(int argc, char** argv) { return Catch::Session().run(argc, argv); }
