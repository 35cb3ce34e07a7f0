// Claims about floating point: what exact arithmetic shows as equality is shown here as verdicts.
// Answers are put together by hand from row states, in orders and groupings no program of ours
// would choose.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "oracle/diagnose/diagnose.hpp"
#include "reference/score.hpp"
#include "tests/support/catch.hpp"
#include "tests/tiers/case_description.hpp"
#include "tests/tiers/judged.hpp"

using namespace ringproof;
using oracle::Verdict;
using reference::Answer;
using reference::Index;
using reference::NormalizedPartial;
using reference::RowState;
using test::CaseDescription;

namespace {

constexpr Index kRows = 12, kWidth = 8;
using Keys = std::vector<Index>;

/// Keys [first, last).
Keys keys_between(Index first, Index last) {
  Keys keys(static_cast<std::size_t>(last - first));
  std::iota(keys.begin(), keys.end(), first);
  return keys;
}

/// One fp32 head, 12 queries on 12 keys, whose states and answers are made by hand.
class OneHead {
 public:
  explicit OneHead(CaseDescription description) {
    description.queries = description.keys = kRows;
    description.head_dim = description.value_dim = kWidth;
    const std::string path = folder_.file("problem.safetensors");
    test::write_case_file(description, path);
    case_ = oracle::read_case(path);
    input_.emplace(reference::read_input(path));
    owned_.emplace(*input_);
    problem_ = owned_->problem();
  }

  /// State of query i after these keys, absorbed as one block.
  RowState<float> state(Index i, const Keys& keys) const {
    std::vector<float> scores, values;
    for (const Index j : keys) {
      std::vector<float> q, k;
      for (Index d = 0; d < kWidth; ++d) {
        q.push_back(problem_.q(0, 0, i, d));
        k.push_back(problem_.k(0, 0, j, d));
      }
      const bool sees = visible(problem_, {0, 0, i}, j);
      scores.push_back(sees ? score(problem_, {0, 0, i}, j, reference::dot<float>(q, k))
                            : -INFINITY);
      for (Index c = 0; c < kWidth; ++c) values.push_back(problem_.v(0, 0, j, c));
    }
    RowState<float> result(kWidth);
    absorb(result, scores, values);
    return result;
  }

  /// Judges the answer whose row i is `partial_of_row(i)`, under a contract.
  oracle::Report judge(const std::string& contract, const auto& partial_of_row) {
    answer_ = {};
    for (Index i = 0; i < kRows; ++i) {
      const NormalizedPartial<float> partial = partial_of_row(i);
      answer_.out.insert(answer_.out.end(), partial.out.begin(), partial.out.end());
      answer_.lse.push_back(partial.lse);
    }
    case_.answers = {{oracle::AnswerKind::out, view(answer_.out, kWidth)},
                     {oracle::AnswerKind::lse, view(answer_.lse, 1)}};
    contract_ = oracle::read_contract(contract, case_.problem.spec);
    return oracle::check(case_, contract_, {});
  }

  /// Ids of the classes that explain the answer judged last.
  std::set<std::string> explanations(const oracle::Report& report) const {
    std::set<std::string> ids;
    for (const auto& one : oracle::diagnose(case_, contract_, {}, report).explanations) {
      ids.insert(one.id);
    }
    return ids;
  }

  /// Only the first `length` keys count from now on.
  void set_length(Index length) { case_.problem.key_length = {length}; }
  const std::vector<float>& out() const { return answer_.out; }

 private:
  static oracle::Tensor view(const std::vector<float>& numbers, Index columns) {
    return {oracle::DType::f32,
            {1, 1, kRows, columns},
            {0, 0, columns, 1},
            reinterpret_cast<const std::byte*>(numbers.data())};
  }

  test::TemporaryFolder folder_;
  oracle::Case case_;
  std::optional<reference::CaseInput> input_;
  std::optional<reference::CaseProblem<float>> owned_;
  reference::Problem<float> problem_;
  Answer<float> answer_;
  oracle::Contract contract_;
};

NormalizedPartial<float> finished(const RowState<float>& state) {
  NormalizedPartial<float> partial{std::vector<float>(kWidth), log_sum_exp(state)};
  finish<float>(state, 0.0f, partial.out);
  return partial;
}

/// Four blocks of three keys.
std::vector<Keys> four_blocks() {
  return {keys_between(0, 3), keys_between(3, 6), keys_between(6, 9), keys_between(9, 12)};
}

}  // namespace

