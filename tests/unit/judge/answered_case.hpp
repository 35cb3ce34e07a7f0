// Cases with answers for the judge's tests: seeded inputs, the correctly rounded truth as the
// answer, and ways to spoil it in one place.
#pragma once

#include <cmath>
#include <optional>
#include <random>
#include <string>

#include "oracle/judge/check.hpp"
#include "oracle/judge/row_judge.hpp"
#include "oracle/judge/truth_tensors.hpp"
#include "tests/unit/case/case_builder.hpp"

namespace ringproof::test {

/// Normal numbers, rounded to the type.
inline OwnedTensor normal(oracle::DType dtype, std::vector<std::int64_t> shape, unsigned seed,
                          double deviation = 1) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> draw(0, deviation);
  return make_tensor(dtype, std::move(shape),
                     [&](std::int64_t) { return oracle::round_nearest(dtype, draw(generator)); });
}

struct Sizes {
  std::int64_t batches = 1, heads = 2, kv_heads = 1, queries = 7, keys = 9, head_dim = 4,
               value_dim = 3;
};

inline CaseBuilder random_case(oracle::DType dtype, const Sizes& s = {}, unsigned seed = 1) {
  CaseBuilder builder;
  builder.set("q", normal(dtype, {s.batches, s.heads, s.queries, s.head_dim}, seed));
  builder.set("k", normal(dtype, {s.batches, s.kv_heads, s.keys, s.head_dim}, seed + 1));
  builder.set("v", normal(dtype, {s.batches, s.kv_heads, s.keys, s.value_dim}, seed + 2));
  return builder;
}

/// Adds the correctly rounded out and lse.
inline void answer(CaseBuilder& builder, oracle::DType out_type,
                   oracle::DType lse_type = oracle::DType::f32) {
  const oracle::Case input = builder.assemble();
  const oracle::Problem& p = input.problem;
  const auto base = p.spec.lse_base.value_or(oracle::LseBase::e);
  const oracle::TruthTensors truth = oracle::truth_tensors(p, base, 256, {});
  const auto middle = [](oracle::DType type, double lo, double hi) {
    return oracle::round_nearest(type, lo == hi ? lo : lo + (hi - lo) / 2);
  };
  builder.set("out", make_tensor(out_type, {p.batches, p.heads, p.queries, p.value_dim},
                                 [&](std::int64_t n) {
                                   const auto i = static_cast<std::size_t>(n);
                                   return middle(out_type, truth.out.lo[i], truth.out.hi[i]);
                                 }));
  builder.set("lse", make_tensor(lse_type, {p.batches, p.heads, p.queries}, [&](std::int64_t n) {
                const auto i = static_cast<std::size_t>(n);
                return middle(lse_type, truth.lse.lo[i], truth.lse.hi[i]);
              }));
}

/// The n-th element of a tensor, read and written.
inline double value_at(CaseBuilder& builder, const std::string& name, std::int64_t n) {
  const OwnedTensor& tensor = *builder.find(name);
  return oracle::decode(tensor.dtype, tensor.bytes.data() + static_cast<std::size_t>(n) *
                                                                oracle::size_of(tensor.dtype));
}
inline void set_value(CaseBuilder& builder, const std::string& name, std::int64_t n, double value) {
  OwnedTensor& tensor = *builder.find(name);
  oracle::encode(tensor.dtype, oracle::round_nearest(tensor.dtype, value),
                 tensor.bytes.data() + static_cast<std::size_t>(n) * oracle::size_of(tensor.dtype));
}

inline oracle::Report judge(const CaseBuilder& builder, const std::string& contract,
                            const oracle::CheckOptions& options = {}) {
  const oracle::Case input = builder.assemble();
  return oracle::check(input, oracle::read_contract(contract, input.problem.spec), options);
}

/// Wide boxes of one row of out and of its LSE, computed here from truth and bound.
struct RowBoxes {
  std::vector<oracle::Box> out;
  oracle::Box lse;
};
inline RowBoxes boxes_of(const CaseBuilder& builder, const std::string& contract_name,
                         std::int64_t h, std::int64_t i, std::optional<oracle::DType> judged = {}) {
  const oracle::Case input = builder.assemble();
  const oracle::Contract contract = oracle::read_contract(contract_name, input.problem.spec);
  const oracle::HeadTruth head(input.problem, 0, input.problem.kv_head(h), oracle::Precision::fast);
  oracle::RowTruth row;
  oracle::interval_row(input.problem, 0, h, i, 300, row);
  oracle::RowBound bound;
  oracle::bound_row(contract, input.problem, row,
                    head.values() + row.keys.first * head.values_stride(), head.values_stride(),
                    false, bound);
  RowBoxes boxes;
  const oracle::OutputRule rule =
      oracle::output_rule(contract, judged.value_or(contract.out.dtype));
  for (std::size_t c = 0; c < row.out.size(); ++c) {
    boxes.out.push_back(oracle::wide_box(row.out[c], bound.out[c], rule));
  }
  const oracle::LseTruth lse = oracle::lse_in_base(contract, row.lse, bound.lse);
  boxes.lse =
      oracle::wide_box(lse.exact, lse.bound, oracle::lse_rule(contract, oracle::DType::f32, 100));
  return boxes;
}

}  // namespace ringproof::test
