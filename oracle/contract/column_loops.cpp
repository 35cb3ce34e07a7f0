// Sums over the values of one row for every vector target (weight_loops.hpp).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "oracle/contract/column_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "oracle/contract/row_keys.hpp"
#include "oracle/contract/weight_loops.hpp"

HWY_BEFORE_NAMESPACE();
namespace ringproof::oracle::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
constexpr hn::ScalableTag<double> kTag{};

// Keys per chunk: 32 rows of 64 columns fill half of a first-level cache, so that all loops over
// one chunk but the first find it there.
constexpr std::int64_t kChunk = 32;

HWY_INLINE std::int64_t Lanes() { return static_cast<std::int64_t>(hn::Lanes(kTag)); }

/// Calls group(tag, column) for every vector of columns, then for what is left one by one.
template <class Group>
HWY_INLINE void ForColumns(std::int64_t columns, const Group& group) {
  std::int64_t c = 0;
  for (; c + Lanes() <= columns; c += Lanes()) group(kTag, c);
  const hn::CappedTag<double, 1> single;
  for (; c < columns; ++c) group(single, c);
}

/// Some consecutive visible keys and where their values lie.
struct Chunk {
  std::int64_t first, last, columns;
  const double* rows[kChunk];

  Chunk(const ValueRows& of, std::int64_t begin, std::int64_t end) {
    first = begin;
    last = std::min(begin + kChunk, end);
    columns = of.columns;
    for (std::int64_t k = first; k < last; ++k) {
      rows[k - first] = of.values + of.index[k] * of.stride;
    }
  }
  std::int64_t size() const { return last - first; }
};

void RangeOf(const Chunk& chunk, ColumnRange& out) {
  ForColumns(chunk.columns, [&](auto tag, std::int64_t c) HWY_ATTR {
    auto sum = hn::LoadU(tag, out.sum.data() + c), abs_sum = hn::LoadU(tag, out.abs_sum.data() + c);
    auto largest = hn::LoadU(tag, out.largest.data() + c);
    auto smallest = hn::LoadU(tag, out.smallest.data() + c);
    for (std::int64_t k = 0; k < chunk.size(); ++k) {
      const auto v = hn::LoadU(tag, chunk.rows[k] + c);
      sum = hn::Add(sum, v);
      abs_sum = hn::Add(abs_sum, hn::Abs(v));
      largest = hn::Max(largest, v);
      smallest = hn::Min(smallest, v);
    }
    hn::StoreU(sum, tag, out.sum.data() + c);
    hn::StoreU(abs_sum, tag, out.abs_sum.data() + c);
    hn::StoreU(largest, tag, out.largest.data() + c);
    hn::StoreU(smallest, tag, out.smallest.data() + c);
  });
}

void ErrorsOf(const Chunk& chunk, const double* o, const WeightedErrors& form) {
  const double* HWY_RESTRICT of_common = form.weights->common.data() + chunk.first;
  const double* HWY_RESTRICT of_numerator = form.weights->numerator.data() + chunk.first;
  double* HWY_RESTRICT common_sums = form.errors->common.data();
  double* HWY_RESTRICT numerator_sums = form.errors->numerator.data();
  ForColumns(chunk.columns, [&](auto tag, std::int64_t c) HWY_ATTR {
    const auto out = hn::LoadU(tag, o + c);
    // Two of each, so that one addition need not wait for the one before.
    auto common = hn::LoadU(tag, common_sums + c), other_common = hn::Zero(tag);
    auto numerator = hn::LoadU(tag, numerator_sums + c), other_numerator = hn::Zero(tag);
    std::int64_t k = 0;
    for (; k + 2 <= chunk.size(); k += 2) {
      const auto v = hn::LoadU(tag, chunk.rows[k] + c), w = hn::LoadU(tag, chunk.rows[k + 1] + c);
      common = hn::MulAdd(hn::Set(tag, of_common[k]), hn::Abs(hn::Sub(v, out)), common);
      numerator = hn::MulAdd(hn::Set(tag, of_numerator[k]), hn::Abs(v), numerator);
      other_common =
          hn::MulAdd(hn::Set(tag, of_common[k + 1]), hn::Abs(hn::Sub(w, out)), other_common);
      other_numerator = hn::MulAdd(hn::Set(tag, of_numerator[k + 1]), hn::Abs(w), other_numerator);
    }
    if (k < chunk.size()) {
      const auto v = hn::LoadU(tag, chunk.rows[k] + c);
      common = hn::MulAdd(hn::Set(tag, of_common[k]), hn::Abs(hn::Sub(v, out)), common);
      numerator = hn::MulAdd(hn::Set(tag, of_numerator[k]), hn::Abs(v), numerator);
    }
    hn::StoreU(hn::Add(common, other_common), tag, common_sums + c);
    hn::StoreU(hn::Add(numerator, other_numerator), tag, numerator_sums + c);
  });
}

