// The words, their exit codes, which of several is the worst, and what a tally comes to.
#include "oracle/judge/verdict.hpp"

#include <vector>

#include "oracle/judge/decide.hpp"
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

namespace {

/// What is decided of five elements, and of what `change` makes of them.
template <class Change>
AnswerReport decided(const Change& change) {
  AnswerReport answer;
  answer.tally.elements = 5;
  change(answer.tally);
  decide(answer);
  return answer;
}

bool starts_with(const std::string& text, const char* word) { return text.rfind(word, 0) == 0; }

}  // namespace

TEST_CASE("one element left open, or one functional, leaves the answer UNDECIDED") {
  CHECK(decided([](TensorTally&) {}).verdict == Verdict::pass);
  for (std::int64_t TensorTally::*count :
       {&TensorTally::undecided, &TensorTally::functional_undecided}) {
    const AnswerReport open = decided([&](TensorTally& tally) { tally.*count = 1; });
    CHECK(open.verdict == Verdict::undecided);
    CHECK(starts_with(open.reason, "precision ended"));
  }
  for (std::int64_t TensorTally::*count : {&TensorTally::failed, &TensorTally::functional_failed}) {
    const AnswerReport refused = decided([&](TensorTally& tally) { tally.*count = 1; });
    CHECK(refused.verdict == Verdict::fail);
  }
}

TEST_CASE("what would pass on every element is named, and one element that refuses it is enough") {
  const std::pair<Vacuity TensorTally::*, const char*> all[] = {
      {&TensorTally::zeros, "no power: zeros"},
      {&TensorTally::mean, "no power: the mean of V"},
      {&TensorTally::twice, "no power: twice the answer"}};
  for (const auto& [vacuity, reason] : all) {
    INFO(reason);
    const AnswerReport vain =
        decided([&](TensorTally& tally) { (tally.*vacuity).differ = (tally.*vacuity).pass = 5; });
    CHECK(vain.verdict == Verdict::undecided);
    CHECK(starts_with(vain.reason, reason));
    const auto verdict = [&](auto change) {
      return decided([&](TensorTally& tally) {
               (tally.*vacuity).differ = (tally.*vacuity).pass = 5;
               change(tally.*vacuity);
             })
          .verdict;
    };
    CHECK(verdict([](Vacuity& one) { one.pass = 4; }) == Verdict::pass);
    CHECK(verdict([](Vacuity& one) { one.functional_refuses = true; }) == Verdict::pass);
    CHECK(verdict([](Vacuity& one) { one.differ = one.pass = 0; }) == Verdict::pass);
  }
}

TEST_CASE("an answer of which no element was judged says why") {
  const auto reason = [](auto change) {
    const AnswerReport answer = decided([&](TensorTally& tally) {
      tally.elements = 0;
      change(tally);
    });
    CHECK(answer.verdict == Verdict::undecided);
    return answer.reason;
  };
  CHECK(starts_with(reason([](TensorTally& tally) { tally.not_applicable = 1; }),
                    "not applicable on any row"));
  CHECK(starts_with(reason([](TensorTally& tally) { tally.unbounded = 1; }), "no power"));
  CHECK(starts_with(reason([](TensorTally&) {}), "nothing is demanded"));
}
