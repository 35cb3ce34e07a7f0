// The program `ringproof`: every exit code, every flag, and messages that name file and reason.
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/program.hpp"
#include "tests/unit/judge/gradient_case.hpp"

using namespace ringproof::oracle;
using namespace ringproof::test;

namespace {

CaseBuilder answered(const std::string& contract = "fp32", DType type = DType::f32) {
  CaseBuilder builder = random_case(type);
  builder.spec = R"({"version": 1, "contract": ")" + contract + "\"}";
  answer(builder, type);
  return builder;
}

/// A folder with a case that passes, one that fails, one undecided, one skipped and one that is no
/// case.
struct Cases {
  TemporaryFolder folder;
  std::string good, bad, undecided, skipped, broken;

  Cases() {
    CaseBuilder builder = answered();
    good = folder.write("good.safetensors", builder.file());
    set_value(builder, "out", 4, 7);
    bad = folder.write("bad.safetensors", builder.file());
    CaseBuilder loose = answered();  // bounds so wide that anything would pass
    loose.spec = R"({"version": 1, "contract": {"base": "fp32", "pv": {"acc": {)"
                 R"("model": "any_order", "products": "rounded", "u": "0x1p-4"}}}})";
    undecided = folder.write("undecided.safetensors", loose.file());
    skipped = folder.write("skipped.safetensors", random_case(DType::f32).file());
    broken = folder.write("broken.safetensors", "no case at all");
  }
};

}  // namespace

TEST_CASE("check exits with the code of its verdict") {
  const Cases cases;
  const Run pass = run_ringproof("check " + cases.good);
  CHECK(pass.code == 0);
  CHECK(pass.out.starts_with("PASS  " + cases.good));
  CHECK(pass.err.empty());
  const Run fail = run_ringproof("check " + cases.bad);
  CHECK(fail.code == 1);
  CHECK(fail.out.starts_with("FAIL  "));
  const Run undecided = run_ringproof("check " + cases.undecided);
  CHECK(undecided.code == 3);
  CHECK(contains(undecided.out, "out       UNDECIDED (no power: "));
  const Run skipped = run_ringproof("check " + cases.skipped);
  CHECK(skipped.code == 77);
  CHECK(contains(skipped.out, "SKIPPED"));
  const Run broken = run_ringproof("check " + cases.broken);
  CHECK(broken.code == 2);
  CHECK(broken.out.empty());
  CHECK(broken.err.starts_with("ringproof: " + cases.broken + ": "));
}

TEST_CASE("several cases exit with the worst of 2, 1, 4, 3, 0, and are counted") {
  const Cases c;
  const auto code = [](const std::string& files) { return run_ringproof("check " + files).code; };
  CHECK(code(c.good + " " + c.good) == 0);
  CHECK(code(c.good + " " + c.skipped) == 0);
  CHECK(code(c.skipped + " " + c.skipped) == 77);
  CHECK(code(c.good + " " + c.undecided) == 3);
  CHECK(code(c.undecided + " " + c.bad + " " + c.good) == 1);
  const Run all = run_ringproof("check " + c.good + " " + c.broken + " " + c.bad + " " +
                                c.undecided + " " + c.skipped);
  CHECK(all.code == 2);
  CHECK(contains(all.out, "5 cases: 1 BAD INPUT, 1 FAIL, 1 UNDECIDED, 1 PASS, 1 SKIPPED"));
  CHECK(contains(all.err, c.broken));
}

TEST_CASE(
    "a verdict prints worst element, contract and hash, power, and the command that repeats it") {
  const Cases cases;
  const Run run =
      run_ringproof("check " + cases.bad + " --only out,lse --rows 14 --seed 3 --threads 2");
  CHECK(contains(run.out, "worst [b 0, h 0, i 1, c 1]: 7, accepted ["));
  CHECK(contains(run.out, "error over bound"));
  CHECK(contains(run.out, "fp32 (52648d2fd019)"));
  CHECK(contains(run.out, "power     refuses gain errors from"));
  CHECK(contains(run.out, "missing mass from"));
  const std::string repeat = "ringproof check " + cases.bad + " --only out,lse --rows 14 --seed 3";
  REQUIRE(contains(run.out, "repeat    " + repeat));
  const Run again = run_ringproof(repeat.substr(std::string("ringproof ").size()));
  CHECK(again.out == run.out);
  CHECK(again.code == run.code);
}

