// The writer: what it writes reads back, and a file appears whole or not at all.
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include "oracle/case/case_file.hpp"
#include "oracle/case/mapped_file.hpp"
#include "tests/support/property.hpp"
#include "tests/unit/case/case_builder.hpp"

namespace ringproof::test {
namespace {

using namespace oracle;

std::vector<NamedTensor> views(const CaseBuilder& builder) {
  std::vector<NamedTensor> result;
  for (const auto& [name, tensor] : builder.tensors) {
    result.push_back({name, tensor.dtype, tensor.shape, tensor.bytes.data()});
  }
  return result;
}

}  // namespace

TEST_CASE("a written case reads back bit for bit, each tensor aligned to its element") {
  const TemporaryFolder folder;
  property("read_case(write_case(c)) == c", [&] {
    const auto size = [] { return *rc::gen::inRange<std::int64_t>(1, 5); };
    const auto type = [] { return static_cast<DType>(*rc::gen::inRange(0, 6)); };
    const std::int64_t batches = size(), kv_heads = size(), heads = kv_heads * size();
    const std::int64_t queries = size() - 1, keys = size() - 1, head_dim = size(),
                       value_dim = size();
    CaseBuilder builder;
    builder.set("q", counted({batches, heads, queries, head_dim}, type()));
    builder.set("k", counted({batches, kv_heads, keys, head_dim}, type()));
    builder.set("v", counted({batches, kv_heads, keys, value_dim}, type()));
    builder.set("out", counted({batches, heads, queries, value_dim}, type()));
    builder.set("mask", make_tensor(DType::boolean, {keys}, [](std::int64_t n) { return n % 2; }));
    Spec spec;
    spec.causal = Causal::bottom_right;
    spec.contract = "a \"quoted\" name";
    const std::string path = folder.path("case");
    write_case(path, views(builder), to_json(spec));
    const Case result = read_case(path);
    RC_ASSERT(result.problem.spec == spec);
    const auto check = [&](const Tensor& tensor, const char* name) {
      const OwnedTensor& written = *builder.find(name);
      RC_ASSERT(tensor.dtype == written.dtype);
      RC_ASSERT(std::equal(written.bytes.begin(), written.bytes.end(), tensor.data));
      RC_ASSERT(reinterpret_cast<std::uintptr_t>(tensor.data) % size_of(tensor.dtype) == 0);
    };
    check(result.problem.q, "q");
    check(result.problem.k, "k");
    check(result.problem.v, "v");
    check(result.problem.mask, "mask");
    check(result.find(AnswerKind::out)->tensor, "out");
  });
}

TEST_CASE("a case may replace the file it was read from") {
  const TemporaryFolder folder;
  const CaseBuilder builder = small_case();
  const std::string path = folder.write("case", builder.file());
  const Case before = read_case(path);
  CaseBuilder other = small_case();
  for (auto& [name, tensor] : other.tensors)
    std::fill(tensor.bytes.begin(), tensor.bytes.end(), std::byte{0});
  write_case(path, views(other), builder.spec);
  CHECK(before.problem.q.at(0, 0, 0, 0) == -3);  // still the old bytes
  CHECK(read_case(path).problem.q.at(0, 0, 0, 0) == 0);
  CHECK(folder.files() == std::vector<std::string>{"case"});
}

TEST_CASE("what cannot be written is refused with the path, and leaves nothing behind") {
  const TemporaryFolder folder;
  const CaseBuilder builder = small_case();
  const auto refused = [&](const std::string& path) {
    const std::string message = refusal([&] { write_case(path, views(builder), builder.spec); });
    CHECK(message.starts_with(path + ": "));
    return message;
  };
  CHECK(contains(refused(folder.path("none/case")), "No such file"));
  CHECK(contains(refused(folder.path("")), "is a directory"));
  CHECK(contains(refused("/dev/full"), "is not a regular file"));
  CHECK_FALSE(refused("").empty());
  REQUIRE(mkfifo(folder.path("fifo").c_str(), 0600) == 0);
  CHECK(contains(refused(folder.path("fifo")), "is not a regular file"));
  CHECK(folder.files() == std::vector<std::string>{"fifo"});

  std::vector<NamedTensor> twice = views(builder);
  twice.push_back(twice.front());
  CHECK(contains(refusal([&] { write_case(folder.path("x"), twice, "{}"); }), "\"q\" twice"));
  std::vector<NamedTensor> negative = views(builder);
  negative[0].shape[1] = -2;
  CHECK(contains(refusal([&] { write_case(folder.path("x"), negative, "{}"); }), "no such shape"));
  negative[0].shape = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  CHECK(contains(refusal([&] { write_case(folder.path("x"), negative, "{}"); }), "no such shape"));
  CHECK(contains(refusal([&] { write_case(folder.path("x"), views(builder), "\xff"); }), "UTF-8"));
  CHECK(folder.files() == std::vector<std::string>{"fifo"});
}

TEST_CASE("a disk that is full leaves the old file as it was and no other") {
  const TemporaryFolder folder;
  const std::string path = folder.write("case", "old");
  CaseBuilder builder = small_case(1, 2, 2, 64, 64, 64, 64);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 4096;
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string message = refusal([&] { write_case(path, views(builder), builder.spec); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK(contains(message, "cannot be written"));
  CHECK(folder.files() == std::vector<std::string>{"case"});
  std::ifstream file(path);
  std::string text;
  file >> text;
  CHECK(text == "old");
}

TEST_CASE("a symbolic link is written through, and permissions are those of new files") {
  const TemporaryFolder folder;
  const CaseBuilder builder = small_case();
  folder.write("target", "old");
  std::filesystem::create_symlink("target", folder.path("link"));
  write_case(folder.path("link"), views(builder), builder.spec);
  CHECK(std::filesystem::is_symlink(folder.path("link")));
  CHECK_NOTHROW(read_case(folder.path("target")));
  const mode_t mask = umask(027);
  write_case(folder.path("new"), views(builder), builder.spec);
  umask(mask);
  struct stat status {};
  REQUIRE(stat(folder.path("new").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0640);
}

}  // namespace ringproof::test