TEST_CASE("C2: shifted by up to 1e5, all answers stay within the contract") {
  const test::TemporaryFolder folder;
  for (const double shift : {0.0, 1.0, -37.5, 1e3, -1e3, 1e5, -1e5}) {
    // One more component of q and k adds exactly `shift` to every score.
    const std::string path = folder.file("problem.safetensors"),
                      out = folder.file("out.safetensors");
    std::vector<float> q, k, v;
    for (Index i = 0; i < kRows; ++i) {
      for (Index d = 0; d < kWidth; ++d) {
        q.push_back(static_cast<float>((7 * i + 3 * d) % 11 - 5) / 4);
        k.push_back(static_cast<float>((5 * i + 2 * d) % 13 - 6) / 4);
        v.push_back(static_cast<float>((3 * i + 5 * d) % 7 + 1));
      }
      q.push_back(static_cast<float>(shift));
      k.push_back(1);
    }
    const auto bytes = [](const std::vector<float>& numbers) {
      return reinterpret_cast<const std::byte*>(numbers.data());
    };
    oracle::write_case(path,
                       {{"q", oracle::DType::f32, {1, 1, kRows, kWidth + 1}, bytes(q)},
                        {"k", oracle::DType::f32, {1, 1, kRows, kWidth + 1}, bytes(k)},
                        {"v", oracle::DType::f32, {1, 1, kRows, kWidth}, bytes(v)}},
                       R"({"version":1,"scale":1})");
    test::run_reference(path, {4, reference::Layout::contiguous, reference::Direction::down}, out);
    CHECK(test::judge_file(out).verdict == Verdict::pass);
  }
}

TEST_CASE("C3: the state after every prefix is judged as the dense answer of that prefix") {
  for (const unsigned seed : {1u, 2u, 3u}) {
    OneHead head({.bias = 4, .seed = seed});
    for (Index length = 1; length <= kRows; ++length) {
      head.set_length(length);
      const auto report = head.judge("fp32", [&](Index i) {
        RowState<float> state(kWidth);
        for (Index j = 0; j < length; ++j) state = merge(state, head.state(i, {j}));
        return finished(state);
      });
      CHECK(report.verdict == Verdict::pass);
    }
  }
}

TEST_CASE("C11: all orders of four blocks pass the judge, though their bits differ") {
  OneHead head({.causal = 1, .seed = 4});
  std::vector<Keys> blocks = four_blocks();
  std::set<std::vector<float>> answers;
  int orders = 0;
  do {
    const auto report = head.judge("fp32-ring4", [&](Index i) {
      RowState<float> state(kWidth);
      for (const Keys& block : blocks) state = merge(state, head.state(i, block));
      return finished(state);
    });
    CHECK(report.verdict == Verdict::pass);
    answers.insert(head.out());
    ++orders;
  } while (std::next_permutation(blocks.begin(), blocks.end()));
  CHECK(orders == 24);
  CHECK(answers.size() > 1);
}

TEST_CASE("C16: with and without tiles inside the ranks the answer passes the same contract") {
  OneHead head({.seed = 5});
  for (const Index tile : {1, 2, 3}) {
    const auto report = head.judge("fp32-ring4", [&](Index i) {
      RowState<float> ring(kWidth);
      for (const Keys& block : four_blocks()) {
        RowState<float> rank(kWidth);
        for (Index first = 0; first < 3; first += tile) {
          const Index last = std::min<Index>(3, first + tile);
          rank = merge(rank, head.state(i, keys_between(block[0] + first, block[0] + last)));
        }
        ring = merge(ring, rank);
      }
      return finished(ring);
    });
    CHECK(report.verdict == Verdict::pass);
  }
}

TEST_CASE("C20: the mean of normalised blocks is refused, and the judge names the mistake") {
  OneHead head({.seed = 6});
  const auto report = head.judge("fp32-ring4", [&](Index i) {
    NormalizedPartial<float> mean{std::vector<float>(kWidth), 0};
    RowState<float> all(kWidth);
    for (const Keys& block : four_blocks()) {
      const RowState<float> state = head.state(i, block);
      const NormalizedPartial<float> partial = finished(state);
      for (std::size_t c = 0; c < partial.out.size(); ++c) mean.out[c] += partial.out[c] / 4;
      all = merge(all, state);
    }
    mean.lse = log_sum_exp(all);
    return mean;
  });
  CHECK(report.verdict == Verdict::fail);
  CHECK(report.find(oracle::AnswerKind::out)->verdict == Verdict::fail);
  CHECK(report.find(oracle::AnswerKind::lse)->verdict == Verdict::pass);
  CHECK(head.explanations(report).count("NORM-AVERAGE") == 1);
}

TEST_CASE("C21: normalised partials weighted by their LSE pass where the mean of them fails") {
  OneHead head({.seed = 6});  // the head of the test before
  const auto report = head.judge("fp32-ring4", [&](Index i) {
    NormalizedPartial<float> joined{std::vector<float>(kWidth)};
    for (const Keys& block : four_blocks()) {
      joined = merge(joined, finished(head.state(i, block)));
    }
    return joined;
  });
  CHECK(report.verdict == Verdict::pass);
}

TEST_CASE("C24: rows whose maximum arrives last, after blocks they do not see, pass the judge") {
  OneHead head({.causal = 1, .seed = 7});
  const auto report = head.judge("fp32-ring12", [&](Index i) {
    // Keys in ascending order of their scores, the invisible ones first.
    Keys order = keys_between(0, kRows);
    std::stable_sort(order.begin(), order.end(),
                     [&](Index a, Index b) { return head.state(i, {a}).m < head.state(i, {b}).m; });
    RowState<float> state(kWidth);
    for (const Index j : order) state = merge(state, head.state(i, {j}));
    return finished(state);
  });
  CHECK(report.verdict == Verdict::pass);
}
