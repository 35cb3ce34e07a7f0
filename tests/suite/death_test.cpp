// Kernels that crash, exit or hang: reported, never fatal, and nobody waits twice for the same.
#include "tests/suite/reference_candidate.hpp"
#include "tests/suite/test_kernels.hpp"

using namespace ringproof;
using namespace ringproof::suite;

namespace {

/// A kernel in this process that hangs, or says so, where a problem is of this kind.
struct Hanging {
  bool (*hangs)(const ringproof_problem&);
  int hung = 0;

  Candidate candidate() {
    Candidate candidate;
    candidate.name = "hanging";
    candidate.context = this;
    candidate.run = [](void* context, const ringproof_problem* problem, ringproof_answer* answer) {
      auto* self = static_cast<Hanging*>(context);
      if (self->hangs(*problem)) {
        ++self->hung;
        throw KernelDied("no answer in time", Death::hung);
      }
      if (problem->dout.data != nullptr) return 1;
      Call<float>(*problem).answer(*answer);
      return 0;
    };
    return candidate;
  }
};

struct Hung {
  Outcome outcome;
  std::string text;
  int hung_in_probe = 0;
  Features support;
};

Hung run_hanging(Hanging hanging, SuiteOptions options) {
  const Folder folder;
  Trial trial(hanging.candidate(), "fp32");
  options.folder = folder.path / "failures";
  const Probed probed = probe(trial);
  Hung ran;
  ran.hung_in_probe = hanging.hung;
  std::ostringstream stream;
  ran.outcome = run_suite(trial, options, stream, probed);
  ran.text = stream.str();
  ran.support = trial.sizes().support;
  return ran;
}

}  // namespace

TEST_CASE("a kernel that crashes, exits or hangs is reported, and the suite goes on") {
  const Folder folder;
  for (const auto& [fault, words] :
       {std::pair{"crash", "the kernel crashed (Aborted)"},
        std::pair{"exit", "the kernel ended its process with exit status 0"},
        std::pair{"hang", "the kernel did not return within 300 ms"}}) {
    const Ran ran = run_kernel(kernel(fault), folder, "fp32",
                               {.only = {"no-mask", "grouped-heads", "determinism"}});
    INFO(fault << "\n" << ran.text);
    CHECK(contains(ran.why(), words));
    CHECK(ran.outcome.laws.size() >= 3);
  }
}

TEST_CASE("a kernel that never answers is reported once, and no law runs") {
  const Hung ran =
      run_hanging({[](const ringproof_problem&) { return true; }}, {.require = {Feature::sinks}});
  INFO(ran.text);
  CHECK(ran.hung_in_probe == 1);
  REQUIRE(ran.outcome.laws.size() == 1);
  CHECK(ran.outcome.laws[0].law->id == "probe");
  CHECK(contains(ran.text, "no answer in time"));
  CHECK(contains(ran.text, "probe.safetensors"));
  CHECK(contains(ran.text, "unknown, since the kernel died in the probe: every feature\n"));
  CHECK_FALSE(contains(ran.text, "not supported"));
  CHECK(contains(ran.text, "FAIL      required, but unknown: sinks\n"));
  CHECK(exit_code(ran.outcome) == 1);
}

TEST_CASE("the probe stops at the first hang, and the laws run on what is known by then") {
  const Hung ran =
      run_hanging({[](const ringproof_problem& p) { return p.causal != RINGPROOF_CAUSAL_NONE; }},
                  {.count = 1, .only = {"no-mask", "grouped-heads", "causal-top-left", "softcap"}});
  INFO(ran.text);
  CHECK(ran.hung_in_probe == 1);
  CHECK(ran.support.has(Feature::grouped_heads));
  CHECK_FALSE(ran.support.has(Feature::softcap));
  CHECK(ran.outcome.laws.size() == 5);  // the probe counts
  CHECK(contains(ran.text, "FAIL      probe"));
  CHECK(contains(ran.text, "PASS      grouped-heads"));
  CHECK(contains(ran.text, "\nnot supported: gradients, ranks, zigzag, striped, up\n"));
  CHECK(contains(ran.text, "unknown, since the kernel died in the probe: causal_top_left, "));
  CHECK(exit_code(ran.outcome) == 1);
}

TEST_CASE("after three laws that hung the others are not run") {
  const Hung ran = run_hanging({[](const ringproof_problem& p) { return p.k.shape[2] > 4; }},
                               {.count = 1, .shrink = std::chrono::milliseconds(0)});
  INFO(ran.text);
  CHECK(ran.hung_in_probe == 0);
  CHECK(ran.outcome.not_run > 50);
  CHECK(contains(ran.text, "the kernel hung in 3 laws"));
  CHECK(exit_code(ran.outcome) == 1);
}

TEST_CASE("whoever waits for a slow kernel sees every call") {
  int shown = 0;
  long calls = 0;
  bool ended = false;
  Hanging kernel{[](const ringproof_problem&) { return false; }};
  Trial trial(kernel.candidate(), "fp32");
  SuiteOptions options{.count = 2, .only = {"block-order"}};
  options.progress = [&](const Progress& now) {
    ++shown;
    calls = now.calls;
    ended = now.law.empty();
    if (!ended) CHECK((now.law == "block-order" && now.problem <= 2 && now.problems == 2));
  };
  const Probed probed = probe(trial);
  const long before = trial.calls();
  std::ostringstream stream;
  run_suite(trial, options, stream, probed);
  CHECK(shown == trial.calls() - before + 1);
  CHECK(calls == trial.calls());
  CHECK(ended);
}
