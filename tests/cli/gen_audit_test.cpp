// `ringproof gen` and `ringproof audit` as a user runs them.
#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

using namespace ringproof::test;

TEST_CASE("gen writes a folder of problems that check skips, because they hold no answers") {
  const TemporaryFolder folder;
  const std::string suite = folder.path("vectors");
  const Run run = run_ringproof("gen vectors -o " + suite + " --threads 1");
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK(contains(run.out, "cases of suite vectors, seed 1"));
  CHECK(contains(text_of_file(suite + "/suite.json"), "\"sha256\""));
  CHECK(run_ringproof("check " + suite + "/normal.full.bf16.safetensors").code == 77);
  // The folder is there now, and is left alone.
  const Run again = run_ringproof("gen vectors -o " + suite);
  CHECK(again.code == 2);
  CHECK(contains(again.err, "exists already"));
}

TEST_CASE("gen refuses a suite it does not know, and needs a folder") {
  CHECK(run_ringproof("gen everything -o /no/such").code == 2);
  const Run run = run_ringproof("gen quick");
  CHECK(run.code == 2);
  CHECK(contains(run.err, "-o names no folder"));
  const Run threads = run_ringproof("gen quick --threads 0 -o /no/such");
  CHECK(threads.code == 2);
  CHECK(contains(threads.err, "--threads: Value 0 not in range 1 to 1024 (usage"));
  for (const char* seed : {"-1", "1.5", "0x1", "", "18446744073709551616"}) {
    const Run other = run_ringproof("gen quick -o /no/such --seed '" + std::string(seed) + "'");
    CHECK(other.code == 2);
    CHECK(contains(other.err, "is no seed (0, 1, 2, ...)"));
  }
  CHECK(contains(run_ringproof("gen --help").out, "quick, full, long or vectors"));
}

TEST_CASE("audit takes a rule as JSON and says which mistakes it accepts") {
  const Run run = run_ringproof(
      R"(audit --rows 8 --forms 1 --threads 1 --rule '{"name": "loose", "inputs": {"keys": 32,)"
      R"( "head_dim": 8}, "compares": {"out": [{"kind": "close", "atol": 8}]}}')");
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK(contains(run.out, "accepts zeros"));
  const Run unknown = run_ringproof("audit --rule no-such-rule");
  CHECK(unknown.code == 2);
  CHECK(contains(unknown.err, "flash-attention"));
  const Run negative = run_ringproof(
      R"(audit --rule '{"name": "loose", "compares": {"out": [{"kind": "cosine", "atol": -1}]}}')");
  CHECK(negative.code == 2);
  CHECK(negative.out.empty());
  CHECK(contains(negative.err, R"(--rule: rule "loose", compares.out[0]: atol belongs to close)"));
  // The table is of no case and of no other rule, and says so instead of leaving them out.
  for (const char* other : {"x.safetensors", "--rule flash-attention", "--shards x.safetensors"}) {
    const Run table = run_ringproof(std::string("audit --table ") + other);
    CHECK(table.code == 2);
    CHECK(contains(table.err, "--table"));
  }
  const Run threads = run_ringproof("audit --table --threads 1025");
  CHECK(contains(threads.err, "not in range 1 to 1024"));
}
