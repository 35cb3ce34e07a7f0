// The suite on kernels that are right, wrong or rude. Those that die: death_test.cpp; the program:
// program_test.cpp.
#include <cmath>
#include <filesystem>
#include <set>
#include <sstream>

#include "oracle/case/error.hpp"
#include "oracle/judge/check.hpp"
#include "tests/suite/reference_candidate.hpp"
#include "tests/suite/test_kernels.hpp"

using namespace ringproof;
using namespace ringproof::suite;

TEST_CASE("every law has a name of its own, a sentence, and a function") {
  std::set<std::string_view> ids;
  for (const Law& law : all_laws()) {
    INFO(law.id);
    CHECK(ids.insert(law.id).second);
    CHECK(law.sentence.size() > 10);
    CHECK(law.holds != nullptr);
  }
  CHECK(ids.size() > 90);
}

TEST_CASE("a whole id names one law, any other word the laws that begin so") {
  const auto ids = [](const std::vector<std::string>& words) {
    std::string text;
    for (const Law* law : choose_laws(words)) text += std::string(law->id) + " ";
    return text;
  };
  CHECK(ids({"positions"}) == "positions ");
  CHECK(ids({"positions-"}) == "positions-window ");
  CHECK(ids({"softca"}) == "softcap softcap-before-mask ");
  CHECK(ids({"softca", "softcap"}) == ids({"softca"}));
  for (const Law& law : all_laws()) CHECK(choose_laws({std::string(law.id)}).size() == 1);
  CHECK(choose_laws({}).size() == all_laws().size());
  CHECK_THROWS_AS(choose_laws({"positions", "positions-wide"}), oracle::BadInput);
}

TEST_CASE("the scalar tier passes every law, forward and backward") {
  const Folder folder;
  const Ran ran = run_kernel(RINGPROOF_REFERENCE_CANDIDATE, folder, "fp32-ring", {.count = 2});
  INFO(ran.text);
  CHECK(ran.count(Word::fail) == 0);
  CHECK(ran.count(Word::skipped) == 0);
  CHECK(ran.outcome.laws.size() == all_laws().size());
}

TEST_CASE("a plain C kernel passes what it supports; the rest is skipped by name") {
  const Folder folder;
  const Ran ran = run_kernel(kernel("none"), folder, "fp32");
  INFO(ran.text);
  CHECK(ran.count(Word::fail) == 0);
  CHECK(ran.count(Word::pass) > 20);
  CHECK(contains(ran.text, "needs alibi"));
  CHECK(contains(ran.text, "not supported: "));
  CHECK(exit_code(ran.outcome) == 0);
}

TEST_CASE("a kernel without a required feature fails") {
  const Folder folder;
  const Ran ran = run_kernel(kernel("none"), folder, "fp32",
                             {.only = {"no-mask"}, .require = parse_features("lse,sinks")});
  CHECK(exit_code(ran.outcome) == 1);
  CHECK(contains(ran.text, "required, but not supported: sinks"));
  CHECK_THROWS_AS(parse_features("sniks"), oracle::BadInput);
}

TEST_CASE("a kernel that writes where it should not, or not where it should, breaks a law") {
  const Folder folder;
  for (const auto& [fault, words] :
       {std::pair{"writes_input", "wrote into its input k"},
        std::pair{"writes_beside", "wrote beside its output out"},
        std::pair{"leaves_a_row", "refused"}, std::pair{"random", "differs"}}) {
    const Ran ran = run_kernel(kernel(fault), folder, "fp32",
                               {.count = 6, .only = {"determinism", "written", "inputs-stay"}});
    INFO(fault << "\n" << ran.text);
    CHECK(contains(ran.text, words));
    CHECK(exit_code(ran.outcome) == 1);
  }
}

TEST_CASE("a broken law comes with the smallest case, a file the judge refuses, and a command") {
  const Folder folder;
  const Ran ran =
      run_kernel(kernel("drops_last_key"), folder, "fp32",
                 {.count = 5, .only = {"no-mask"}, .command = "ringproof suite --so k"});
  INFO(ran.text);
  REQUIRE(exit_code(ran.outcome) == 1);
  // The fault needs 4 queries, 4 keys and 2 heads; nothing smaller breaks the law.
  CHECK(contains(ran.why(), "problem: B 1 H 2 "));
  CHECK(contains(ran.why(), "Nq 4 Nk 4 "));
  CHECK(contains(ran.why(), "repeat: ringproof suite --so k --only no-mask --seed "));
  const oracle::Case one = oracle::read_case(ran.failures / "no-mask.safetensors");
  const oracle::Contract contract =
      oracle::read_contract(one.problem.spec.contract, one.problem.spec);
  CHECK(oracle::check(one, contract, {}).verdict == oracle::Verdict::fail);
}

TEST_CASE("numbers shrink to small integers") {
  const Folder folder;
  const Ran ran = run_kernel(kernel("drops_last_key"), folder, "fp32",
                             {.count = 8, .only = {"every-semantics"}});
  INFO(ran.text);
  REQUIRE(exit_code(ran.outcome) == 1);
  const oracle::Case one = oracle::read_case(ran.failures / "every-semantics.safetensors");
  for (const oracle::Tensor& tensor : {one.problem.q, one.problem.k, one.problem.v}) {
    for (Index n = 0; n < tensor.shape[2]; ++n) {
      const double value = tensor.at(0, 0, n, 0);
      CHECK((value == std::floor(value) && std::abs(value) <= 2));
    }
  }
}

TEST_CASE("a C++ callable is a kernel like others") {
  Candidate candidate;
  candidate.name = "in this process";
  candidate.run = [](void* context, const ringproof_problem* problem, ringproof_answer* answer) {
    ++*static_cast<int*>(context);
    if (problem->dout.data != nullptr) return 1;
    Call<float>(*problem).answer(*answer);
    return 0;
  };
  int calls = 0;
  candidate.context = &calls;
  Trial trial(candidate, "fp32");
  REQUIRE(probe(trial));
  std::ostringstream stream;
  const Outcome outcome = run_suite(trial, {.only = {"shift", "poison", "gradients"}}, stream);
  INFO(stream.str());
  CHECK(exit_code(outcome) == 0);
  CHECK(calls == trial.calls());
  CHECK(contains(stream.str(), "needs gradients"));
}

TEST_CASE("a file that is no kernel is bad input") {
  CHECK_THROWS_AS(Library("no/such/file.so", std::chrono::seconds(1)), oracle::BadInput);
  CHECK_THROWS_AS(Library(RINGPROOF_SUITE_PROGRAM, std::chrono::seconds(1)), oracle::BadInput);
}
