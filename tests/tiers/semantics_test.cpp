// The reference on every semantics a case can state, judged by certified truth and derived bounds
// (C19).
#include "oracle/case/problem.hpp"

#include "tests/support/property.hpp"
#include "tests/tiers/case_description.hpp"
#include "tests/tiers/judged.hpp"

using namespace ringproof;
using reference::Direction;
using reference::Index;
using reference::Layout;
using reference::RingPlan;
using test::CaseDescription;

namespace {

const Layout kLayouts[] = {Layout::contiguous, Layout::zigzag, Layout::striped};

}  // namespace

TEST_CASE("C19: judge and reference read the same masks out of the same files, pair by pair") {
  const test::TemporaryFolder folder;
  test::property("visible(reference) == visible(oracle)", [&](const CaseDescription& description) {
    const std::string path = folder.file("problem.safetensors");
    test::write_case_file(description, path);
    const reference::CaseInput input = reference::read_input(path);
    const reference::CaseProblem<double> owned(input);
    const reference::Problem<double> ours = owned.problem();
    const oracle::Problem& theirs = input.views.problem;
    for (Index b = 0; b < ours.batches; ++b) {
      for (Index h = 0; h < ours.heads; ++h) {
        for (Index i = 0; i < ours.queries; ++i) {
          for (Index j = 0; j < ours.keys; ++j) {
            RC_ASSERT(reference::visible(ours, {b, h, i}, j) ==
                      oracle::visible(theirs, b, h, i, j));
          }
        }
      }
    }
  });
}

TEST_CASE(
    "C19: the ring passes the judge on every semantics, for all layouts, ranks and directions") {
  const test::TemporaryFolder folder;
  int judged = 0, passed = 0;
  test::property("no answer of the reference is refused", [&](const CaseDescription& description) {
    const std::string problem = folder.file("problem.safetensors");
    test::write_case_file(description, problem);
    const Index ranks = *rc::gen::inRange<Index>(1, 16);
    const auto direction = *rc::gen::element(Direction::down, Direction::up);
    for (const Layout layout : kLayouts) {
      const std::string out = folder.file("answer.safetensors");
      test::run_reference(problem, RingPlan{ranks, layout, direction}, out);
      const oracle::Report report = test::judge_file(out);
      ++judged;
      passed += report.verdict == oracle::Verdict::pass;
      // UNDECIDED is possible: rows that all see nothing finite, or answers so small that zeros
      // pass.
      RC_ASSERT(report.verdict != oracle::Verdict::fail);
      RC_ASSERT(report.find(oracle::AnswerKind::out)->tally.failed == 0);
      RC_ASSERT(report.find(oracle::AnswerKind::lse)->tally.failed == 0);
    }
  });
  INFO(passed << " of " << judged << " passed");
  CHECK(judged >= 300);
  CHECK(passed * 10 >= judged * 9);
}

TEST_CASE(
    "C19: no gradient of the ring is refused, on every semantics, for all layouts and ranks") {
  const test::TemporaryFolder folder;
  test::property("no gradient is refused", [&](CaseDescription description) {
    const std::string problem = folder.file("problem.safetensors");
    description.upstream = 1 + static_cast<int>(description.seed % 3);
    test::write_case_file(description, problem);
    const Index ranks = *rc::gen::inRange<Index>(1, 9);
    const Layout layout = *rc::gen::element(Layout::contiguous, Layout::zigzag, Layout::striped);
    const std::string out = folder.file("answer.safetensors");
    test::run_reference(problem, RingPlan{ranks, layout, Direction::down}, out,
                        reference::Pass::backward);
    for (const oracle::AnswerReport& answer : test::judge_file(out).answers) {
      RC_ASSERT(answer.verdict != oracle::Verdict::fail);
    }
  });
}

