// The MPI tier before the judge: both tiles on every semantics, layout and number of ranks, forward
// and backward, under the contract that the tier declares (C19). Ranks are threads here; the same
// rings between processes are in mpi_program_test.cpp.
#include "mpi/cli/tile_options.hpp"
#include "tests/support/property.hpp"
#include "tests/tiers/case_description.hpp"
#include "tests/tiers/judged.hpp"
#include "tests/unit/mpi/local_ring.hpp"

using namespace ringproof;
using mpi::TileKind;
using reference::Direction;
using reference::Index;
using reference::Layout;
using reference::Pass;
using reference::RingPlan;
using test::CaseDescription;

namespace {

template <class Real>
void run_mpi_in(const reference::CaseInput& input, const RingPlan& plan, mpi::TileChoice choice,
                const std::string& out, Pass pass) {
  const reference::CaseProblem<Real> owned(input);
  choice.wire = mpi::wire_type(input.views.problem);
  const auto upstream = owned.upstream();
  const auto run = test::run_local_ring<Real>(
      owned.problem(), pass == Pass::backward ? &upstream : nullptr, plan,
      [&](mpi::RankProblem<Real> mine) { return mpi::make_tile(choice, std::move(mine)); });
  const std::string preset =
      std::same_as<Real, double> ? "" : mpi::tile_preset(choice, output_type(input, pass));
  write_answer(input, plan, run.answer, out, pass == Pass::backward ? &run.gradients : nullptr,
               preset);
}

/// Runs a case through the tier, as the program does, with threads as ranks.
void run_mpi(const std::string& problem, const RingPlan& plan, const mpi::TileChoice& choice,
             const std::string& out, Pass pass) {
  const reference::CaseInput input = reference::read_input(problem);
  if (arithmetic_for(input, pass) == reference::Arithmetic::fp64) {
    run_mpi_in<double>(input, plan, choice, out, pass);
  } else {
    run_mpi_in<float>(input, plan, choice, out, pass);
  }
}

std::string failures(const oracle::Report& report) {
  std::string text;
  for (const oracle::AnswerReport& answer : report.answers) {
    if (answer.verdict == oracle::Verdict::fail) text += std::string(name(answer.kind)) + " ";
  }
  return text;
}

}  // namespace

TEST_CASE(
    "C19: no answer of the vector tile is refused, on every semantics, forward and backward") {
  const test::TemporaryFolder folder;
  test::property("certified", [&](CaseDescription description) {
    if (description.q_type == 0) description.q_type = 1;  // binary64 is the scalar tile's
    description.upstream = 3;
    const std::string problem = folder.file("problem.safetensors");
    const std::string out = folder.file("answer.safetensors");
    test::write_case_file(description, problem);
    const RingPlan plan{*rc::gen::inRange<Index>(1, 9),
                        *rc::gen::element(Layout::contiguous, Layout::zigzag, Layout::striped),
                        *rc::gen::element(Direction::down, Direction::up)};
    run_mpi(problem, plan, {.kind = TileKind::simd}, out, Pass::backward);
    RC_ASSERT(failures(test::judge_file(out)) == "");
  });
}

TEST_CASE(
    "C19: the vector tile on full tiles and their edges is certified: mask x layout x type x P") {
  const test::TemporaryFolder folder;
  const std::string problem = folder.file("problem.safetensors");
  const std::string out = folder.file("answer.safetensors");
  int judged = 0;
  for (const int q_type : {1, 2, 3}) {  // fp32, bf16, fp16
    for (int mask = 0; mask < 4; ++mask) {
      CaseDescription description;
      description.q_type = q_type;
      description.queries = description.keys = 131, description.head_dim = 24;
      description.value_dim = 17, description.upstream = 3, description.seed = 7;
      description.causal = mask == 1 ? 1 : 0;
      if (mask == 2) description.window_left = 40, description.window_right = 3;
      if (mask == 3) description.rows = 1, description.sinks = true, description.group = 2;
      test::write_case_file(description, problem);
      for (const Layout layout : {Layout::contiguous, Layout::zigzag, Layout::striped}) {
        for (const Index P : {1, 2, 3, 4, 5, 7, 8}) {
          const bool backward = P == 1 || P == 4 || P == 7;
          run_mpi(problem, {P, layout, Direction::down}, {.kind = TileKind::simd}, out,
                  backward ? Pass::backward : Pass::forward);
          const oracle::Report report = test::judge_file(out);
          INFO("type " << q_type << " mask " << mask << " P " << P << ": " << failures(report));
          for (const oracle::AnswerReport& answer : report.answers) {
            INFO(name(answer.kind) << ": " << answer.reason);
            CHECK(answer.verdict == oracle::Verdict::pass);
          }
          CHECK(report.answers.size() == (backward ? (mask == 3 ? 6 : 5) : 2));
          ++judged;
        }
      }
    }
  }
  CHECK(judged == 3 * 4 * 3 * 7);
}
