// The program ringproof-reference from outside: files, exit statuses, messages, schedules.
#include <array>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/catch.hpp"
#include "tests/tiers/case_description.hpp"
#include "tests/tiers/judged.hpp"

using namespace ringproof;
namespace fs = std::filesystem;

namespace {

struct Outcome {
  int status;
  std::string text;  // standard output and standard error
};

Outcome run(const std::string& arguments) {
  const std::string command = std::string(RINGPROOF_REFERENCE_PROGRAM) + " " + arguments + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  Outcome outcome{};
  std::array<char, 4096> buffer;
  while (const std::size_t size = fread(buffer.data(), 1, buffer.size(), pipe)) {
    outcome.text.append(buffer.data(), size);
  }
  outcome.status = WEXITSTATUS(pclose(pipe));
  return outcome;
}

/// A folder with a small causal problem of two heads on one key head.
struct Place {
  test::TemporaryFolder folder;
  std::string problem = folder.file("problem.safetensors"), out = folder.file("out.safetensors");

  Place() {
    test::CaseDescription description;
    description.group = 2, description.queries = description.keys = 10;
    description.head_dim = description.value_dim = 4, description.causal = 1, description.seed = 1;
    test::write_case_file(description, problem);
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator{}));
  }
};

}  // namespace

TEST_CASE(
    "C19: ringproof-reference writes an answer that `ringproof check` passes without a flag") {
  const Place place;
  for (const char* options :
       {"", "--ranks 3", "--ranks 4 --layout zigzag --order up", "--ranks 16 --layout striped"}) {
    const Outcome outcome = run(place.problem + " -o " + place.out + " " + options);
    INFO(outcome.text);
    CHECK(outcome.status == 0);
    CHECK(test::judge_file(place.out).verdict == oracle::Verdict::pass);
  }
}

TEST_CASE("C5: the program's trace file reads back and holds the steps of the schedule") {
  const Place place;
  const std::string trace_path = place.folder.file("trace.jsonl");
  const Outcome outcome =
      run(place.problem + " -o " + place.out + " --ranks 4 --trace " + trace_path);
  REQUIRE(outcome.status == 0);
  std::ifstream stream(trace_path);
  const reference::Trace trace = reference::read_trace(stream);
  CHECK(trace.size() == 4 * 4 + 2 * 4 * 3);
  reference::Index pairs = 0;
  for (const auto& event : trace) {
    pairs += event.pairs;
    if (event.action != reference::Action::wait) {
      CHECK(event.block == (event.rank - event.step + 4) % 4);
    }
  }
  CHECK(pairs == 2 * 10 * 11 / 2);
  CHECK(place.files() == 3);  // nothing beside problem, answer and trace
}

TEST_CASE("ringproof-reference: --backward adds the gradients that the case has inputs for") {
  const test::TemporaryFolder folder;
  const std::string problem = folder.file("problem.safetensors"), out = folder.file("out");
  test::CaseDescription description;
  description.group = 2, description.queries = description.keys = 7, description.head_dim = 3;
  description.value_dim = 2, description.layout = 1, description.upstream = 3;
  for (const bool extras : {false, true}) {
    description.bias = extras ? 3 : 0, description.sinks = extras;
    test::write_case_file(description, problem);
    const Outcome outcome = run(problem + " --backward --ranks 3 --layout zigzag -o " + out);
    INFO(outcome.text);
    REQUIRE(outcome.status == 0);
    const oracle::Case answered = oracle::read_case(out);  // checks every shape
    CHECK(answered.answers.size() == (extras ? 7 : 5));

    const reference::CaseInput input = reference::read_input(problem);
    const reference::CaseProblem<float> owned(input);
    reference::Trace trace;
    const auto [answer, gradients] = reference::ring_attention_backward(
        owned.problem(), owned.upstream(), {3, reference::Layout::zigzag}, trace);
    const oracle::Tensor& dk = answered.find(oracle::AnswerKind::dk)->tensor;
    for (int j = 0; j < 7; ++j) {
      for (int d = 0; d < 3; ++d) CHECK(dk.at(0, 0, j, d) == gradients.dk[j * 3 + d]);
    }
    if (!extras) continue;
    const oracle::Tensor& dbias = answered.find(oracle::AnswerKind::dbias)->tensor;
    for (int h = 0; h < 2; ++h) {
      for (int j = 0; j < 7; ++j) CHECK(dbias.at(0, h, 0, j) == gradients.dbias.data[h * 7 + j]);
    }
  }
}

