#include "oracle/judge/summed_rows.hpp"

#include <cmath>
#include <limits>

namespace ringproof::oracle {

namespace {

void add_to(SummedElement& sum, const Certified& addend, double bound) {
  sum.value.add(addend);
  sum.bound += bound;
  sum.magnitude += std::abs(addend.hi) + bound;
}

}  // namespace

SummedRow& SummedRows::row(std::int64_t number, std::int64_t columns) {
  SummedRow& row = rows_[number];
  row.elements.resize(static_cast<std::size_t>(columns));
  return row;
}

void SummedRows::merge(const SummedRows& later) {
  for (const auto& [number, other] : later.rows_) {
    SummedRow& sum = row(number, static_cast<std::int64_t>(other.elements.size()));
    for (std::size_t n = 0; n < other.elements.size(); ++n) {
      sum.elements[n].value.merge(other.elements[n].value);
      sum.elements[n].bound += other.elements[n].bound;
      sum.elements[n].magnitude += other.elements[n].magnitude;
    }
    if (sum.not_applicable.empty()) sum.not_applicable = other.not_applicable;
    sum.failed |= other.failed;
  }
}

const SummedRow* SummedRows::find(std::int64_t number) const {
  const auto found = rows_.find(number);
  return found == rows_.end() ? nullptr : &found->second;
}

BiasShape bias_shape(const Problem& problem) {
  const BiasShape full{problem.batches, problem.heads, problem.queries, problem.keys};
  BiasShape shape{1, 1, 1, 1};
  for (std::size_t axis = 0; axis < 4; ++axis) {
    if (problem.bias.stride[axis] != 0) shape[axis] = full[axis];
  }
  return shape;
}

bool sums_over_rows(const Problem& problem, const BiasShape& shape) {
  return shape != BiasShape{problem.batches, problem.heads, problem.queries, problem.keys};
}

SummedRow& RowSums::bias_row(const RowTruth& row) {
  const auto index = [&](std::size_t axis, std::int64_t n) {
    return bias_shape[axis] == 1 ? 0 : n;
  };
  const std::int64_t number =
      (index(0, row.b) * bias_shape[1] + index(1, row.h)) * bias_shape[2] + index(2, row.i);
  return bias.row(number, bias_shape[3]);
}

void RowSums::add(const RowTruth& row, const RowGradients& gradients, const double* bias_bound,
                  double sink_bound) {
  if (sinks_wanted) {
    SummedRow& sum = sinks.row(row.h, 1);
    sum.failed |= gradients.failed;
    if (!gradients.failed) add_to(sum.elements[0], gradients.dsink, sink_bound);
  }
  if (!bias_wanted()) return;
  SummedRow& sum = bias_row(row);
  sum.failed |= gradients.failed;
  if (gradients.failed) return;
  for (std::size_t n = 0; n < row.score.size(); ++n) {
    if (row.score[n] == -std::numeric_limits<double>::infinity()) continue;
    const auto column = static_cast<std::size_t>(row.keys.first) + n;
    add_to(sum.elements[bias_shape[3] == 1 ? 0 : column], gradients.dbias[n],
           bias_bound != nullptr ? bias_bound[n] : 0);
  }
}

void RowSums::refuse(const RowTruth& row, const std::string& reason) {
  const auto mark = [&](SummedRow& sum) {
    if (sum.not_applicable.empty()) sum.not_applicable = reason;
  };
  if (sinks_wanted) mark(sinks.row(row.h, 1));
  if (bias_wanted()) mark(bias_row(row));
}

void RowSums::merge(const RowSums& later) {
  bias.merge(later.bias);
  sinks.merge(later.sinks);
}

}  // namespace ringproof::oracle
