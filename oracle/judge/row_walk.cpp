#include "oracle/judge/row_walk.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_set>

#include "oracle/judge/random_draw.hpp"

namespace ringproof::oracle {

namespace {

/// Few enough that every thread gets some rows of a long sample, many enough to cost nothing to
/// share out.
std::int64_t rows_per_chunk(const Problem& problem) {
  constexpr std::int64_t kLongRow = 16384, kShortRowsPerChunk = 32;
  return problem.keys >= kLongRow ? HeadTruth::kRows : kShortRowsPerChunk;
}

/// `count` different numbers below `total`, increasing (Floyd's sampling: memory for the sample
/// only).
std::vector<std::int64_t> sample_rows(std::int64_t total, std::int64_t count, std::uint64_t seed) {
  std::unordered_set<std::int64_t> chosen;
  for (std::int64_t last = total - count; last < total; ++last) {
    const auto drawn =
        static_cast<std::int64_t>(uniform_below(static_cast<std::uint64_t>(last) + 1, seed));
    if (!chosen.insert(drawn).second) chosen.insert(last);
  }
  std::vector<std::int64_t> rows(chosen.begin(), chosen.end());
  std::sort(rows.begin(), rows.end());
  return rows;
}

/// The decoded keys and values of one KV head, built by whoever needs them first.
struct HeadSlot {
  std::mutex mutex;
  std::optional<HeadTruth> truth;
  std::int64_t chunks_left = 0;
};

}  // namespace

RowSet::RowSet(std::int64_t batches, std::int64_t heads, std::int64_t rows)
    : heads_(heads), rows_(rows), total_(batches * heads * rows), size_(total_) {}

RowSet::RowSet(const Problem& problem) : RowSet(problem.batches, problem.heads, problem.queries) {}

RowSet::RowSet(const Problem& problem, std::int64_t count, std::uint64_t seed) : RowSet(problem) {
  sample(count, seed);
}

RowSet::RowSet(const Problem& problem, std::vector<std::int64_t> numbers) : RowSet(problem) {
  size_ = static_cast<std::int64_t>(numbers.size());
  if (size_ < total_) sample_ = std::move(numbers);
}

RowSet RowSet::keys_of(const Problem& problem) {
  return {problem.batches, problem.kv_heads, problem.keys};
}

RowSet RowSet::keys_of(const Problem& problem, std::int64_t count, std::uint64_t seed) {
  RowSet keys = keys_of(problem);
  keys.sample(count, seed);
  return keys;
}

void RowSet::sample(std::int64_t count, std::uint64_t seed) {
  if (count >= total_) return;
  sample_ = sample_rows(total_, count, seed);
  size_ = count;
}

Row RowSet::row(std::int64_t n) const {
  const std::int64_t number = sample_.empty() ? n : sample_[static_cast<std::size_t>(n)];
  const std::int64_t head = number / rows_;
  return {head / heads_, head % heads_, number % rows_};
}

bool RowSet::contains(const Row& row) const {
  if (size_ == total_) return true;
  const std::int64_t number = (row.b * heads_ + row.h) * rows_ + row.i;
  return std::binary_search(sample_.begin(), sample_.end(), number);
}

std::vector<Chunk> chunks_of(const Problem& problem, const RowSet& rows, std::int64_t most_rows) {
  const std::int64_t most = most_rows > 0 ? most_rows : rows_per_chunk(problem);
  std::vector<Chunk> chunks;
  for (std::int64_t n = 0; n < rows.size(); ++n) {
    const Row row = rows.row(n);
    const Chunk one{row.b, problem.kv_head(row.h), n, n + 1};
    if (!chunks.empty() && same_head(chunks.back(), one) && n - chunks.back().first < most) {
      chunks.back().last = n + 1;
    } else {
      chunks.push_back(one);
    }
  }
  return chunks;
}

std::size_t worker_count(const WalkOptions& options) {
  if (options.threads > 0) return static_cast<std::size_t>(options.threads);
  return std::max(1u, std::thread::hardware_concurrency());
}

void walk(const Problem& problem, std::span<const Chunk> chunks, const WalkOptions& options,
          const ChunkWork& work) {
  std::vector<std::size_t> slot_of(chunks.size());
  std::vector<std::unique_ptr<HeadSlot>> slots;
  std::int64_t total = 0;
  for (std::size_t n = 0; n < chunks.size(); ++n) {
    if (n == 0 || !same_head(chunks[n], chunks[n - 1]))
      slots.push_back(std::make_unique<HeadSlot>());
    slot_of[n] = slots.size() - 1;
    ++slots.back()->chunks_left;
    total += chunks[n].last - chunks[n].first;
  }

  std::atomic<std::size_t> next{0};
  std::atomic<bool> stop{false};
  std::mutex report_mutex;
  std::int64_t done = 0;
  std::size_t failed_chunk = chunks.size();
  std::exception_ptr failure;

  const auto visit = [&](std::size_t worker) {
    while (!stop) {
      const std::size_t n = next++;
      if (n >= chunks.size()) return;
      HeadSlot& slot = *slots[slot_of[n]];
      try {
        {
          const std::lock_guard lock(slot.mutex);
          if (!slot.truth) {
            slot.truth.emplace(problem, chunks[n].b, chunks[n].kv_head, options.precision);
          }
        }
        work(worker, n, chunks[n], *slot.truth);
        {
          const std::lock_guard lock(slot.mutex);
          if (--slot.chunks_left == 0) slot.truth.reset();
        }
        const std::lock_guard lock(report_mutex);
        done += chunks[n].last - chunks[n].first;
        if (options.progress) options.progress(done, total);
      } catch (...) {
        const std::lock_guard lock(report_mutex);
        stop = true;
        if (n < failed_chunk) {
          failed_chunk = n;
          failure = std::current_exception();
        }
        return;
      }
    }
  };

  {
    const std::size_t workers =
        std::min(worker_count(options), std::max<std::size_t>(1, chunks.size()));
    std::vector<std::jthread> pool;
    for (std::size_t worker = 1; worker < workers; ++worker) pool.emplace_back(visit, worker);
    visit(0);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace ringproof::oracle