TEST_CASE(
    "C19: an answer whose problem lies elsewhere, or holds answers itself, carries the problem") {
  const test::TemporaryFolder here, there;
  const std::string problem = here.file("problem.safetensors");
  CaseDescription description;
  description.queries = description.keys = 9, description.head_dim = description.value_dim = 4;
  description.causal = 1, description.seed = 5;
  test::write_case_file(description, problem);

  const RingPlan plan{3, Layout::zigzag, Direction::down};
  const std::string beside = here.file("beside.safetensors");
  const std::string apart = there.file("apart.safetensors");
  const std::string again = there.file("again.safetensors");
  test::run_reference(problem, plan, beside);
  test::run_reference(problem, plan, apart);
  test::run_reference(apart, plan, again);  // a case with answers of its own
  CHECK(oracle::read_case(beside).problem.spec.problem == "problem.safetensors");
  CHECK(oracle::read_case(apart).problem.spec.problem.empty());
  CHECK(oracle::read_case(again).problem.spec.problem.empty());
  for (const std::string& path : {beside, apart, again}) {
    CHECK(test::judge_file(path).verdict == oracle::Verdict::pass);
  }
  // An answer that names its problem leads to that problem, not to itself.
  const std::string second = here.file("second.safetensors");
  test::run_reference(beside, plan, second);
  CHECK(oracle::read_case(second).problem.spec.problem == "problem.safetensors");
  CHECK(test::judge_file(second).verdict == oracle::Verdict::pass);
}

TEST_CASE("C19: contracts say what the reference did, and the spec says how the rows were dealt") {
  const test::TemporaryFolder folder;
  const auto contract = [&](CaseDescription description, Index ranks) {
    const std::string path = folder.file("problem.safetensors");
    description.queries = description.keys = 4;
    test::write_case_file(description, path);
    return reference::contract_for(reference::read_input(path), ranks);
  };
  const auto of_type = [](int q_type, int kv_type) {
    CaseDescription description;
    description.q_type = q_type, description.kv_type = kv_type;
    return description;
  };
  CHECK(contract(of_type(0, 0), 1) == "fp64");
  CHECK(contract(of_type(1, 0), 1) == "fp32");
  CHECK(contract(of_type(1, 0), 2) == "fp32-ring");
  CHECK(contract(of_type(2, 0), 2) == "bf16-io-ring");
  CHECK(contract(of_type(2, 2), 2) == "bf16-io-ring");  // 8-bit keys are bf16 numbers
  CHECK(contract(of_type(2, 1), 2) == "fp32-ring");     // fp32 keys are not
  CHECK(contract(of_type(3, 0), 1) == "fp16-io");
  CHECK(contract(of_type(4, 0), 1) == "fp32");
  CaseDescription capped = of_type(1, 0);
  capped.softcap = 1;
  CHECK(contract(capped, 1) == "fp32");
  capped.softcap = 2;  // 1.7 is no binary32 number
  CHECK(contract(capped, 1) == R"({"base":"fp32","score":{"softcap":{"roundings":2}}})");
  CaseDescription scaled = of_type(2, 0);
  scaled.factors = 1;
  CHECK(contract(scaled, 1) ==
        R"({"base":"fp32","inputs":{"load_u":"0x1p-24"},"score":{"eta":"0x1p-126"}})");

  const std::string path = folder.file("problem.safetensors"), out = folder.file("out.safetensors");
  const auto ring_after = [&](int rows) {
    CaseDescription description;
    description.queries = description.keys = 6, description.rows = rows;
    test::write_case_file(description, path);
    test::run_reference(path, RingPlan{2, Layout::striped, Direction::up}, out);
    return oracle::read_case(out).problem.spec.ring;
  };
  REQUIRE(ring_after(0));
  CHECK(ring_after(0)->layout == oracle::RingLayout::striped);
  CHECK(ring_after(0)->order == oracle::RingOrder::up);
  CHECK_FALSE(ring_after(1));  // positions inside documents are not the rows that were dealt
  CHECK_FALSE(ring_after(3));
}
