// T1R of docs/contract.md, (23): the bound of a row whose keys lie on known ranks that are merged
// in a known order. Storage errors then act on signed partial sums, not on sum p|v|.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/contract/theorems.hpp"

namespace ringproof::oracle {

/// Sums over the keys of each merge step, [steps, Dv], and their weights.
struct RingSums {
  std::int64_t steps = 0;
  std::vector<std::int32_t> step_of_key;  // [visible]
  std::vector<std::int32_t> held;         // steps with a visible key
  std::vector<double> signed_sum;         // N_r = sum p v
  std::vector<double> common;             // c_r = sum p expm1(C)|v|
  std::vector<double> numerator;          // l_r = sum p e^C expm1(Al)|v|
  std::vector<double> weight;             // [steps] W_r
  std::vector<double> log_weight;         // [steps] ln W_r
  std::vector<std::int64_t> keys;         // [steps] visible keys
  std::vector<double> key_weights;        // scratch
};

/// Numbers the steps that hold a visible key 0, 1, ... in their order, `steps` of them: a rank
/// without one changes nothing, so that time and memory follow the keys and not the ranks.
void number_steps(std::int64_t visible, RingSums&);
/// Fills the sums of one merge form; step_of_key is numbered. The sink belongs to no step.
void ring_sums(const RowBudget&, const FormSums&, const ValueRows&, RingSums&);

/// (23) of one column; infinity for merge forms that have no such bound.
double ring_column_bound(const RowBudget&, const FormSums&, const ColumnRange&, const RingSums&,
                         double out, std::int64_t columns, std::int64_t column);

}  // namespace ringproof::oracle