TEST_CASE("the report is the same byte for byte for every number of threads") {
  const Cases cases;
  const std::string one = run_ringproof("check --threads 1 " + cases.bad).out;
  for (const char* threads : {"2", "3", "16"}) {
    CHECK(run_ringproof("check " + cases.bad + " --threads " + threads).out == one);
  }
}

TEST_CASE("gradients have exit codes and places of their own") {
  const TemporaryFolder folder;
  CaseBuilder builder = answered();
  add_upstream(builder, DType::f32);
  answer_gradients(builder, DType::f32);
  const Run pass = run_ringproof("check " + folder.write("g.safetensors", builder.file()));
  CHECK(pass.code == 0);
  CHECK(contains(pass.out, "  dk        PASS"));
  CHECK(contains(pass.out, "would pass on elements: zeros "));
  CHECK(contains(pass.out, "rows      14 of 14; 9 of 9 keys"));
  set_value(builder, "dk", 5 * 4 + 2, 50);
  const std::string bad = folder.write("b.safetensors", builder.file());
  const Run fail = run_ringproof("check " + bad);
  CHECK(fail.code == 1);
  CHECK(contains(fail.out, "worst [b 0, h 0, j 5, c 2]: 50, accepted ["));
  CHECK(run_ringproof("check --only out,lse,dq,dv " + bad).code == 0);
  const std::string output = folder.path("truth.safetensors");
  const Run truth = run_ringproof("truth " + bad + " -o " + output);
  CHECK(truth.code == 0);
  for (const char* name : {"dq_lo", "dk_hi", "dv_lo", "\"dk\""}) {
    CHECK(contains(text_of_file(output), name));
  }
}

TEST_CASE("a suspect answer exits with 4, and only where that level is asked for") {
  const TemporaryFolder folder;
  // One element at the end of its bound: no rounding to nearest goes there by chance.
  CaseBuilder builder = random_case(
      DType::bf16, {.heads = 1, .queries = 2, .keys = 2048, .head_dim = 16, .value_dim = 4});
  builder.spec = R"({"version": 1, "contract": "bf16-flash"})";
  answer(builder, DType::f32);
  const Box box = boxes_of(builder, "bf16-flash", 0, 1, DType::f32).out[2];
  const double right = value_at(builder, "out", 6);
  set_value(builder, "out", 6, right + 0.95 * (box.high - right));
  const std::string file = folder.write("s.safetensors", builder.file());
  CHECK(run_ringproof("check " + file).code == 0);
  const Run suspect = run_ringproof("check --probabilistic " + file);
  INFO(suspect.out);
  CHECK(suspect.code == 4);
  CHECK(contains(suspect.out, "SUSPECT  "));
  CHECK(contains(suspect.out, "  probable  1 of 8 elements beyond e_prob"));
  CHECK(contains(suspect.out, " --probabilistic"));
}

TEST_CASE("a folder is all its case files") {
  const TemporaryFolder folder;
  CHECK(contains(run_ringproof("check " + folder.path("")).err, "holds no case file"));
  CaseBuilder builder = answered();
  folder.write("b.safetensors", builder.file());
  folder.write("a.safetensors", builder.file());
  folder.write("notes.txt", "no case");
  const Run run = run_ringproof("check " + folder.path(""));
  CHECK(run.code == 0);
  CHECK(contains(run.out, "2 cases: 2 PASS"));
  CHECK(run.out.find("a.safetensors") < run.out.find("b.safetensors"));
}

