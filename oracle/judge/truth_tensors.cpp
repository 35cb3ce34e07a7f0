#include "oracle/judge/truth_tensors.hpp"

#include <cmath>
#include <limits>

#include "oracle/judge/certified_rows.hpp"
#include "oracle/judge/exact_sum.hpp"
#include "oracle/judge/row_judge.hpp"

namespace ringproof::oracle {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Ends {
  double lo, hi;
};

/// The narrowest binary64 interval that holds the ball.
Ends ends_of(const Certified& x) {
  if (!(x.radius < kInfinity)) return {-kInfinity, kInfinity};
  return {down(DType::f64, exact_sum({x.hi, x.lo, -x.radius, 0})),
          up(DType::f64, exact_sum({x.hi, x.lo, x.radius, 0}))};
}

/// What an empty row must be, as an interval.
Ends empty_out(EmptyRow demanded) {
  switch (demanded) {
    case EmptyRow::zero:
      return {0, 0};
    case EmptyRow::nan:
      return {kNaN, kNaN};
    case EmptyRow::any:
      break;
  }
  return {-kInfinity, kInfinity};
}

Ends empty_lse(EmptyRow demanded) {
  return {-kInfinity, demanded == EmptyRow::any ? kInfinity : -kInfinity};
}

/// Writes one row's ends into the tensors.
class RowWriter {
 public:
  RowWriter(const Problem& problem, LseBase base, TruthTensors& tensors)
      : problem_(problem), base_(base), tensors_(tensors) {}

  void write(const RowTruth& row) const {
    const std::int64_t n = (row.b * problem_.heads + row.h) * problem_.queries + row.i;
    const std::int64_t first = n * problem_.value_dim;
    const EmptyRow demanded = problem_.spec.empty_row;
    for (std::int64_t c = 0; c < problem_.value_dim; ++c) {
      Ends ends{kNaN, kNaN};
      if (row.not_applicable.empty()) {
        ends = row.empty() ? empty_out(demanded) : ends_of(row.out[static_cast<std::size_t>(c)]);
      }
      set(tensors_.out_lo, tensors_.out_hi, first + c, ends);
    }
    Ends ends{kNaN, kNaN};
    if (row.not_applicable.empty()) {
      ends = row.empty() ? empty_lse(demanded)
                         : ends_of(base_ == LseBase::two ? in_base_two(row.lse) : row.lse);
    }
    set(tensors_.lse_lo, tensors_.lse_hi, n, ends);
  }

 private:
  static void set(std::vector<double>& lo, std::vector<double>& hi, std::int64_t n, Ends ends) {
    lo[static_cast<std::size_t>(n)] = ends.lo;
    hi[static_cast<std::size_t>(n)] = ends.hi;
  }

  const Problem& problem_;
  LseBase base_;
  TruthTensors& tensors_;
};

}  // namespace

TruthTensors truth_tensors(const Problem& problem, LseBase base, unsigned bits,
                           const WalkOptions& options) {
  arithmetic_self_test();
  const RowSet rows(problem);
  const auto count = static_cast<std::size_t>(rows.size());
  const std::size_t elements = count * static_cast<std::size_t>(problem.value_dim);
  TruthTensors tensors{std::vector<double>(elements), std::vector<double>(elements),
                       std::vector<double>(count), std::vector<double>(count)};
  const RowWriter writer(problem, base, tensors);
  const std::vector<Chunk> chunks = chunks_of(problem, rows);
  std::vector<RowBlock> scratch(worker_count(options));
  walk(problem, chunks, options,
       [&](std::size_t worker, std::size_t, const Chunk& chunk, const HeadTruth& head) {
         certified_rows(problem, rows, chunk, bits, head, scratch[worker],
                        [&](std::int64_t, RowTruth& row) {
                          certify(problem, row);
                          writer.write(row);
                        });
       });
  return tensors;
}

std::vector<std::byte> decided(DType type, const std::vector<double>& lo,
                               const std::vector<double>& hi) {
  std::vector<std::byte> bytes(lo.size() * size_of(type));
  for (std::size_t n = 0; n < lo.size(); ++n) {
    const double low = round_nearest(type, lo[n]), high = round_nearest(type, hi[n]);
    encode(type, low == high ? low : kNaN, bytes.data() + n * size_of(type));
  }
  return bytes;
}

}  // namespace ringproof::oracle
