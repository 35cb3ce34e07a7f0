#include "tests/bench/judge/long_case.hpp"

#include <cmath>
#include <numbers>
#include <random>
#include <stdexcept>

#include "oracle/judge/certified_rows.hpp"

namespace ringproof::bench {

namespace {

using oracle::DType;

constexpr std::int64_t kHeadDim = 64, kColumns = 64, kPositive = 16, kBlock = 64;

std::uint64_t scramble(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

void put(std::vector<std::byte>& bytes, DType type, std::int64_t n, double value) {
  const std::size_t size = oracle::size_of(type);
  oracle::encode(type, oracle::round_nearest(type, value),
                 bytes.data() + static_cast<std::size_t>(n) * size);
}

oracle::Tensor view(const std::vector<std::byte>& bytes, DType type, std::int64_t rows,
                    std::int64_t columns) {
  return {type, {1, 1, rows, columns}, {rows * columns, rows * columns, columns, 1}, bytes.data()};
}

class Drawer {
 public:
  Drawer(const std::string& family, std::int64_t keys) : family_(family), keys_(keys) {
    if (family != "randn" && family != "LE" && family != "LD" && family != "LC") {
      throw std::invalid_argument("families: randn LE LD LC");
    }
  }

  double query(std::int64_t t) {
    if (family_ == "LE") return 0;
    if (family_ == "LD") return t == 0 ? 1 : 0;
    return normal_(generator_);
  }

  double key(std::int64_t j, std::int64_t t) {
    if (family_ != "LD") return normal_(generator_);
    return t == 0 ? -static_cast<double>(j / (keys_ / 8) % 4) : 0;
  }

  double value(std::int64_t j, std::int64_t c) {
    if (family_ == "randn") return normal_(generator_);
    if (family_ == "LE") {
      const std::uint64_t bits = scramble(static_cast<std::uint64_t>(j % (keys_ / 2) * 64 + c + 1));
      const double magnitude = 1.0 + static_cast<double>(bits % 3);
      if (c < kPositive) return magnitude;
      return (((bits >> 8) & 1) != 0) == (j < keys_ / 2) ? magnitude : -magnitude;
    }
    if (c < kPositive) return uniform_(generator_);
    const std::uint64_t bits = scramble(static_cast<std::uint64_t>(j / kBlock * 64 + c + 1));
    return (bits & 1) != 0 ? 1 : -1;
  }

 private:
  std::string family_;
  std::int64_t keys_;
  std::mt19937_64 generator_{5};
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_{0.5, 1.5};
};

void answer_sample(LongCase& made, std::int64_t sampled_rows, std::uint64_t seed) {
  const oracle::Problem& problem = made.input.problem;
  const oracle::RowSet rows(problem, sampled_rows, seed);
  const auto chunks = oracle::chunks_of(problem, rows);
  const oracle::WalkOptions options;
  std::vector<oracle::RowBlock> scratch(oracle::worker_count(options));
  oracle::walk(problem, chunks, options,
               [&](std::size_t worker, std::size_t, const oracle::Chunk& chunk,
                   const oracle::HeadTruth& head) {
                 oracle::certified_rows(problem, rows, chunk, 0, head, scratch[worker],
                                        [&](std::int64_t, oracle::RowTruth& row) {
                                          for (std::int64_t c = 0; c < kColumns; ++c) {
                                            put(made.out, DType::bf16, row.i * kColumns + c,
                                                row.out[static_cast<std::size_t>(c)].hi);
                                          }
                                          put(made.lse, DType::f32, row.i, row.lse.hi);
                                        });
               });
}

}  // namespace

LongCase long_case(const std::string& family, std::int64_t keys, std::int64_t sampled_rows,
                   std::uint64_t seed) {
  LongCase made;
  Drawer draw(family, keys);
  const auto bytes = [&](std::int64_t columns, DType type) {
    return std::vector<std::byte>(static_cast<std::size_t>(keys * columns) * oracle::size_of(type));
  };
  made.q = bytes(kHeadDim, DType::bf16);
  made.k = bytes(kHeadDim, DType::bf16);
  made.v = bytes(kColumns, DType::bf16);
  made.out = bytes(kColumns, DType::bf16);
  made.lse = bytes(1, DType::f32);
  for (std::int64_t j = 0; j < keys; ++j) {
    for (std::int64_t t = 0; t < kHeadDim; ++t) {
      put(made.q, DType::bf16, j * kHeadDim + t, draw.query(t));
      put(made.k, DType::bf16, j * kHeadDim + t, draw.key(j, t));
    }
    for (std::int64_t c = 0; c < kColumns; ++c) {
      put(made.v, DType::bf16, j * kColumns + c, draw.value(j, c));
    }
  }
  oracle::Problem& p = made.input.problem;
  p.batches = p.heads = p.kv_heads = 1;
  p.queries = p.keys = keys;
  p.head_dim = kHeadDim;
  p.value_dim = kColumns;
  p.q = view(made.q, DType::bf16, keys, kHeadDim);
  p.k = view(made.k, DType::bf16, keys, kHeadDim);
  p.v = view(made.v, DType::bf16, keys, kColumns);
  p.key_length = {keys};
  for (std::int64_t j = 0; j < keys; ++j) p.position_k.push_back(j);
  p.position_q = p.position_k;
  p.document_q.assign(static_cast<std::size_t>(keys), 0);
  p.document_k = p.document_q;
  if (family == "LD") p.spec.scale = std::numbers::ln2;
  oracle::index_keys(p);
  made.input.name = family;
  made.input.answers = {{oracle::AnswerKind::out, view(made.out, DType::bf16, keys, kColumns)},
                        {oracle::AnswerKind::lse, view(made.lse, DType::f32, keys, 1)}};
  answer_sample(made, sampled_rows, seed);
  return made;
}

void write_long_case(const LongCase& made, const std::string& contract, const std::string& path) {
  const std::int64_t n = made.input.problem.keys;
  oracle::Spec spec = made.input.problem.spec;
  spec.contract = contract;
  oracle::write_case(path,
                     {{"k", DType::bf16, {1, 1, n, kHeadDim}, made.k.data()},
                      {"lse", DType::f32, {1, 1, n}, made.lse.data()},
                      {"out", DType::bf16, {1, 1, n, kColumns}, made.out.data()},
                      {"q", DType::bf16, {1, 1, n, kHeadDim}, made.q.data()},
                      {"v", DType::bf16, {1, 1, n, kColumns}, made.v.data()}},
                     oracle::to_json(spec));
}

}  // namespace ringproof::bench