TEST_CASE("a budget judges edges first, and its repeat line needs no clock") {
  const TemporaryFolder folder;
  CaseBuilder builder = random_case(DType::f32, {.queries = 200});
  builder.spec = R"({"version": 1, "contract": "fp32"})";
  answer(builder, DType::f32);
  const std::string file = folder.write("c.safetensors", builder.file());
  const Run run = run_ringproof("check --budget 1m --seed 4 " + file);
  CHECK(run.code == 0);
  CHECK(contains(run.out, "rows      400 of 400"));
  CHECK(contains(run.out, "--rows 400 --edges-first --seed 4"));
  const Run short_of_time = run_ringproof("check --budget 0.000001 " + file);
  CHECK(short_of_time.code == 0);
  CHECK(contains(short_of_time.out, "rows      64 of 400"));
  for (const char* wrong :
       {"--budget 0", "--budget soon", "--budget 5x", "--budget 5 --rows 3", "--edges-first"}) {
    CHECK(run_ringproof("check " + std::string(wrong) + " " + file).code == 2);
  }
  // The first query is an edge: a fault there is found by very few rows.
  for (std::int64_t c = 0; c < 3; ++c) set_value(builder, "out", 200 * 3 + c, 50);
  const std::string bad = folder.write("d.safetensors", builder.file());
  CHECK(run_ringproof("check --rows 12 --edges-first " + bad).code == 1);
}

TEST_CASE("a JSON report says what the text says") {
  const Cases cases;
  const std::string file = cases.folder.path("report.json");
  const Run run = run_ringproof("check " + cases.good + " " + cases.bad + " " + cases.broken + " " +
                                cases.skipped + " --report json=" + file);
  CHECK(run.code == 2);
  const auto json = nlohmann::json::parse(text_of_file(file));
  CHECK(json["schema"] == "ringproof.report/1");
  CHECK(json["exit_status"] == 2);
  REQUIRE(json["cases"].size() == 4);
  CHECK(json["cases"][0]["verdict"] == "PASS");
  CHECK(json["cases"][0]["contract"]["hash"] == "52648d2fd019");
  const auto& bad = json["cases"][1]["answers"][0];
  CHECK(bad["answer"] == "out");
  CHECK(bad["worst"]["answer"] == 7.0);
  CHECK(bad["worst"]["at"] == nlohmann::json({{"b", 0}, {"h", 0}, {"i", 1}, {"c", 1}}));
  CHECK(bad["refused"] == 1);
  CHECK(json["cases"][2]["verdict"] == "BAD INPUT");
  CHECK(contains(json["cases"][2]["error"], cases.broken));
  CHECK(json["cases"][3]["verdict"] == "SKIPPED");
  CHECK(run_ringproof("check " + cases.good + " --report xml=f").code == 2);
  CHECK(run_ringproof("check " + cases.good + " --report json=/no/such/folder/f").code == 2);
}

TEST_CASE("usage errors exit with 2 and say what is wrong") {
  const Cases cases;
  for (const char* arguments :
       {"", "judge", "check", "check --only", "check --rows 0 x", "check --rows many x",
        "check --seed -1 x", "check --threads 0 x", "check --power 0 x", "check --power -2 x",
        "check --no-such-flag x", "truth", "contracts one two"}) {
    const Run run = run_ringproof(arguments);
    INFO(arguments);
    CHECK(run.code == 2);
    CHECK(run.out.empty());
    CHECK(run.err.starts_with("ringproof: "));
  }
  CHECK(contains(run_ringproof("check --only ouT " + cases.good).err, "\"ouT\" is no answer"));
  CHECK(contains(run_ringproof("check --precision quick " + cases.good).err,
                 "neither fast, tight nor"));
  CHECK(run_ringproof("check --precision 63 " + cases.good).code == 2);
  CHECK(contains(run_ringproof("check /no/such/file").err, "/no/such/file"));
  CHECK(run_ringproof("check " + cases.folder.path("")).code == 2);
}

TEST_CASE("help and version are no errors") {
  CHECK(run_ringproof("--help").code == 0);
  CHECK(contains(run_ringproof("check --help").out, "--contract"));
  CHECK(run_ringproof("--version").out.starts_with("ringproof "));
}

