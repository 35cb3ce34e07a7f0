// The words, their exit codes, and which of several is the worst.
#include "oracle/judge/verdict.hpp"

#include <vector>

#include "tests/support/catch.hpp"

using namespace ringproof::oracle;

TEST_CASE("every verdict has its exit code") {
  CHECK(exit_code(Verdict::pass) == 0);
  CHECK(exit_code(Verdict::fail) == 1);
  CHECK(exit_code(Verdict::bad_input) == 2);
  CHECK(exit_code(Verdict::undecided) == 3);
  CHECK(exit_code(Verdict::suspect) == 4);
  CHECK(exit_code(Verdict::skipped) == 77);
  CHECK(word(Verdict::undecided) == "UNDECIDED");
}

TEST_CASE("the worst of several is bad input, FAIL, SUSPECT, UNDECIDED, PASS, in this order") {
  const std::vector<Verdict> order{Verdict::bad_input, Verdict::fail, Verdict::suspect,
                                   Verdict::undecided, Verdict::pass, Verdict::skipped};
  for (std::size_t a = 0; a < order.size(); ++a) {
    for (std::size_t b = 0; b < order.size(); ++b) {
      CHECK(worst(order[a], order[b]) == order[std::min(a, b)]);
    }
  }
  CHECK(worst(std::vector<Verdict>{}) == Verdict::skipped);
  CHECK(worst(std::vector<Verdict>{Verdict::skipped, Verdict::pass}) == Verdict::pass);
}
