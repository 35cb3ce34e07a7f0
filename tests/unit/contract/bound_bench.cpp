// What the bounds of a row cost beside its truth, in processor time of one thread.
//   bound_bench [N, default 4096] [rows, default 64]
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "oracle/contract/bound.hpp"
#include "oracle/truth/truth.hpp"

using namespace ringproof::oracle;

namespace {

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct RandomCase {
  std::vector<float> q, k, v;
  Problem problem;

  explicit RandomCase(std::int64_t N, std::int64_t D) {
    std::mt19937_64 generator(1);
    std::normal_distribution<float> normal;
    problem.batches = problem.heads = problem.kv_heads = 1;
    problem.queries = problem.keys = N;
    problem.head_dim = problem.value_dim = D;
    for (auto* data : {&q, &k, &v}) {
      data->resize(static_cast<std::size_t>(N * D));
      for (float& x : *data) x = static_cast<float>(round_nearest(DType::bf16, normal(generator)));
    }
    const auto view = [&](const std::vector<float>& data) {
      return Tensor{DType::f32,
                    {1, 1, N, D},
                    {N * D, N * D, D, 1},
                    reinterpret_cast<const std::byte*>(data.data())};
    };
    problem.q = view(q);
    problem.k = view(k);
    problem.v = view(v);
    problem.key_length = {N};
    for (std::int64_t j = 0; j < N; ++j) {
      problem.position_q.push_back(j);
      problem.position_k.push_back(j);
    }
    problem.document_q.assign(static_cast<std::size_t>(N), 0);
    problem.document_k = problem.document_q;
  }
};

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t N = argc > 1 ? std::atoll(argv[1]) : 4096;
  const std::int64_t rows = argc > 2 ? std::atoll(argv[2]) : 64;
  const RandomCase random(N, 64);
  const HeadTruth head(random.problem, 0, 0, Precision::fast);
  std::vector<RowTruth> truth(static_cast<std::size_t>(rows));
  const auto compute = [&] {
    for (std::int64_t i = 0; i + HeadTruth::kRows <= rows; i += HeadTruth::kRows) {
      std::vector<HeadTruth::RowId> ids;
      for (std::int64_t r = 0; r < HeadTruth::kRows; ++r) ids.push_back({0, (i + r) * (N / rows)});
      head.rows(ids, truth.data() + i);
    }
  };
  compute();
  double start = thread_seconds();
  compute();
  const double of_truth = thread_seconds() - start;
  const double pairs = static_cast<double>(rows) * static_cast<double>(N);
  std::printf("%-44s %8.1f ns a key and row\n", "truth (fast)", 1e9 * of_truth / pairs);
  for (const char* name : {"fp32", "bf16-flash", "bf16-ring4", "bf16-decode8", "bf16-eager"}) {
    const Contract contract = read_contract(name, Spec{});
    for (const bool blocks : {false, true}) {
      RowBound bound;
      const auto judge = [&] {
        for (const auto& row : truth) {
          bound_row(contract, random.problem, row,
                    head.values() + row.keys.first * head.values_stride(), head.values_stride(),
                    blocks, bound);
        }
      };
      judge();
      start = thread_seconds();
      judge();
      const double of_bound = thread_seconds() - start;
      std::printf("%-30s %-13s %8.1f ns a key and row, %.2f of the truth\n", name,
                  blocks ? "and blocks" : "", 1e9 * of_bound / pairs, of_bound / of_truth);
    }
  }
}