TEST_CASE("the contract comes from the command line, a file, or the case, and must be somewhere") {
  const TemporaryFolder folder;
  CaseBuilder builder = answered("no-such-contract");
  const std::string file = folder.write("case.safetensors", builder.file());
  CHECK(run_ringproof("check " + file).code == 2);
  CHECK(contains(run_ringproof("check " + file).err, "no-such-contract"));
  CHECK(run_ringproof("check " + file + " --contract fp32").code == 0);
  CHECK(run_ringproof("check " + file + R"( --contract '{"base": "fp32", "name": "mine"}')").code ==
        0);
  const std::string own = folder.write("own.json", R"({"base": "fp32", "name": "mine"})");
  const Run from_file = run_ringproof("check " + file + " --contract @" + own);
  CHECK(from_file.code == 0);
  CHECK(contains(from_file.out, "mine ("));
  CHECK(contains(run_ringproof("check " + file + " --contract @/no/such").err, "/no/such"));
  CHECK(run_ringproof("check " + file + R"( --contract '{"base": "fp32", "nam": "mine"}')").code ==
        2);
  CHECK(run_ringproof("check " + file + " --contract bf16-flash").code == 2);  // inputs are no bf16
  CaseBuilder none = answered();
  none.spec = R"({"version": 1})";
  const Run missing = run_ringproof("check " + folder.write("none.safetensors", none.file()));
  CHECK(missing.code == 2);
  CHECK(contains(missing.err, "no contract is given"));
}

TEST_CASE("only, require, power, precision and rows do what they say") {
  const Cases cases;
  CHECK(run_ringproof("check --only lse " + cases.bad).code == 0);
  CHECK(run_ringproof("check --only lse " + cases.undecided).code == 0);
  CHECK(run_ringproof("check --only dq " + cases.good).code == 77);
  CHECK(run_ringproof("check --require out,lse " + cases.good).code == 0);
  CHECK(contains(run_ringproof("check --require dq " + cases.good).err, "absent (dq)"));
  CHECK(run_ringproof("check --require out " + cases.skipped).code == 2);
  CHECK(run_ringproof("check --power 0.5 " + cases.good).code == 0);
  CHECK(run_ringproof("check --power 1e-12 " + cases.good).code == 3);
  for (const char* precision : {"fast", "tight", "64", "300"}) {
    CHECK(run_ringproof(std::string("check --precision ") + precision + " " + cases.good).code ==
          0);
    CHECK(run_ringproof(std::string("check --precision ") + precision + " " + cases.bad).code == 1);
  }
  CHECK(contains(run_ringproof("check --rows 5 " + cases.good).out, "rows      5 of 14"));
}

TEST_CASE("spec and problem may come from other files") {
  const TemporaryFolder folder;
  const CaseBuilder whole = answered();
  CaseBuilder problem = whole, answers = whole;
  problem.erase("out").erase("lse");
  problem.spec = R"({"version": 1})";
  answers.erase("q").erase("k").erase("v");
  const std::string p = folder.write("p.safetensors", problem.file());
  const std::string a = folder.write("a.safetensors", answers.file());
  CHECK(run_ringproof("check " + a).code == 2);
  CHECK(run_ringproof("check " + a + " --problem " + p).code == 0);
  const std::string spec =
      folder.write("spec.json", R"({"version": 1, "contract": "fp32", "scale": 0.25})");
  CHECK(run_ringproof("check " + folder.write("w.safetensors", whole.file()) + " --spec " + spec)
            .code == 1);
}

