// Weighted sums over the keys and the columns of one row: the parts of the theorems whose cost
// grows with the row. Compiled once for every vector target; exp and expm1 are Highway's (about 4
// ulp), far inside the factor 1 + 2^-30 that every bound is multiplied by.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ringproof::oracle {

/// Budgets of the keys under one merge form, as arrays [padded].
struct KeyBudgetView {
  std::int64_t padded;
  const double* log_p;
  const double* p;
  const double* cast;        // the cast in A_j
  const double* common;      // C_j is this and `more`
  const double* common_lse;  // CL_j is this and `more`
  double more;
  const double* numerator;    // A_j without the cast; null: numerator_of_all
  const double* denominator;  // B_j; null: denominator_of_all
  double numerator_of_all, denominator_of_all;
};

/// sum p (e^{CL+B} - 1), sum p (1 - e^{-CL-B}), sum p e^{-CL-B}, max (CL + B). (24), (25)
struct LseSums {
  double above = 0, below = 0, shrunk = 0, largest = 0;
};
LseSums lse_sums(const KeyBudgetView&);

/// Per-key weights of (21), and sums of weights over the keys.
struct KeyWeights {
  std::vector<double> common;                                     // p expm1(C)
  std::vector<double> numerator;                                  // p e^C expm1(A)
  std::vector<double> cast;                                       // p e^C expm1(cast)
  std::vector<double> beyond_cast;                                // p e^{C + cast} expm1(A - cast)
  double common_sum = 0, numerator_sum = 0, denominator_sum = 0;  // last: sum p e^C expm1(B)
  double shrunk_sum = 0;                                          // sum p e^{-C-B}
};
void key_weights(const KeyBudgetView&, KeyWeights&);
/// p e^C expm1(cast + extra) for (23).
void numerator_weights(const KeyBudgetView&, double extra, std::vector<double>& weights);

/// Where the values of the visible keys lie.
struct ValueRows {
  const double* values;  // row j of the key range: values + j * stride
  std::int64_t stride;
  const std::int64_t* index;  // [visible]
  std::int64_t visible;
  std::int64_t columns;  // Dv
};

/// Sums over the visible keys that do not depend on the weights, each [Dv].
struct ColumnRange {
  std::vector<double> sum, abs_sum, largest, smallest;
};
/// For every column: the first two sums of (21) over the visible keys, of p expm1(C) |v - o| and of
/// p e^C expm1(A) |v|.
struct ColumnErrors {
  std::vector<double> common, numerator;  // [Dv]
};
/// For every visible key: y_j = sum_c g_c v_jc and sum_c |g_c v_jc|. (26)
struct VirtualColumn {
  std::vector<double> y, abs_y;  // [visible]
};

/// One merge form's weights and what they give.
struct WeightedErrors {
  const KeyWeights* weights;
  ColumnErrors* errors;
};

/// Everything above in one pass over the values, which are read from memory once: [Dv] `out`, g.
void column_sums(const ValueRows&, const double* out, const double* g,
                 std::span<const WeightedErrors> forms, ColumnRange&, VirtualColumn&);

/// y_j alone: sum_c |g_c v_jc| is the same for all choices of signs g.
void signed_column(const ValueRows&, const double* g, std::vector<double>& y);

/// For keys [first, last) of the visible ones, adds p v, common |v| and numerator |v| to `sums`:
/// three rows of `columns` numbers each. (23)
struct SignedSums {
  double* signed_sum;
  double* common;
  double* numerator;
};
void add_signed_sums(const ValueRows&, const double* p, const double* common,
                     const double* numerator, std::int64_t first, std::int64_t last, SignedSums);

/// Adds p v over keys [first, last) to `sums` [Dv]. (43)
void add_weighted_values(const ValueRows&, const double* p, std::int64_t first, std::int64_t last,
                         double* sums);

}  // namespace ringproof::oracle