void VirtualOf(const Chunk& chunk, const double* HWY_RESTRICT g, VirtualColumn& out) {
  const std::int64_t columns = chunk.columns, lanes = Lanes();
  for (std::int64_t k = chunk.first; k < chunk.last; ++k) {
    const double* HWY_RESTRICT row = chunk.rows[k - chunk.first];
    auto sum = hn::Zero(kTag), other_sum = hn::Zero(kTag);
    auto abs_sum = hn::Zero(kTag), other_abs_sum = hn::Zero(kTag);
    std::int64_t c = 0;
    for (; c + 2 * lanes <= columns; c += 2 * lanes) {
      const auto term = hn::Mul(hn::LoadU(kTag, g + c), hn::LoadU(kTag, row + c));
      const auto other = hn::Mul(hn::LoadU(kTag, g + c + lanes), hn::LoadU(kTag, row + c + lanes));
      sum = hn::Add(sum, term);
      other_sum = hn::Add(other_sum, other);
      abs_sum = hn::Add(abs_sum, hn::Abs(term));
      other_abs_sum = hn::Add(other_abs_sum, hn::Abs(other));
    }
    double tail = 0, abs_tail = 0;
    for (; c < columns; ++c) {
      tail += g[c] * row[c];
      abs_tail += std::fabs(g[c] * row[c]);
    }
    out.y[static_cast<std::size_t>(k)] =
        hn::GetLane(hn::SumOfLanes(kTag, hn::Add(sum, other_sum))) + tail;
    out.abs_y[static_cast<std::size_t>(k)] =
        hn::GetLane(hn::SumOfLanes(kTag, hn::Add(abs_sum, other_abs_sum))) + abs_tail;
  }
}

void ColumnSums(const ValueRows& rows, const double* out, const double* g,
                std::span<const WeightedErrors> forms, ColumnRange& range,
                VirtualColumn& virtual_column) {
  for (std::int64_t first = 0; first < rows.visible; first += kChunk) {
    const Chunk chunk(rows, first, rows.visible);
    RangeOf(chunk, range);
    VirtualOf(chunk, g, virtual_column);
    for (const auto& form : forms) ErrorsOf(chunk, out, form);
  }
}

void SignedColumn(const ValueRows& rows, const double* HWY_RESTRICT g, double* y) {
  const std::int64_t columns = rows.columns, lanes = Lanes();
  for (std::int64_t k = 0; k < rows.visible; ++k) {
    const double* HWY_RESTRICT row = rows.values + rows.index[k] * rows.stride;
    auto sum = hn::Zero(kTag), other = hn::Zero(kTag);
    std::int64_t c = 0;
    for (; c + 2 * lanes <= columns; c += 2 * lanes) {
      sum = hn::MulAdd(hn::LoadU(kTag, g + c), hn::LoadU(kTag, row + c), sum);
      other = hn::MulAdd(hn::LoadU(kTag, g + c + lanes), hn::LoadU(kTag, row + c + lanes), other);
    }
    double tail = 0;
    for (; c < columns; ++c) tail += g[c] * row[c];
    y[k] = hn::GetLane(hn::SumOfLanes(kTag, hn::Add(sum, other))) + tail;
  }
}

