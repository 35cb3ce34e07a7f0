// Files that are not what they claim: each kind must be refused with the file's name and a reason,
// without a crash, a wait, or memory for what is only claimed.
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <limits>

#include "oracle/case/case_file.hpp"
#include "oracle/case/mapped_file.hpp"
#include "tests/support/property.hpp"
#include "tests/unit/case/case_builder.hpp"

namespace ringproof::test {
namespace {

using namespace oracle;

/// Message for a file with these bytes; checks that it starts with the path.
std::string refused(const std::string& bytes) {
  const TemporaryFolder folder;
  const std::string path = folder.write("case.safetensors", bytes);
  const std::string message = refusal([&] { read_case(path); });
  CHECK(message.starts_with(path + ": "));
  return message.substr(std::min(message.size(), path.size() + 2));
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

/// A file whose header is edited after it was built: data unchanged.
std::string edited(const CaseBuilder& builder, const std::string& from, const std::string& to) {
  return CaseBuilder::file(replaced(builder.header(), from, to), builder.data());
}

const std::string kQ = R"("q":{"dtype":"F32","shape":[1,2,5,4],"data_offsets":[0,160]})";

}  // namespace

TEST_CASE("a sound file is read, with padding behind the header or without") {
  const TemporaryFolder folder;
  const CaseBuilder builder = small_case();
  for (int pad = 0; pad < 9; ++pad) {  // the data is then unaligned, which is legal
    const std::string header = builder.header() + std::string(static_cast<std::size_t>(pad), ' ');
    const Case result = read_case(folder.write("case", CaseBuilder::file(header, builder.data())));
    CHECK(result.problem.k.at(0, 1, 2, 3) == (20 + 2 * 4 + 3) % 7 - 3);
    CHECK(result.storage.size() == 1);
  }
}

TEST_CASE("the length field must lead to a header that is there") {
  const std::string sound = small_case().file();
  CHECK(contains(refused(""), "0 bytes"));
  CHECK(contains(refused(sound.substr(0, 7)), "7 bytes"));
  for (const std::uint64_t length : {std::uint64_t{1} << 63, ~std::uint64_t{0}, ~std::uint64_t{7},
                                     std::uint64_t{100'000'000}, std::uint64_t{sound.size() - 7}}) {
    std::string bytes = sound;
    std::memcpy(bytes.data(), &length, sizeof length);
    CHECK(contains(refused(bytes), "claims a header of " + std::to_string(length)));
  }
  for (const std::uint64_t length : {0, 1, 30}) {
    std::string bytes = sound;
    std::memcpy(bytes.data(), &length, sizeof length);
    CHECK_FALSE(refused(bytes).empty());
  }
}

TEST_CASE("the header must be one JSON object without doubled keys, of bounded depth and size") {
  const auto header = [](const std::string& text) { return refused(CaseBuilder::file(text, "")); };
  CHECK(contains(header("[1,2,3] "), "does not start with '{'"));
  CHECK(contains(header(" {}"), "does not start with '{'"));
  CHECK(contains(header(std::string(200'000, '[')), "does not start with '{'"));
  CHECK(contains(header("{\"a\":" + std::string(200'000, '[')), "nested deeper"));
  std::string objects;
  for (int n = 0; n < 200'000; ++n) objects += "{\"a\":";
  CHECK(contains(header(objects), "nested deeper"));
  std::string many = "{\"a\":[0";
  for (int n = 0; n < 100'000; ++n) many += ",0";
  CHECK(contains(header(many + "]}"), "JSON values"));
  CHECK(contains(header("{}garbage"), "not JSON"));
  CHECK(contains(header(std::string("{}\0", 3)), "not JSON"));
  CHECK(contains(header("{\"\xc0\xaf\":1}"), "not JSON"));
  CHECK(contains(header("{\"q\":1"), "not JSON"));
  CHECK(contains(header("{\"q\":1}"), "tensor \"q\": its entry is not an object"));
  CHECK(contains(header("{\"__metadata__\":1}"), "\"__metadata__\" is not an object"));
  CHECK(contains(header("{\"__metadata__\":{\"ringproof\":1}}"), "\"ringproof\" is not a string"));
  CHECK(contains(header("{\"q\":{},\"q\":{}}"), "key \"q\" occurs twice"));
  CHECK(contains(header("{\"__metadata__\":{\"a\":\"\",\"a\":\"\"}}"), "key \"a\" occurs twice"));
  CHECK(contains(header("{}"), "no spec"));
}

TEST_CASE("a tensor's entry must have its three parts, each of its kind") {
  const CaseBuilder builder = small_case();
  const auto entry = [&](const std::string& text) {
    return refused(edited(builder, kQ, "\"q\":" + text));
  };
  CHECK(contains(entry("{}"), "needs dtype, shape and data_offsets"));
  CHECK(contains(entry(R"({"dtype":"F32","shape":[1,2,5,4]})"), "needs dtype"));
  CHECK(contains(entry(R"({"dtype":1,"shape":[1,2,5,4],"data_offsets":[0,160]})"), "\"dtype\""));
  CHECK(contains(entry(R"({"dtype":"F32","shape":4,"data_offsets":[0,160]})"), "\"shape\""));
  CHECK(contains(entry(R"({"dtype":"F32","shape":[1,2,5,4],"data_offsets":[0]})"),
                 "\"data_offsets\""));
  CHECK(contains(entry(R"({"dtype":"F32","shape":[1,2,5,4],"data_offsets":[0,160],"x":1})"),
                 "\"x\""));
  CHECK(contains(entry(R"({"dtype":"U8","shape":[1,2,5,4],"data_offsets":[0,160]})"),
                 "type \"U8\" is not supported"));
}

TEST_CASE("shapes must be natural numbers whose product exists") {
  const CaseBuilder builder = small_case();
  const auto shape = [&](const std::string& text) {
    return refused(
        edited(builder, "[1,2,5,4],\"data_offsets\":[0,160]", text + ",\"data_offsets\":[0,160]"));
  };
  CHECK(contains(shape("[1,-2,5,4]"), "shape must be an integer"));
  CHECK(contains(shape("[1,2.0,5,4]"), "shape must be an integer"));
  CHECK(contains(shape("[1,\"2\",5,4]"), "shape must be an integer"));
  CHECK(contains(shape("[1,null,5,4]"), "shape must be an integer"));
  CHECK(contains(shape("[1,18446744073709551616,5,4]"), "shape must be an integer"));
  CHECK(contains(shape("[1,9223372036854775808,5,4]"), "shape must be an integer"));
  CHECK(contains(shape("[4294967296,4294967296,8,4]"), "more elements than any memory"));
  CHECK(contains(shape("[4611686018427387904,4,2,5]"), "more elements than any memory"));
  CHECK(contains(shape("[0,4294967296,4294967296,8]"), "more elements than any memory"));
  CHECK(contains(shape("[1,1,1,1,1,1,1,1,40]"), "axes"));
  CHECK(contains(shape("[1,2,5,5]"), "needs 200 bytes, its data_offsets hold 160"));
  CHECK(contains(shape("[]"), "needs 4 bytes"));
}

TEST_CASE("offsets must lie in the data and the tensors must cover it without hole or overlap") {
  const CaseBuilder builder = small_case();  // q 160, k 160, v 120 bytes
  const auto offsets = [&](const std::string& text) {
    return refused(edited(builder, "[0,160]}", text + "}"));
  };
  CHECK(contains(offsets("[-160,0]"), "data_offsets must be an integer"));
  CHECK(contains(offsets("[0.0,160]"), "data_offsets must be an integer"));
  CHECK(contains(offsets("[0,1e3]"), "data_offsets must be an integer"));
  CHECK(contains(offsets("[18446744073709551456,18446744073709551615]"), "data_offsets must be"));
  CHECK(contains(offsets("[160,0]"), "lie outside"));
  CHECK(contains(offsets("[320,480]"), "lie outside the 440 bytes"));
  CHECK(contains(offsets("[9223372036854775647,9223372036854775807]"), "lie outside"));
  CHECK(contains(offsets("[0,159]"), "hold 159"));
  CHECK(contains(offsets("[1,161]"), "behind a hole that starts at 0"));
  CHECK(contains(offsets("[160,320]"), "behind a hole"));
  CHECK(
      contains(refused(edited(builder, "[160,320]}", "[80,240]}")), "inside the tensor before it"));
  CHECK(contains(refused(builder.file() + "x"), "end at byte 440 of 441"));
  CHECK(contains(refused(builder.file().substr(0, builder.file().size() - 1)),
                 "lie outside the 439"));
}

TEST_CASE("tensors of any order in the header and of no elements are legal") {
  CaseBuilder builder = small_case(1, 2, 2, 0, 5);
  builder.set("out", counted({1, 2, 0, 3}));
  const TemporaryFolder folder;
  const Case result = read_case(folder.write("case", builder.file()));
  CHECK(result.problem.queries == 0);
  CHECK(result.problem.q);
  CHECK(result.answers.size() == 1);
  CaseBuilder shuffled;
  for (const char* name : {"v", "q", "k"}) shuffled.set(name, *small_case().find(name));
  CHECK(read_case(folder.write("shuffled", shuffled.file())).problem.value_dim == 3);
}

TEST_CASE("what is not a regular file is refused without waiting for it") {
  const TemporaryFolder folder;
  const std::string fifo = folder.path("fifo");
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  CHECK(refusal([&] { read_case(fifo); }) == fifo + ": is not a regular file");
  CHECK(refusal([&] { read_case("/dev/zero"); }) == "/dev/zero: is not a regular file");
  CHECK(contains(refusal([&] { read_case(folder.path("")); }), "is a directory"));
  CHECK(contains(refusal([&] { read_case(folder.path("none")); }), "none: No such file"));
  CHECK(contains(refusal([&] { read_case(std::string("a\0b", 3)); }), "a: no file name"));
  CHECK_FALSE(refusal([&] { read_case(""); }).empty());
  std::filesystem::create_symlink("loop", folder.path("loop"));
  CHECK_FALSE(refusal([&] { read_case(folder.path("loop")); }).empty());
}

TEST_CASE(
    "a file that shrinks while it is read ends a guarded program with its name and status 2") {
  const TemporaryFolder folder;
  const std::string path = folder.write("shrinks", std::string(1 << 20, 'x'));
  int channel[2];
  REQUIRE(pipe(channel) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    dup2(channel[1], STDERR_FILENO);
    guard_against_file_signals();
    const MappedFile file(path);
    if (truncate(path.c_str(), 10) != 0) _exit(7);
    const volatile std::byte gone = file.bytes()[1 << 19];
    _exit(gone == std::byte{'x'} ? 8 : 9);
  }
  close(channel[1]);
  char text[512] = {};
  const auto length = read(channel[0], text, sizeof text - 1);
  close(channel[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 2);
  CHECK(length > 0);
  CHECK(contains(text, "ringproof: " + path.substr(0, 20)));
}

TEST_CASE("a small file that claims much is refused with little memory") {
  // Sizes without bytes behind them: axes of size 0 let a header claim any other axis.
  CaseBuilder builder = small_case();
  const std::int64_t huge = std::int64_t{1} << 50;
  const auto claim = [&](const std::string& name, std::vector<std::int64_t> shape) {
    CaseBuilder spoilt = small_case();
    spoilt.set(name, OwnedTensor{DType::f32, std::move(shape), {}});
    return refused(spoilt.file());
  };
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  CHECK(contains(claim("q", {1, 0, huge, 4}), "tensor \"q\""));
  CHECK(contains(claim("q", {0, 2, huge, 4}), "tensor \"q\""));
  CHECK(contains(claim("q", {1, 2, huge, 0}), "tensor \"q\""));
  CHECK(contains(claim("k", {1, 2, huge, 0}), "tensor \"k\""));
  CHECK(contains(claim("v", {1, 2, huge, 0}), "tensor \"v\""));
  CHECK(contains(claim("k", {1, 0, huge, 4}), "tensor \"k\""));
  getrusage(RUSAGE_SELF, &after);
  CHECK(after.ru_maxrss - before.ru_maxrss < 64 * 1024);  // kilobytes
}

TEST_CASE("any byte of a small case may change and reading still ends in a case or in BadInput") {
  CaseBuilder builder = small_case(2, 2, 1, 3, 4);
  builder.spec = R"({"version": 1, "causal": "top_left", "window": [2, -1], "contract": "fp32"})";
  builder.set("mask",
              make_tensor(DType::boolean, {3, 4}, [](std::int64_t n) { return n % 3 != 0; }));
  builder.set("key_lengths", make_list(DType::i32, {4, 2}));
  builder.set("positions_q", make_list(DType::i64, {1, 2, 3}));
  builder.set("lse", counted({2, 2, 3}));
  const std::string sound = builder.file();
  const TemporaryFolder folder;
  property("read_case is total", [&](std::uint32_t place, std::uint8_t value, std::uint8_t kind) {
    std::string bytes = sound;
    const std::size_t at = *rc::gen::inRange<std::size_t>(0, sound.size());
    if (kind % 3 == 0) bytes.erase(at, place % 9);
    if (kind % 3 == 1) bytes.insert(at, std::string(place % 9, static_cast<char>(value)));
    if (kind % 3 == 2) bytes[at] = static_cast<char>(value);
    const std::string path = folder.write("case", bytes);
    try {
      const Case result = read_case(path);
      for (std::int64_t i = 0; i < result.problem.queries; ++i) visible_range(result.problem, 0, i);
    } catch (const BadInput& error) {
      RC_ASSERT(std::string(error.what()).starts_with(path));
    }
  });
}

}  // namespace ringproof::test