TEST_CASE("shards are judged as one case") {
  const TemporaryFolder folder;
  CaseBuilder whole = random_case(DType::f32, {.queries = 9});
  whole.spec = R"({"version": 1, "contract": "fp32"})";
  answer(whole, DType::f32);
  std::string files;
  for (const std::int64_t rank : {0, 1}) {
    // Queries 0..3 and 4..8; both files hold all keys.
    const std::int64_t first = rank == 0 ? 0 : 4, count = rank == 0 ? 4 : 5;
    CaseBuilder shard = whole;
    const auto cut = [&](const char* name, std::int64_t columns) {
      CaseBuilder source = whole;
      shard.set(name, make_tensor(DType::f32, {1, 2, count, columns}, [&](std::int64_t n) {
                  const std::int64_t h = n / (count * columns), rest = n % (count * columns);
                  return value_at(source, name, h * 9 * columns + first * columns + rest);
                }));
    };
    cut("q", 4);
    cut("out", 3);
    cut("lse", 1);
    shard.find("lse")->shape = {1, 2, count};
    std::vector<std::int64_t> own, all;
    for (std::int64_t i = 0; i < count; ++i) own.push_back(first + i);
    for (std::int64_t j = 0; j < 9; ++j) all.push_back(j);
    shard.set("positions_q", make_list(DType::i64, own));
    shard.set("positions_k", make_list(DType::i64, all));
    files += " " + folder.write("shard" + std::to_string(rank) + ".safetensors", shard.file());
  }
  const Run joined = run_ringproof("check --shards" + files);
  INFO(joined.out << joined.err);
  CHECK(joined.code == 0);
  CHECK(contains(joined.out, "rows      18 of 18"));
  CHECK(run_ringproof("check" + files + " --shards").code == 0);
}

TEST_CASE("truth writes intervals and the rounded answer, and nothing if the input is bad") {
  const Cases cases;
  const std::string output = cases.folder.path("truth.safetensors");
  const Run run = run_ringproof("truth " + cases.good + " -o " + output);
  CHECK(run.code == 0);
  const std::string bytes = text_of_file(output);
  for (const char* name : {"out_lo", "out_hi", "lse_lo", "lse_hi", "\"out\"", "\"lse\""}) {
    CHECK(contains(bytes, name));
  }
  const Run broken = run_ringproof("truth " + cases.broken + " -o " + cases.folder.path("none"));
  CHECK(broken.code == 2);
  CHECK(text_of_file(cases.folder.path("none")).empty());
  CHECK(run_ringproof("truth " + cases.good + " -o /no/such/folder/x").code == 2);
}

TEST_CASE("explain exits as check does and names only classes that explain") {
  const Cases cases;
  CHECK(run_ringproof("explain " + cases.good).code == 0);
  const Run run = run_ringproof("explain " + cases.bad);
  CHECK(run.code == 1);
  CHECK_FALSE(contains(run.out, "NORM-AVERAGE"));
  CHECK(contains(run.out, "explained by no class this build knows"));
  CHECK(contains(run.out, "refuted"));
  CHECK(contains(run.out, "where"));
  const std::string picture = cases.folder.path("errors.svg");
  CHECK(run_ringproof("explain " + cases.bad + " --svg " + picture).code == 1);
  CHECK(text_of_file(picture).starts_with("<svg"));
  CHECK(run_ringproof("explain " + cases.bad + " --svg /no/such/folder/x").code == 2);
  CHECK(run_ringproof("explain " + cases.broken).code == 2);
}

TEST_CASE("fit exits as check does and answers whose fault it is") {
  const Cases cases;
  const Run good = run_ringproof("fit " + cases.good);
  CHECK(good.code == 0);
  CHECK(contains(good.out, "tightest"));
  const Run bad = run_ringproof("fit " + cases.bad);
  CHECK(bad.code == 1);
  CHECK(contains(bad.out, "answer      "));
  CHECK(run_ringproof("fit " + cases.broken).code == 2);
}

TEST_CASE("contracts lists the presets and expands one") {
  const Run list = run_ringproof("contracts");
  CHECK(list.code == 0);
  CHECK(contains(list.out, "bf16-flash         1fa1df457384"));
  const Run one = run_ringproof("contracts bf16-ring4");
  CHECK(one.code == 0);
  CHECK(one.out.starts_with("{\""));
  CHECK(contains(one.out, "\n2eb6f6876385\n"));
  CHECK(run_ringproof("contracts int3-flash").code == 2);
}

TEST_CASE("a file name with spaces and quotes is quoted in the repeat line") {
  const TemporaryFolder folder;
  const std::string file = folder.write("it's a case.safetensors", answered().file());
  const Run run = run_ringproof("check \"" + file + "\"");
  CHECK(run.code == 0);
  const std::string repeat = run.out.substr(run.out.find("ringproof check"));
  CHECK(run_ringproof(repeat.substr(10, repeat.find('\n') - 10)).out == run.out);
}