void AddSignedSums(const ValueRows& rows, const double* p, const double* common,
                   const double* numerator, std::int64_t first, std::int64_t last,
                   SignedSums sums) {
  for (; first < last; first += kChunk) {
    const Chunk chunk(rows, first, last);
    ForColumns(rows.columns, [&](auto tag, std::int64_t c) HWY_ATTR {
      auto of_p = hn::LoadU(tag, sums.signed_sum + c);
      auto of_common = hn::LoadU(tag, sums.common + c);
      auto of_numerator = hn::LoadU(tag, sums.numerator + c);
      for (std::int64_t k = chunk.first; k < chunk.last; ++k) {
        const auto v = hn::LoadU(tag, chunk.rows[k - chunk.first] + c);
        of_p = hn::MulAdd(hn::Set(tag, p[k]), v, of_p);
        of_common = hn::MulAdd(hn::Set(tag, common[k]), hn::Abs(v), of_common);
        of_numerator = hn::MulAdd(hn::Set(tag, numerator[k]), hn::Abs(v), of_numerator);
      }
      hn::StoreU(of_p, tag, sums.signed_sum + c);
      hn::StoreU(of_common, tag, sums.common + c);
      hn::StoreU(of_numerator, tag, sums.numerator + c);
    });
  }
}

void AddWeightedValues(const ValueRows& rows, const double* p, std::int64_t first,
                       std::int64_t last, double* sums) {
  for (; first < last; first += kChunk) {
    const Chunk chunk(rows, first, last);
    ForColumns(rows.columns, [&](auto tag, std::int64_t c) HWY_ATTR {
      auto sum = hn::LoadU(tag, sums + c);
      for (std::int64_t k = chunk.first; k < chunk.last; ++k) {
        sum = hn::MulAdd(hn::Set(tag, p[k]), hn::LoadU(tag, chunk.rows[k - chunk.first] + c), sum);
      }
      hn::StoreU(sum, tag, sums + c);
    });
  }
}

}  // namespace ringproof::oracle::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ringproof::oracle {

HWY_EXPORT(ColumnSums);
HWY_EXPORT(SignedColumn);
HWY_EXPORT(AddSignedSums);
HWY_EXPORT(AddWeightedValues);

namespace {

void reset(std::vector<double>& array, std::int64_t size, double value) {
  fit(array, size);
  std::fill_n(array.begin(), size, value);
}

}  // namespace

void column_sums(const ValueRows& rows, const double* out, const double* g,
                 std::span<const WeightedErrors> forms, ColumnRange& range,
                 VirtualColumn& virtual_column) {
  reset(range.sum, rows.columns, 0);
  reset(range.abs_sum, rows.columns, 0);
  reset(range.largest, rows.columns, -HUGE_VAL);
  reset(range.smallest, rows.columns, HUGE_VAL);
  fit(virtual_column.y, rows.visible);
  fit(virtual_column.abs_y, rows.visible);
  for (const auto& form : forms) {
    reset(form.errors->common, rows.columns, 0);
    reset(form.errors->numerator, rows.columns, 0);
  }
  HWY_DYNAMIC_DISPATCH(ColumnSums)(rows, out, g, forms, range, virtual_column);
}

void signed_column(const ValueRows& rows, const double* g, std::vector<double>& y) {
  fit(y, rows.visible);
  HWY_DYNAMIC_DISPATCH(SignedColumn)(rows, g, y.data());
}

void add_signed_sums(const ValueRows& rows, const double* p, const double* common,
                     const double* numerator, std::int64_t first, std::int64_t last,
                     SignedSums sums) {
  HWY_DYNAMIC_DISPATCH(AddSignedSums)(rows, p, common, numerator, first, last, sums);
}

void add_weighted_values(const ValueRows& rows, const double* p, std::int64_t first,
                         std::int64_t last, double* sums) {
  HWY_DYNAMIC_DISPATCH(AddWeightedValues)(rows, p, first, last, sums);
}

}  // namespace ringproof::oracle
#endif  // HWY_ONCE
