// ringproof-mpi between real processes: the same files as the reference, to the byte, and what it
// says and leaves behind when something goes wrong on one rank. And ringproof-mpi-check: the report
// of one process, to the byte.
#include <array>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "tests/support/catch.hpp"
#include "tests/tiers/case_description.hpp"
#include "tests/tiers/judged.hpp"

using namespace ringproof;
namespace fs = std::filesystem;

namespace {

struct Outcome {
  int status;
  double seconds;
  std::string text;  // standard output and standard error
};

Outcome shell(const std::string& command) {
  const auto begin = std::chrono::steady_clock::now();
  FILE* pipe = popen(("( " + command + " ) 2>&1 < /dev/null").c_str(), "r");
  REQUIRE(pipe != nullptr);
  Outcome outcome{};
  std::array<char, 4096> buffer;
  while (const std::size_t size = fread(buffer.data(), 1, buffer.size(), pipe)) {
    outcome.text.append(buffer.data(), size);
  }
  outcome.status = WEXITSTATUS(pclose(pipe));
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return outcome;
}

const std::string kMpirun = RINGPROOF_MPIRUN, kProgram = RINGPROOF_MPI_PROGRAM;
const std::string kMpiCheck = RINGPROOF_MPI_CHECK_PROGRAM;

Outcome mpi_run(int ranks, const std::string& arguments) {
  return shell(kMpirun + " -n " + std::to_string(ranks) + " " + kProgram + " " + arguments);
}

std::string content(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct Place {
  test::TemporaryFolder folder;
  std::string problem = folder.file("problem.safetensors"), out = folder.file("out.safetensors");

  explicit Place(std::int64_t rows = 19) {
    test::CaseDescription description;
    description.group = 2, description.queries = description.keys = rows;
    description.head_dim = 6, description.value_dim = 5, description.causal = 1;
    description.sinks = true, description.bias = 2, description.upstream = 3;
    description.seed = 1;
    test::write_case_file(description, problem);
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator{}));
  }
};

}  // namespace

TEST_CASE("C19: between processes the scalar tile writes the reference's file, byte for byte") {
  const Place place;
  const std::string reference = place.folder.file("reference.safetensors");
  for (const int ranks : {1, 3, 4}) {
    for (const char* layout : {"contiguous", "zigzag", "striped"}) {
      const std::string options = place.problem + " --backward --layout " + layout;
      const Outcome expected = shell(std::string(RINGPROOF_REFERENCE_PROGRAM) + " " + options +
                                     " --ranks " + std::to_string(ranks) + " -o " + reference);
      INFO(expected.text);
      REQUIRE(expected.status == 0);
      const std::string debug = ranks == 3 ? " --debug-transport 7" : "";
      const Outcome outcome = mpi_run(ranks, options + debug + " --tile scalar -o " + place.out);
      INFO(outcome.text);
      REQUIRE(outcome.status == 0);
      CHECK(content(place.out) == content(reference));
    }
  }
  CHECK(place.files() == 3);
}

TEST_CASE("C19: more ranks than rows, and the vector tile: answers that pass without a flag") {
  const Place place(5);
  const Outcome outcome = mpi_run(7, place.problem + " -o " + place.out);
  INFO(outcome.text);
  REQUIRE(outcome.status == 0);
  CHECK(contains(outcome.text, "ring: 7 ranks"));
  CHECK(test::judge_file(place.out).find(oracle::AnswerKind::out)->tally.failed == 0);
}

TEST_CASE("C8: the trace of the processes: posted before, waited for after the arithmetic") {
  const Place place;
  const std::string trace_path = place.folder.file("trace.jsonl");
  const Outcome outcome =
      mpi_run(3, place.problem + " --layout striped -o " + place.out + " --trace " + trace_path);
  INFO(outcome.text);
  REQUIRE(outcome.status == 0);
  std::ifstream stream(trace_path);
  const reference::Trace trace = reference::read_trace(stream);
  std::array<int, 3> next{};
  using reference::Action;
  const Action expected[] = {Action::post,    Action::compute, Action::wait,   Action::post,
                             Action::compute, Action::wait,    Action::compute};
  for (const auto& event : trace) {
    REQUIRE(next[event.rank] < 7);
    CHECK(event.action == expected[next[event.rank]++]);
  }
  CHECK(next == std::array<int, 3>{7, 7, 7});
}

