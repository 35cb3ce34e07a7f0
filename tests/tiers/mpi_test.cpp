// The MPI tier before the judge: both tiles on every semantics, layout and number of ranks, forward
// and backward, under the contract that the tier declares (C19). Ranks are threads here; the same
// rings between processes are in mpi_program_test.cpp.
#include <cstdlib>

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

namespace {

enum class Tier { reference, scalar_tile, vector_tile };

/// One of the masks of the product below: rows enough for full tiles and for their edges.
CaseDescription masked(int mask, int q_type) {
  CaseDescription description;
  description.q_type = q_type;
  description.queries = description.keys = 131, description.head_dim = 24;
  description.value_dim = 17, description.upstream = 3, description.seed = 7;
  description.causal = mask == 1 ? 1 : 0;
  if (mask == 2) description.window_left = 40, description.window_right = 3;
  if (mask == 3) description.rows = 1, description.sinks = true, description.group = 2;
  if (mask == 4) description.mask = 2, description.bias = 2;
  if (mask == 5) description.alibi = 1, description.softcap = 1, description.causal = 2;
  return description;
}

void run_tier(Tier tier, const std::string& problem, const RingPlan& plan, const std::string& out,
              Pass pass) {
  if (tier == Tier::reference) return test::run_reference(problem, plan, out, pass);
  const TileKind kind = tier == Tier::scalar_tile ? TileKind::scalar : TileKind::simd;
  run_mpi(problem, plan, {.kind = kind}, out, pass);
}

}  // namespace

// The complete product, with RINGPROOF_COMPLETE=1, takes minutes: all tiers, and gradients always.
TEST_CASE(
    "C19: the vector tile on full tiles and their edges is certified: mask x layout x type x P") {
  const bool complete = std::getenv("RINGPROOF_COMPLETE") != nullptr;
  const test::TemporaryFolder folder;
  const std::string problem = folder.file("problem.safetensors");
  const std::string out = folder.file("answer.safetensors");
  int judged = 0, answers = 0;
  const auto certify = [&](Tier tier, int q_type, int mask, const RingPlan& plan) {
    const bool backward = complete || plan.ranks == 1 || plan.ranks == 4 || plan.ranks == 7;
    run_tier(tier, problem, plan, out, backward ? Pass::backward : Pass::forward);
    const oracle::Report report = test::judge_file(out);
    INFO("tier " << static_cast<int>(tier) << " type " << q_type << " mask " << mask << " P "
                 << plan.ranks << ": " << failures(report));
    for (const oracle::AnswerReport& answer : report.answers) {
      INFO(name(answer.kind) << ": " << answer.reason);
      CHECK(answer.verdict == oracle::Verdict::pass);
    }
    const std::size_t sums = mask == 3 || mask == 4 ? 1 : 0;  // dsinks, dbias
    CHECK(report.answers.size() == (backward ? 5 + sums : 2));
    ++judged, answers += static_cast<int>(report.answers.size());
  };
  for (int q_type = complete ? 0 : 1; q_type < 4; ++q_type) {  // fp64, fp32, bf16, fp16
    for (int mask = 0; mask < (complete ? 6 : 4); ++mask) {
      test::write_case_file(masked(mask, q_type), problem);
      for (const Tier tier : {Tier::reference, Tier::scalar_tile, Tier::vector_tile}) {
        if (tier == Tier::vector_tile ? q_type == 0 : !complete) continue;
        for (const Layout layout : {Layout::contiguous, Layout::zigzag, Layout::striped}) {
          for (const Index P : {1, 2, 3, 4, 5, 7, 8}) {
            certify(tier, q_type, mask, {P, layout, Direction::down});
          }
        }
      }
    }
  }
  CHECK(judged == (complete ? (3 * 3 + 2) * 6 * 3 * 7 : 3 * 4 * 3 * 7));
  if (complete) WARN(judged << " rings, " << answers << " answers certified");
}
