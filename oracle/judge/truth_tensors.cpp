#include "oracle/judge/truth_tensors.hpp"

#include <cmath>
#include <limits>

#include "oracle/judge/certified_rows.hpp"
#include "oracle/judge/exact_row.hpp"
#include "oracle/judge/exact_sum.hpp"
#include "oracle/judge/row_judge.hpp"

namespace ringproof::oracle {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// a + b as a point.
Certified exact_pair(double a, double b) {
  const double sum = a + b, part = sum - a;
  return {sum, (a - (sum - part)) + (b - part), 0};
}

/// Replaces the ball of one column by a point if its exact value is zero or the number half-way
/// between two neighbours of the type, which are what a small ball leaves open.
void recognise_tie(DType type, const ExactRow& row, std::int64_t column, Certified& out) {
  const double low = nearest(type, exact_sum({out.hi, out.lo, -out.radius, 0}));
  const double high = nearest(type, exact_sum({out.hi, out.lo, out.radius, 0}));
  if (low <= 0 && high >= 0 && row.column_is(column, Dyadic())) {
    out = {0, 0, 0};
    return;
  }
  const bool neighbours = std::isfinite(low) && std::isfinite(high) &&
                          round_up(type, std::nextafter(low, kInfinity)) == high;
  const double half = (high - low) / 2;
  // Half the smallest step of binary64 is no number: such a tie stays undecided.
  if (!neighbours || half + half != high - low) return;
  if (row.column_is(column, Dyadic(low) + Dyadic(half))) out = exact_pair(low, half);
}

/// Raises a row until it is certified and, where answers are rounded, until all of it is decided.
class RowSettler {
 public:
  RowSettler(const Problem& problem, LseBase base, const std::optional<RoundTo>& round_to)
      : problem_(problem), base_(base), round_to_(round_to) {}

  void settle(RowTruth& row) const {
    certify(problem_, row);
    if (!round_to_ || !row.not_applicable.empty() || row.empty() || settled(row)) return;
    recognise_ties(row);
    for (unsigned bits = kFirstBits; !settled(row) && bits <= kMostBits; bits *= 2) {
      interval_row(problem_, row.b, row.h, row.i, bits, row);
      recognise_ties(row);
    }
  }

 private:
  bool settled(const RowTruth& row) const {
    for (const Certified& x : row.out) {
      if (!decided(round_to_->out, x)) return false;
    }
    return decided(round_to_->lse, base_ == LseBase::two ? in_base_two(row.lse) : row.lse)
        .has_value();
  }

  /// An LSE is a tie only where a single key is visible; its interval is then a point.
  void recognise_ties(RowTruth& row) const {
    std::optional<ExactRow> exact;
    for (std::size_t c = 0; c < row.out.size(); ++c) {
      if (decided(round_to_->out, row.out[c])) continue;
      if (!exact) exact.emplace(problem_, row);
      recognise_tie(round_to_->out, *exact, static_cast<std::int64_t>(c), row.out[c]);
    }
  }

  const Problem& problem_;
  LseBase base_;
  const std::optional<RoundTo>& round_to_;
};

/// Writes one row's ends into the tensors.
class RowWriter {
 public:
  RowWriter(const Problem& problem, LseBase base, const RoundTo& types, TruthTensors& tensors)
      : problem_(problem), base_(base), types_(types), tensors_(tensors) {}

  void write(const RowTruth& row) const {
    const std::int64_t n = (row.b * problem_.heads + row.h) * problem_.queries + row.i;
    if (!row.not_applicable.empty()) return write_all(n, kNaN, kNaN, kNaN, kNaN);
    if (row.empty()) return write_empty(n);
    for (std::int64_t c = 0; c < problem_.value_dim; ++c) {
      tensors_.out.set(n * problem_.value_dim + c, row.out[static_cast<std::size_t>(c)],
                       types_.out);
    }
    tensors_.lse.set(n, base_ == LseBase::two ? in_base_two(row.lse) : row.lse, types_.lse);
  }

 private:
  void write_empty(std::int64_t n) const {
    switch (problem_.spec.empty_row) {
      case EmptyRow::zero:
        return write_all(n, 0, 0, -kInfinity, -kInfinity);
      case EmptyRow::nan:
        return write_all(n, kNaN, kNaN, -kInfinity, -kInfinity);
      case EmptyRow::any:
        return write_all(n, -kInfinity, kInfinity, -kInfinity, kInfinity);
    }
  }
  void write_all(std::int64_t n, double out_low, double out_high, double lse_low,
                 double lse_high) const {
    for (std::int64_t c = 0; c < problem_.value_dim; ++c) {
      tensors_.out.set(n * problem_.value_dim + c, out_low, out_high);
    }
    tensors_.lse.set(n, lse_low, lse_high);
  }

  const Problem& problem_;
  LseBase base_;
  RoundTo types_;
  TruthTensors& tensors_;
};

}  // namespace

TruthTensors truth_tensors(const Problem& problem, LseBase base, unsigned bits,
                           const WalkOptions& options, const std::optional<RoundTo>& round_to) {
  arithmetic_self_test();
  const RowSet rows(problem);
  TruthTensors tensors;
  tensors.out.resize(rows.size() * problem.value_dim, round_to.has_value());
  tensors.lse.resize(rows.size(), round_to.has_value());
  const RowSettler settler(problem, base, round_to);
  const RowWriter writer(problem, base, round_to.value_or(RoundTo{DType::f64, DType::f64}),
                         tensors);
  const std::vector<Chunk> chunks = chunks_of(problem, rows);
  std::vector<RowBlock> scratch(worker_count(options));
  walk(problem, chunks, options,
       [&](std::size_t worker, std::size_t, const Chunk& chunk, const HeadTruth& head) {
         certified_rows(problem, rows, chunk, bits, head, scratch[worker],
                        [&](std::int64_t, RowTruth& row) {
                          settler.settle(row);
                          writer.write(row);
                        });
       });
  return tensors;
}

}  // namespace ringproof::oracle
