// A team comes to the report of one process, byte for byte: members are threads here, which pass
// each other strings. Between processes the same is in tests/tiers/mpi_program_test.cpp.
#include <barrier>
#include <map>
#include <thread>
#include <tuple>

#include "oracle/judge/tally_wire.hpp"
#include "oracle/report/report_json.hpp"
#include "tests/unit/judge/gradient_case.hpp"

using namespace ringproof::oracle;
using namespace ringproof::test;

namespace {

/// What the members of one team share.
struct Table {
  explicit Table(int size) : barrier(size), messages(static_cast<std::size_t>(size)) {}
  std::barrier<> barrier;
  std::vector<std::string> messages;
};

class ThreadTeam final : public Team {
 public:
  ThreadTeam(Table& table, int rank) : table_(table), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(table_.messages.size()); }
  int threads() const override { return 1; }
  std::vector<std::string> gather(const std::string& mine) const override {
    table_.messages[static_cast<std::size_t>(rank_)] = mine;
    table_.barrier.arrive_and_wait();
    std::vector<std::string> all = table_.messages;
    table_.barrier.arrive_and_wait();
    return all;
  }

 private:
  Table& table_;
  int rank_;
};

/// Does something on every member; what each gives.
template <class Action>
auto on_every_member(int size, const Action& action) {
  Table table(size);
  std::vector<decltype(action(std::declval<const ThreadTeam&>()))> results(
      static_cast<std::size_t>(size));
  {
    std::vector<std::jthread> members;
    for (int rank = 0; rank < size; ++rank) {
      members.emplace_back(
          [&, rank] { results[static_cast<std::size_t>(rank)] = action(ThreadTeam(table, rank)); });
    }
  }
  return results;
}

/// The JSON report of a judgement, or what was wrong with the input.
std::string report_of(const CaseBuilder& builder, const std::string& contract, CheckOptions options,
                      const Team* team) {
  options.team = team;
  options.walk.threads = 1;
  try {
    CaseOutcome outcome{.name = "case", .report = judge(builder, contract, options)};
    outcome.verdict = outcome.report.verdict;
    return to_json({outcome});
  } catch (const BadInput& error) {
    return error.what();
  }
}

/// Every member's report is that of a single process, for any number of members.
void require_same_reports(const CaseBuilder& builder, const std::string& contract,
                          const CheckOptions& options = {}) {
  const std::string alone = report_of(builder, contract, options, nullptr);
  for (const int size : {1, 2, 3, 5}) {
    const auto reports = on_every_member(
        size, [&](const ThreadTeam& team) { return report_of(builder, contract, options, &team); });
    for (const std::string& report : reports) {
      INFO(size << " members, alone: " << alone);
      CHECK(report == alone);
    }
  }
}

CaseBuilder answered(const Sizes& sizes, bool with_sums) {
  CaseBuilder builder = random_case(DType::bf16, sizes);
  builder.spec = R"({"version": 1, "causal": "bottom_right"})";
  if (with_sums) {
    builder.set("bias", normal(DType::f32, {1, sizes.heads, 1, sizes.keys}, 5));
    builder.set("sinks", normal(DType::f32, {sizes.heads}, 6));
  }
  answer(builder, DType::bf16);
  add_upstream(builder, DType::bf16);
  answer_gradients(builder, DType::bf16);
  return builder;
}

template <class Change>
CheckOptions options_with(const Change& change) {
  CheckOptions options;
  change(options);
  return options;
}

constexpr Sizes kSizes{.batches = 2, .heads = 6, .kv_heads = 3, .queries = 45, .keys = 50};

}  // namespace

TEST_CASE("every part of the work has one owner, and owners share it evenly under a causal mask") {
  for (int members = 1; members <= 9; ++members) {
    for (std::int64_t parts = 1; parts <= 40; ++parts) {
      std::vector<std::int64_t> cost(static_cast<std::size_t>(members));
      for (std::int64_t part = 0; part < parts; ++part) {
        const int owner = owner_of_part(part, parts, members);
        REQUIRE((owner >= 0 && owner < members));
        cost[static_cast<std::size_t>(owner)] += part + 1;
      }
      // Runs differ by one part at most, so an owner is at most two of the longest from the mean.
      const std::int64_t total = parts * (parts + 1) / 2;
      for (const std::int64_t one : cost) {
        CHECK(std::abs(one * members - total) <= 2 * parts * members);
      }
    }
  }
}

TEST_CASE("a team's report of a right answer is that of one process, gradients and sums included") {
  for (const bool with_sums : {false, true}) {
    const CaseBuilder builder = answered(kSizes, with_sums);
    REQUIRE(judge(builder, "bf16-flash").verdict == Verdict::pass);
    require_same_reports(builder, "bf16-flash");
  }
}

TEST_CASE("a team's report of a wrong answer names the same elements") {
  const CaseBuilder right = answered(kSizes, true);
  for (const char* name : {"out", "lse", "dq", "dk", "dv", "dbias", "dsinks"}) {
    CaseBuilder builder = right;
    set_value(builder, name, 1, 1000);
    INFO(name);
    REQUIRE(judge(builder, "bf16-flash").verdict == Verdict::fail);
    require_same_reports(builder, "bf16-flash");
  }
  CaseBuilder builder = right;  // of two that are equally wrong the first is named
  const auto last = kSizes.batches * kSizes.heads * kSizes.queries - 1;
  for (const std::int64_t row : {std::int64_t{0}, last}) {
    set_value(builder, "lse", row, std::numeric_limits<double>::quiet_NaN());
  }
  require_same_reports(builder, "bf16-flash");
}

