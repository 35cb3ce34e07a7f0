// Which query rows are visited, and a pool of threads that visits them.
// Rows are numbered (b * H + h) * Nq + i, so that rows of one KV head are neighbours; they are
// handed out in fixed chunks whose results the caller merges in chunk order. Nothing a caller
// computes can therefore depend on the number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "oracle/case/problem.hpp"
#include "oracle/truth/truth.hpp"

namespace ringproof::oracle {

struct Row {
  std::int64_t b = 0, h = 0, i = 0;
};

/// All rows of a problem, or some of them: K drawn without repetition from a seed (the same on
/// every machine), or those named.
class RowSet {
 public:
  explicit RowSet(const Problem&);
  RowSet(const Problem&, std::int64_t count, std::uint64_t seed);
  /// Rows by number, (b * H + h) * Nq + i, increasing.
  RowSet(const Problem&, std::vector<std::int64_t> numbers);
  /// The same for key rows, (b * Hkv + h) * Nk + j: Row.h is the KV head, Row.i the key.
  static RowSet keys_of(const Problem&);
  static RowSet keys_of(const Problem&, std::int64_t count, std::uint64_t seed);

  std::int64_t size() const { return size_; }
  std::int64_t total() const { return total_; }
  bool sampled() const { return !sample_.empty() || size_ < total_; }
  /// The n-th row visited, 0 <= n < size().
  Row row(std::int64_t n) const;
  bool contains(const Row&) const;

 private:
  RowSet(std::int64_t batches, std::int64_t heads, std::int64_t rows);
  void sample(std::int64_t count, std::uint64_t seed);

  std::int64_t heads_, rows_, total_, size_;
  std::vector<std::int64_t> sample_;  // increasing row numbers; empty: all (or none, if size_ is 0)
};

/// Rows [first, last) of a RowSet, all of one KV head.
struct Chunk {
  std::int64_t b = 0, kv_head = 0;
  std::int64_t first = 0, last = 0;
};

/// The most that a caller may ask for: beyond it a number is a slip, not a machine.
inline constexpr int kMostThreads = 1024;

struct WalkOptions {
  Precision precision = Precision::fast;
  int threads = 0;  // 0: as many as the machine has
  /// Called now and then with rows done and rows in all, never from two threads at once. What it
  /// throws ends the walk.
  std::function<void(std::int64_t, std::int64_t)> progress;
};

/// The chunks of a row set, in order; of at most so many rows each (0: as many as forward rows are
/// best handed out).
std::vector<Chunk> chunks_of(const Problem&, const RowSet&, std::int64_t most_rows = 0);
inline bool same_head(const Chunk& a, const Chunk& b) {
  return a.b == b.b && a.kv_head == b.kv_head;
}

/// Calls work(worker, chunk number, chunk, head) for every chunk, from `threads` threads; `worker`
/// counts from 0 below worker_count(). The head is built once, when its first chunk comes up, and
/// freed after its last one. The first exception (in chunk order) ends the walk and is thrown here.
using ChunkWork = std::function<void(std::size_t, std::size_t, const Chunk&, const HeadTruth&)>;
void walk(const Problem&, std::span<const Chunk>, const WalkOptions&, const ChunkWork&);
std::size_t worker_count(const WalkOptions&);

}  // namespace ringproof::oracle