TEST_CASE("ringproof-reference: bad usage and bad input end with status 2 and leave no file") {
  const Place place;
  const std::string good = place.problem + " -o " + place.out;
  std::ofstream(place.folder.file("text")) << "no tensors here";
  const std::size_t before = place.files();
  const std::pair<std::string, std::string> cases[] = {
      {"", "needed"},
      {place.problem, "needed"},
      {good + " --ranks 0", "ringproof-reference: --ranks: Value 0 not in range 1 to 4096 (usage"},
      {good + " --ranks 1000000", "--ranks"},
      {good + " --ranks two", "--ranks"},
      {good + " --layout spiral",
       "ringproof-reference: --layout: \"spiral\" is none of contiguous, zigzag, striped (usage"},
      {"schedule --layout spiral", "\"spiral\" is none of contiguous, zigzag, striped"},
      {good + " --order sideways", "--order: \"sideways\" is none of down, up"},
      {good + " --fast", "--fast"},
      {good + " --backward", "dout or dlse"},
      {place.folder.file("absent") + " -o " + place.out, "absent"},
      {place.folder.file("text") + " -o " + place.out, "text"},
      {place.problem + " -o " + place.problem, "is the input"},
      {place.problem + " -o " + place.folder.file("no/such/folder"), "no/such/folder"},
      {good + " --trace " + place.folder.file("no/trace"), "no/trace"},
      {place.problem + " -o " + place.folder.path().string() + " --trace " +
           place.folder.file("trace"),
       "directory"},
      {"schedule --mask diagonal", "diagonal"},
      {"schedule --mask window:", "window:"},
      {"schedule --mask causal+full", "causal+full"},
      {"schedule --tokens 0", "--tokens"},
      {"schedule --format png", "--format"},
  };
  for (const auto& [arguments, word] : cases) {
    const Outcome outcome = run(arguments);
    INFO(arguments << "\n" << outcome.text);
    CHECK(outcome.status == 2);
    CHECK(outcome.text.find(word) != std::string::npos);
    CHECK(place.files() == before);
  }
}

TEST_CASE("C17: the schedule of a contiguous causal ring shows who waits") {
  const Outcome outcome = run("schedule --ranks 4 --layout contiguous --mask causal --tokens 32");
  CHECK(outcome.status == 0);
  CHECK(outcome.text == R"(32 tokens on 4 ranks, contiguous, causal, order down

rank 0 owns rows 0-7
rank 1 owns rows 8-15
rank 2 owns rows 16-23
rank 3 owns rows 24-31

block:pairs held by each rank
step   rank 0   rank 1   rank 2   rank 3  busiest
   0     0:36     1:36     2:36     3:36       36
   1      3:0     0:64     1:64     2:64       64
   2      2:0      3:0     0:64     1:64       64
   3      1:0      2:0      3:0     0:64       64
 sum       36      100      164      228      228

transfers: each rank sends 3 blocks, 12288 bytes
balance: busiest rank / mean = 1.7273; ranks idle 42.1 % of the time
)");
}

TEST_CASE("C18: the schedules of the balanced layouts say so, in text and in JSON") {
  const auto json = [](const std::string& arguments) {
    const Outcome outcome = run("schedule --format json " + arguments);
    CHECK(outcome.status == 0);
    return nlohmann::json::parse(outcome.text);
  };
  CHECK(json("--ranks 4 --layout zigzag --mask causal")["busiest_over_mean"] == 1);
  CHECK(json("--ranks 4 --layout zigzag --mask causal")["idle_fraction"] == 0);
  const auto striped = json("--ranks 3 --layout striped --mask causal+window:4 --tokens 10");
  CHECK(striped["rows"] == nlohmann::json::parse("[[0,3,6,9],[1,4,7],[2,5,8]]"));
  CHECK(striped["steps"].size() == 3);
  CHECK(striped["steps"][1]["block"] == nlohmann::json::parse("[2,0,1]"));
  CHECK(striped["steps"][2]["bytes_sent"] == nlohmann::json::parse("[0,0,0]"));
  long pairs = 0;
  for (const auto& step : striped["steps"]) {
    for (const long count : step["pairs"]) pairs += count;
  }
  CHECK(pairs == 1 + 2 + 3 + 4 + 6 * 5);
  CHECK(striped["mask"] == "causal+window:4");
  CHECK(json("--mask window:1,2")["mask"] == "window:1,2");
}

TEST_CASE("ringproof-reference: the drawing of a schedule has a cell for every rank and step") {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("schedule.svg");
  const Outcome outcome = run("schedule --ranks 5 --layout zigzag --format svg -o " + path);
  CHECK(outcome.status == 0);
  CHECK(outcome.text.empty());
  std::ifstream stream(path);
  std::stringstream content;
  content << stream.rdbuf();
  const std::string svg = content.str();
  CHECK(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  CHECK(svg.ends_with("</svg>\n"));
  std::size_t cells = 0;
  for (std::size_t at = svg.find("<g>"); at != std::string::npos; at = svg.find("<g>", at + 1)) {
    ++cells;
  }
  CHECK(cells == 25);
}