TEST_CASE("ringproof-mpi: bad usage and bad input end with status 2, one message and no file") {
  const Place place;
  std::ofstream(place.folder.file("text")) << "no tensors here";
  const std::size_t before = place.files();
  const std::pair<std::string, std::string> cases[] = {
      {place.problem, "needed"},
      {place.problem + " -o " + place.out + " --layout spiral",
       "ringproof-mpi: --layout: \"spiral\" is none of contiguous, zigzag, striped (usage"},
      {place.problem + " -o " + place.out + " --tile gpu", "\"gpu\" is none of simd, scalar"},
      {place.folder.file("absent") + " -o " + place.out, "absent"},
      {place.folder.file("text") + " -o " + place.out, "text"},
      {place.problem + " -o " + place.problem, "is the input"},
      {place.problem + " -o " + place.out + " --trace " + place.problem, "the trace needs a file"},
      {place.problem + " -o " + place.out + " --trace " + place.out, "is the answer's file"},
      {place.problem + " -o " + place.folder.file("no/such/folder"), "no/such/folder"},
      {place.problem + " -o " + place.folder.path().string(), "directory"},
  };
  for (const auto& [arguments, word] : cases) {
    const Outcome outcome = mpi_run(2, arguments);
    INFO(arguments << "\n" << outcome.text);
    CHECK(outcome.status == 2);
    CHECK(contains(outcome.text, word));
    CHECK(place.files() == before);
  }
}

TEST_CASE("Ranks that are given other options than rank 0, or cannot read theirs, stop together") {
  const Place place;
  const std::string given = " " + place.problem + " -o " + place.out;
  const std::pair<std::string, std::string> cases[] = {
      {" --layout striped", "rank 2: is given other options than rank 0"},
      {" --order up", "rank 2: is given other options than rank 0"},
      {" --backward", "rank 2: is given other options than rank 0"},
      {" --trace " + place.folder.file("trace"), "rank 2: is given other options than rank 0"},
      {" --layout spiral", "\"spiral\" is none of"},
  };
  for (const auto& [option, word] : cases) {
    const Outcome outcome =
        shell(kMpirun + " -n 2 " + kProgram + given + " : -n 1 " + kProgram + given + option);
    INFO(option << "\n" << outcome.text);
    CHECK(outcome.status == 2);
    CHECK(contains(outcome.text, word));
    CHECK(place.files() == 1);
  }
}

TEST_CASE("A rank that reads another case, or a truncated one, is named, and nothing is written") {
  const Place place;
  const std::string other = place.folder.file("other.safetensors");
  const auto mixed = [&] {
    return shell(kMpirun + " -n 2 " + kProgram + " " + place.problem + " -o " + place.out +
                 " : -n 1 " + kProgram + " " + other + " -o " + place.out);
  };
  std::string bytes = content(place.problem);
  bytes[bytes.size() - 5] ^= 1;  // one number of one tensor
  std::ofstream(other, std::ios::binary) << bytes;
  const Outcome different = mixed();
  INFO(different.text);
  CHECK(different.status == 2);
  CHECK(contains(different.text, "rank 2: "));
  CHECK(contains(different.text, "another case"));

  std::ofstream(other, std::ios::binary) << bytes.substr(0, bytes.size() - 16);
  const Outcome truncated = mixed();
  INFO(truncated.text);
  CHECK(truncated.status == 2);
  CHECK(contains(truncated.text, "rank 2: "));
  CHECK(contains(truncated.text, "other.safetensors"));
  CHECK(place.files() == 2);
}

TEST_CASE("A rank that cannot write its rows is named, and no part of the answer is left") {
  const Place place(400);
  // The limit on the size of files bites one rank where a full disk would.
  const Outcome outcome = shell(kMpirun + " -n 1 " + kProgram + " " + place.problem + " -o " +
                                place.out + " : -n 1 sh -c 'ulimit -f 4; exec " + kProgram + " " +
                                place.problem + " -o " + place.out + "'");
  INFO(outcome.text);
  CHECK(outcome.status == 2);
  CHECK(contains(outcome.text, "rank 1: "));
  CHECK(contains(outcome.text, "cannot be written"));
  CHECK(place.files() == 1);
}

