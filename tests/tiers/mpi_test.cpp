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

constexpr Layout kLayouts[] = {Layout::contiguous, Layout::zigzag, Layout::striped};
constexpr Index kRanks[] = {1, 2, 3, 4, 5, 7, 8};

/// Runs tiers on a problem and has every answer certified.
struct Certifier {
  test::TemporaryFolder folder;
  std::string problem = folder.file("problem.safetensors"), out = folder.file("out.safetensors");
  int mask = 0, q_type = 0;
  int rings = 0;

  void take(int of_mask, int of_type) {
    mask = of_mask, q_type = of_type;
    test::write_case_file(masked(mask, q_type), problem);
  }
  void certify(Tier tier, const RingPlan& plan, Pass pass) {
    run_tier(tier, problem, plan, out, pass);
    const oracle::Report report = test::judge_file(out);
    INFO("tier " << static_cast<int>(tier) << " type " << q_type << " mask " << mask << " P "
                 << plan.ranks << ": " << failures(report));
    for (const oracle::AnswerReport& answer : report.answers) {
      INFO(name(answer.kind) << ": " << answer.reason);
      CHECK(answer.verdict == oracle::Verdict::pass);
    }
    const std::size_t sums = mask == 3 || mask == 4 ? 1 : 0;  // dsinks, dbias
    CHECK(report.answers.size() == (pass == Pass::backward ? 5 + sums : 2));
    ++rings;
  }
};

}  // namespace

TEST_CASE(
    "C19: the vector tile on full tiles and their edges is certified: mask x layout x type x P") {
  Certifier certifier;
  for (int q_type = 1; q_type < 4; ++q_type) {  // fp32, bf16, fp16
    for (int mask = 0; mask < 4; ++mask) {
      certifier.take(mask, q_type);
      for (const Layout layout : kLayouts) {
        for (const Index P : kRanks) {
          const bool backward = P == 1 || P == 4 || P == 7;
          certifier.certify(Tier::vector_tile, {P, layout, Direction::down},
                            backward ? Pass::backward : Pass::forward);
        }
      }
    }
  }
  CHECK(certifier.rings == 3 * 4 * 3 * 7);
}

// 1386 rings, each with its gradients, in most of a minute: [.product]; one of twelve parts with
// -c "bf16, zigzag".
TEST_CASE("C19: every tier is certified: tier x mask x layout x type x P", "[.product]") {
  const char* types[] = {"fp64", "fp32", "bf16", "fp16"};
  const char* layouts[] = {"contiguous", "zigzag", "striped"};
  for (int q_type = 0; q_type < 4; ++q_type) {
    for (const Layout layout : kLayouts) {
      DYNAMIC_SECTION(types[q_type] << ", " << layouts[static_cast<int>(layout)]) {
        Certifier certifier;
        for (int mask = 0; mask < 6; ++mask) {
          certifier.take(mask, q_type);
          for (const Tier tier : {Tier::reference, Tier::scalar_tile, Tier::vector_tile}) {
            if (tier == Tier::vector_tile && q_type == 0) continue;  // binary64 is not its own
            for (const Index P : kRanks) {
              certifier.certify(tier, {P, layout, Direction::down}, Pass::backward);
            }
          }
        }
        CHECK(certifier.rings == (q_type == 0 ? 2 : 3) * 6 * 7);
        WARN(certifier.rings << " rings certified");
      }
    }
  }
}
