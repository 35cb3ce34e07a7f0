// The rows of the backward pass, shared out to threads in groups whose sums are merged in order.
// dk and dv add up what all rows of a KV head contribute, so the order of additions is part of the
// result: how rows are grouped depends on the problem alone, never on the number of threads.
// Not here: what is done with a row or a key (gradient_judge.hpp, gradient_truth.hpp).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "oracle/judge/row_walk.hpp"
#include "oracle/truth/backward.hpp"

namespace ringproof::oracle {

/// One KV head while its rows are visited.
struct HeadView {
  std::int64_t b = 0, kv_head = 0;
  const HeadTruth& forward;
  const HeadGradients& backward;
};

/// What a caller collects from consecutive rows of one KV head.
class GradientGroup {
 public:
  virtual ~GradientGroup() = default;
  /// Where dk and dv are added up; null: they are not wanted.
  virtual GradientSums* sums() = 0;
  /// One row, certified if interval arithmetic can do it; else `failed`. May be changed.
  virtual void add_row(const HeadView&, RowTruth&, RowGradients&) = 0;
  /// Joins the group of the rows that come next.
  virtual void merge(GradientGroup& later) = 0;
  /// All rows of the KV head are in.
  virtual void finish(const HeadView&) = 0;
};

/// An empty group of a KV head.
using StartGroup = std::function<std::unique_ptr<GradientGroup>(const HeadView&)>;

/// Visits the rows of the set; one finished group for each KV head that has any, in order. bits >
/// 0: every row from interval arithmetic of so many binary digits.
std::vector<std::unique_ptr<GradientGroup>> walk_gradients(const Problem&, const Upstream&,
                                                           const RowSet&, unsigned bits,
                                                           const WalkOptions&, const StartGroup&);

/// The groups of a row set: of every KV head at most kGroupsPerHead, and none of few rows.
std::vector<Chunk> gradient_chunks(const Problem&, const RowSet&);
constexpr std::int64_t kGroupsPerHead = 16, kFewestRows = 64;

}  // namespace ringproof::oracle