TEST_CASE("a team's report is the same where precision or assumptions end") {
  CaseBuilder builder = answered(kSizes, true);
  set_value(builder, "k", 7, std::numeric_limits<double>::infinity());
  REQUIRE(judge(builder, "bf16-flash").find(AnswerKind::out)->tally.not_applicable > 0);
  require_same_reports(builder, "bf16-flash");
  const CheckOptions demanding = options_with([](auto& options) { options.power = 1e-12; });
  require_same_reports(answered(kSizes, false), "bf16-flash", demanding);
  CHECK(judge(builder, "bf16-flash", demanding).verdict == Verdict::undecided);
}

TEST_CASE("a team judges samples, rows at edges, single answers and intervals as one process") {
  const CaseBuilder builder = answered(kSizes, true);
  const auto same_with = [&](const auto& change) {
    require_same_reports(builder, "bf16-flash", options_with(change));
  };
  same_with([](auto& options) { options.rows = 21, options.seed = 3; });
  same_with([](auto& options) { options.rows = 5, options.edges_first = true; });
  same_with([](auto& options) { options.only = {AnswerKind::dq}; });
  same_with([](auto& options) { options.only = {AnswerKind::out}, options.probabilistic = true; });
  same_with([](auto& options) { options.rows = 9, options.bits = 128; });
}

TEST_CASE("a team refuses inputs that the contract cannot load with the words of one process") {
  CaseBuilder builder = random_case(DType::f32, kSizes);
  answer(builder, DType::f32);
  const std::string alone = report_of(builder, "bf16-flash", {}, nullptr);
  REQUIRE(alone.find("which is no number of the contract's input type") != std::string::npos);
  require_same_reports(builder, "bf16-flash");
}

TEST_CASE("what one member alone fails at, all refuse, and the message names its rank") {
  const auto complaints = on_every_member(3, [&](const ThreadTeam& team) -> std::string {
    try {
      together(&team, [&] {
        if (team.rank() == 1) throw BadInput("a.safetensors: ends too early");
      });
    } catch (const BadInput& error) {
      return error.what();
    }
    return "";
  });
  for (const std::string& complaint : complaints) {
    CHECK(complaint == "rank 1: a.safetensors: ends too early");
  }
  const auto shared = on_every_member(3, [&](const ThreadTeam& team) -> std::string {
    try {
      together(&team, [] { throw BadInput("a.safetensors: no such file"); });
    } catch (const BadInput& error) {
      return error.what();
    }
    return "";
  });
  for (const std::string& complaint : shared) CHECK(complaint == "a.safetensors: no such file");
  const auto different = on_every_member(3, [&](const ThreadTeam& team) -> std::string {
    try {
      require_same(&team, team.rank() == 2 ? "b" : "a", "another file");
    } catch (const BadInput& error) {
      return error.what();
    }
    return "";
  });
  for (const std::string& complaint : different) CHECK(complaint == "rank 2: another file");
}

TEST_CASE("a digest tells cases apart that differ in one number, one position or the spec") {
  const CaseBuilder builder = answered({}, true);
  const std::uint64_t digest = digest_of(builder.assemble());
  CHECK(digest_of(builder.assemble()) == digest);
  for (const char* name : {"q", "v", "bias", "sinks", "dout", "out", "dsinks"}) {
    CaseBuilder other = builder;
    set_value(other, name, 0, 3.5);
    INFO(name);
    CHECK(digest_of(other.assemble()) != digest);
  }
  CaseBuilder other = builder;
  other.spec = R"({"version": 1, "causal": "top_left"})";
  CHECK(digest_of(other.assemble()) != digest);
  other.spec = R"({"version": 1, "causal": "bottom_right", "scale": 0.25})";
  CHECK(digest_of(other.assemble()) != digest);

  const Problem problem = builder.assemble().problem;
  const std::tuple<const char*, DType, std::int64_t> lists[] = {
      {"positions_q", DType::i64, problem.queries}, {"positions_k", DType::i64, problem.keys},
      {"documents_q", DType::i32, problem.queries}, {"documents_k", DType::i32, problem.keys},
      {"key_lengths", DType::i32, problem.batches},
  };
  CaseBuilder listed = builder;
  listed.spec = R"({"version": 1})";
  for (const auto& [name, type, size] : lists) {
    listed.set(name, make_tensor(type, {size}, [](std::int64_t n) { return n; }));
  }
  const std::uint64_t with_lists = digest_of(listed.assemble());
  for (const auto& [name, type, size] : lists) {
    CaseBuilder changed = listed;
    changed.set(name, make_tensor(type, {size}, [last = size - 1](std::int64_t n) {
                  return n + (n == last ? 1 : 0);
                }));
    INFO(name);
    CHECK(digest_of(changed.assemble()) != with_lists);
  }
}

TEST_CASE("a message that ends too early is noticed") {
  std::string message = to_wire(std::vector<std::string>{"one", "two"});
  CHECK(from_wire<std::vector<std::string>>(message).back() == "two");
  message.pop_back();
  CHECK_THROWS_AS(from_wire<std::vector<std::string>>(message), std::logic_error);
}

TEST_CASE("how much was decided by intervals arrives as it left") {
  GradientTally sent;
  sent.escalated_rows = 3, sent.escalated_keys = 5, sent.bits = 256;
  const auto received = from_wire<GradientTally>(to_wire(sent));
  CHECK(received.escalated_rows == 3);
  CHECK(received.escalated_keys == 5);
  CHECK(received.bits == 256);
}
