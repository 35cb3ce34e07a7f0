// ED, the error of the number D_i = dO_i . o_i that the backward pass subtracts from every dP,
// before its own rounding: (27), (27a), (34) of docs/contract.md.
#pragma once

#include "oracle/contract/cast_classes.hpp"
#include "oracle/contract/gradient_loops.hpp"

namespace ringproof::oracle {

/// Arrays that the functions below reuse from row to row.
struct DeltaScratch {
  VirtualColumn column;
  ExactProbabilities shifted;                   // p e^C
  std::vector<double> exponent, grown, beyond;  // [padded]
};

/// D = sum_c dO_c out_c with the out that the forward pass stored, under one merge form. (27)
double delta_error_from_out(const RowBudget&, const FormSums&, const ColumnRange& range,
                            const GradientKeys&, const RowGradients&, const double* out,
                            DeltaScratch&);  // out [Dv]
/// Root of the sum of squares of what the casts of P and the roundings of out may each do to that
/// D, casts of one class together: the listed roundings of (41).
double delta_cast_norm(const RowBudget&, const FormSums&, const ColumnRange& range,
                       const CastClasses&, const GradientKeys&, const RowGradients&,
                       const double* out, DeltaScratch&);  // out [Dv]
/// The same with an out that is an exact input. (34)
double delta_error_from_given(const RowBudget&, const RowGradients&, const double* out);  // [Dv]

/// D = sum_j P_j dP_j with recomputed probabilities. (27a)
double delta_error_from_recomputed(const RowBudget&, const ExactProbabilities&,
                                   const Probabilities&, const GradientKeys&, double delta,
                                   DeltaScratch&);
/// D = sum_j P_j dP_j with stored probabilities, under one merge form. (27a)
double delta_error_from_stored(const RowBudget&, const FormSums&, const ExactProbabilities&,
                               const Probabilities&, const GradientKeys&, double delta,
                               DeltaScratch&);

}  // namespace ringproof::oracle
