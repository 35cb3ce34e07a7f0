#include "oracle/judge/gradient_walk.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>

#include "oracle/judge/certified_rows.hpp"

namespace ringproof::oracle {

namespace {

/// The groups of one KV head: what is finished, and how much of it is merged into the first.
struct HeadGroups {
  std::mutex mutex;
  std::optional<HeadGradients> backward;
  std::vector<std::unique_ptr<GradientGroup>> finished;
  std::size_t merged = 0;

  /// Takes the n-th group, and merges what is there in order; true if that was all.
  bool take(std::size_t n, std::unique_ptr<GradientGroup> group) {
    finished[n] = std::move(group);
    for (; merged < finished.size() && finished[merged]; ++merged) {
      if (merged == 0) continue;
      finished[0]->merge(*finished[merged]);
      finished[merged].reset();
    }
    return merged == finished.size();
  }
};

/// Reusable memory of one thread.
struct Scratch {
  RowBlock rows;
  std::array<RowGradients, HeadTruth::kRows> gradients;
};

struct Walk {
  const Problem& problem;
  const Upstream& upstream;
  const RowSet& rows;
  unsigned bits;

  void visit(const HeadView& head, const Chunk& chunk, Scratch& scratch,
             GradientGroup& group) const {
    for (std::int64_t first = chunk.first; first < chunk.last; first += HeadTruth::kRows) {
      const std::int64_t count = std::min<std::int64_t>(HeadTruth::kRows, chunk.last - first);
      HeadTruth::RowId ids[HeadTruth::kRows];
      for (std::int64_t n = 0; n < count; ++n) {
        const Row row = rows.row(first + n);
        ids[n] = {row.h, row.i};
      }
      if (bits == 0) {
        head.backward.rows({ids, static_cast<std::size_t>(count)}, scratch.rows.data(),
                           scratch.gradients.data(), group.sums());
      }
      for (std::int64_t n = 0; n < count; ++n) {
        RowTruth& row = scratch.rows[static_cast<std::size_t>(n)];
        RowGradients& gradients = scratch.gradients[static_cast<std::size_t>(n)];
        complete(chunk.b, ids[n], row, gradients, group.sums());
        group.add_row(head, row, gradients);
      }
    }
  }

  /// The row from intervals where that was asked for or double-double failed.
  void complete(std::int64_t b, HeadTruth::RowId id, RowTruth& row, RowGradients& gradients,
                GradientSums* sums) const {
    if (bits > 0) {
      row = RowTruth{};
      gradients = RowGradients{};
      gradients.failed = true;
    }
    for (unsigned digits = std::max(bits, kFirstBits);
         gradients.failed && digits <= std::max(bits, kMostBits); digits *= 2) {
      interval_row_gradients(problem, upstream, b, id.h, id.i, digits, row, gradients, sums);
    }
  }
};

}  // namespace

std::vector<Chunk> gradient_chunks(const Problem& problem, const RowSet& rows) {
  const std::int64_t rows_of_head = problem.group() * problem.queries;
  const std::int64_t most =
      std::max(kFewestRows, (rows_of_head + kGroupsPerHead - 1) / kGroupsPerHead);
  return chunks_of(problem, rows, most);
}

std::vector<std::unique_ptr<GradientGroup>> walk_gradients(const Problem& problem,
                                                           const Upstream& upstream,
                                                           const RowSet& rows, unsigned bits,
                                                           const WalkOptions& options,
                                                           const StartGroup& start) {
  const std::vector<Chunk> chunks = gradient_chunks(problem, rows);
  std::vector<std::size_t> head_of(chunks.size()), number(chunks.size());
  std::vector<std::unique_ptr<HeadGroups>> heads;
  for (std::size_t n = 0; n < chunks.size(); ++n) {
    if (n == 0 || !same_head(chunks[n], chunks[n - 1])) {
      heads.push_back(std::make_unique<HeadGroups>());
    }
    head_of[n] = heads.size() - 1;
    number[n] = heads.back()->finished.size();
    heads.back()->finished.emplace_back();
  }
  const Walk visitor{problem, upstream, rows, bits};
  std::vector<std::unique_ptr<Scratch>> scratch(worker_count(options));
  walk(problem, chunks, options,
       [&](std::size_t worker, std::size_t n, const Chunk& chunk, const HeadTruth& forward) {
         if (!scratch[worker]) scratch[worker] = std::make_unique<Scratch>();
         HeadGroups& head = *heads[head_of[n]];
         {
           const std::lock_guard lock(head.mutex);
           if (!head.backward) head.backward.emplace(problem, upstream, forward);
         }
         const HeadView view{chunk.b, chunk.kv_head, forward, *head.backward};
         std::unique_ptr<GradientGroup> group = start(view);
         visitor.visit(view, chunk, *scratch[worker], *group);
         const std::lock_guard lock(head.mutex);
         if (!head.take(number[n], std::move(group))) return;
         head.finished.front()->finish(view);
         head.backward.reset();
       });
  std::vector<std::unique_ptr<GradientGroup>> results;
  for (const auto& head : heads) results.push_back(std::move(head->finished.front()));
  return results;
}

}  // namespace ringproof::oracle