TEST_CASE("ringproof-mpi-check reports what ringproof check reports, byte for byte") {
  const Place place;
  const std::string spoilt = place.folder.file("spoilt.safetensors");
  const std::string alone = place.folder.file("alone.json"), spread = place.folder.file("p.json");
  REQUIRE(mpi_run(2, place.problem + " --backward -o " + place.out).status == 0);
  std::string bytes = content(place.out);
  bytes[bytes.size() - 9] ^= 0x40;  // one number of one answer
  std::ofstream(spoilt, std::ios::binary) << bytes;
  const std::tuple<std::string, int, const char*> cases[] = {
      {place.out, 0, "PASS"},
      {spoilt, 1, "FAIL"},
      {place.out + " " + spoilt, 1, "2 cases"},
      {place.out + " --power 1e-30", 3, "UNDECIDED"},
      {place.problem, 77, "SKIPPED"},
      {place.out + " --only out --rows 5 --seed 2", 0, "PASS"},
  };
  for (const auto& [arguments, status, word] : cases) {
    const Outcome expected =
        shell(std::string(RINGPROOF_PROGRAM) + " check " + arguments + " --report json=" + alone);
    INFO(expected.text);
    REQUIRE(expected.status == status);
    REQUIRE(contains(expected.text, word));
    for (const int ranks : {1, 2, 3, 5}) {
      const Outcome outcome = shell(kMpirun + " -n " + std::to_string(ranks) + " " + kMpiCheck +
                                    " " + arguments + " --report json=" + spread);
      INFO(ranks << " ranks\n" << outcome.text);
      CHECK(outcome.status == status);
      CHECK(outcome.text.starts_with(expected.text));  // mpirun has words about a status of its own
      CHECK(content(spread) == content(alone));
    }
  }
}

TEST_CASE("ringproof-mpi-check names the rank that reads another case, and says bad input once") {
  const Place place;
  const std::string other = place.folder.file("other.safetensors");
  REQUIRE(mpi_run(2, place.problem + " -o " + place.out).status == 0);
  std::string bytes = content(place.out);
  bytes[bytes.size() - 5] ^= 1;
  const auto mixed = [&](const std::string& content_of_other) {
    std::ofstream(other, std::ios::binary) << content_of_other;
    const auto on = [&](const std::string& file) { return kMpiCheck + " " + file; };
    return shell("cd " + place.folder.path().string() + " && mkdir -p far && cp " + other +
                 " far/out.safetensors && cp problem.safetensors far && " + kMpirun + " -n 2 " +
                 on("out.safetensors") + " : -n 1 -wdir " + place.folder.path().string() + "/far " +
                 on("out.safetensors"));
  };
  const Outcome different = mixed(bytes);
  INFO(different.text);
  CHECK(different.status == 2);
  CHECK(contains(different.text, "rank 2: out.safetensors: is another case than rank 0 reads"));
  const Outcome truncated = mixed(bytes.substr(0, bytes.size() - 16));
  INFO(truncated.text);
  CHECK(truncated.status == 2);
  CHECK(contains(truncated.text, "rank 2: out.safetensors: "));
  const Outcome absent = shell(kMpirun + " -n 3 " + kMpiCheck + " " + place.folder.file("absent"));
  INFO(absent.text);
  CHECK(absent.status == 2);
  CHECK(absent.text.find("absent") == absent.text.rfind("absent"));
  CHECK(shell(kMpirun + " -n 2 " + kMpiCheck + " --spiral").status == 2);
  for (const char* option : {" --spiral", " --help", " --only out", " --rows 3"}) {
    const Outcome apart = shell(kMpirun + " -n 2 " + kMpiCheck + " " + place.out + " : -n 1 " +
                                kMpiCheck + " " + place.out + option);
    INFO(option << "\n" << apart.text);
    CHECK(apart.status == 2);
    CHECK(contains(apart.text, "rank 2: is given another command line than rank 0"));
  }
}

TEST_CASE("A rank that is killed ends the job within ten seconds, by name, leaving nothing") {
  const Place place(3000);
  const std::string run = kProgram + " " + place.problem + " --tile scalar -o " + place.out;
  const Outcome outcome = shell(kMpirun + " -n 1 " + run +
                                " : -n 1 sh -c '(sleep 0.5; kill -9 $$) & exec " + run + "'");
  INFO(outcome.text);
  CHECK(outcome.status != 0);
  CHECK(outcome.seconds < 10);
  CHECK(contains(outcome.text, "rank 1"));
  CHECK(contains(outcome.text, "Killed"));
  CHECK(place.files() == 1);
}

TEST_CASE("A rank that is killed while the answer is written leaves no part of it") {
  const Place place(3000);
  const std::string run = kProgram + " " + place.problem + " --tile scalar -o " + place.out;
  const Outcome outcome = shell(kMpirun + " -n 1 sh -c '(until ls " + place.out +
                                ".*; do sleep 0.01; kill -0 $$ || exit; done; kill -9 $$) " +
                                "> /dev/null 2>&1 & exec " + run + "' : -n 2 " + run);
  INFO(outcome.text);
  for (const auto& entry : fs::directory_iterator(place.folder.path())) {
    CHECK(entry.path().extension() != ".part");
  }
}
