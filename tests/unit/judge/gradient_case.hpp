// Cases with gradients for the judge's tests: upstream gradients, the correctly rounded truth as
// the answer, and the boxes of every element computed here from truth and bounds.
#pragma once

#include <vector>

#include "oracle/contract/backward_bound.hpp"
#include "oracle/judge/gradient_truth.hpp"
#include "oracle/judge/gradient_walk.hpp"
#include "tests/unit/judge/answered_case.hpp"

namespace ringproof::test {

/// Adds dout and dlse.
inline void add_upstream(CaseBuilder& builder, oracle::DType dtype, unsigned seed = 20) {
  const oracle::Case input = builder.assemble();
  const oracle::Problem& p = input.problem;
  builder.set("dout", normal(dtype, {p.batches, p.heads, p.queries, p.value_dim}, seed));
  builder.set("dlse", normal(oracle::DType::f32, {p.batches, p.heads, p.queries}, seed + 1));
}

/// Adds every gradient the problem has, correctly rounded.
inline void answer_gradients(CaseBuilder& builder, oracle::DType dtype) {
  const oracle::Case input = builder.assemble();
  const oracle::Problem& p = input.problem;
  const oracle::GradientTensors truth =
      oracle::gradient_tensors(p, {input.dout, input.dlse, {}}, 0, {});
  const auto add = [&](const char* name, const oracle::IntervalTensor& tensor,
                       std::vector<std::int64_t> shape) {
    builder.set(name, make_tensor(dtype, std::move(shape), [&](std::int64_t n) {
                  const auto at = static_cast<std::size_t>(n);
                  return oracle::round_nearest(dtype,
                                               tensor.lo[at] + (tensor.hi[at] - tensor.lo[at]) / 2);
                }));
  };
  add("dq", truth.dq, {p.batches, p.heads, p.queries, p.head_dim});
  add("dk", truth.dk, {p.batches, p.kv_heads, p.keys, p.head_dim});
  add("dv", truth.dv, {p.batches, p.kv_heads, p.keys, p.value_dim});
  if (p.bias) add("dbias", truth.dbias, builder.find("bias")->shape);
  if (p.sinks) add("dsinks", truth.dsinks, {p.heads});
}

/// Wide boxes of the gradients of a case of one batch and one KV head, in canonical order.
struct GradientBoxes {
  std::vector<oracle::Box> dq, dk, dv, dbias, dsinks;  // dbias: of one element a query and key
};
inline GradientBoxes gradient_boxes(const CaseBuilder& builder, const std::string& contract_name) {
  const oracle::Case input = builder.assemble();
  const oracle::Problem& p = input.problem;
  const oracle::Contract contract = oracle::read_contract(contract_name, p.spec);
  const oracle::OutputRule rule = oracle::output_rule(contract, contract.out.dtype);
  const oracle::Upstream upstream{input.dout, input.dlse, {}};
  const oracle::HeadTruth forward(p, 0, 0, oracle::Precision::fast);
  const oracle::HeadGradients backward(p, upstream, forward);
  const oracle::BackwardHead head(p, backward.keys(), backward.keys_stride(), forward.values(),
                                  forward.values_stride());
  const oracle::GradientShape shape(contract, p, 0, 0);
  oracle::GradientBoundSums bounds(shape);
  oracle::GradientSums sums(p);
  GradientBoxes boxes;
  for (std::int64_t h = 0; h < p.heads; ++h) {
    oracle::CertifiedSum sink;
    double sink_bound = 0;
    for (std::int64_t i = 0; i < p.queries; ++i) {
      const oracle::HeadTruth::RowId id{h, i};
      oracle::RowTruth row;
      oracle::RowGradients gradients;
      backward.rows({&id, 1}, &row, &gradients, &sums);
      oracle::RowGradientBound bound;
      oracle::bound_row_backward(contract, p, {}, head, row, gradients, bound, &bounds);
      for (std::size_t d = 0; d < gradients.dq.size(); ++d) {
        boxes.dq.push_back(oracle::wide_box(gradients.dq[d], bound.dq[d], rule));
      }
      for (std::size_t n = 0; n < gradients.dbias.size(); ++n) {
        boxes.dbias.push_back(oracle::wide_box(gradients.dbias[n], bound.dbias[n], rule));
      }
      sink.add(gradients.dsink);
      sink_bound += bound.dsink;
    }
    boxes.dsinks.push_back(oracle::wide_box(sink.value(), sink_bound, rule));
  }
  bounds.finish();
  for (std::int64_t j = 0; j < p.keys; ++j) {
    for (std::int64_t d = 0; d < p.head_dim; ++d) {
      boxes.dk.push_back(oracle::wide_box(sums.dk(j, d), bounds.dk(j, d), rule));
    }
    for (std::int64_t c = 0; c < p.value_dim; ++c) {
      boxes.dv.push_back(oracle::wide_box(sums.dv(j, c), bounds.dv(j, c), rule));
    }
  }
  return boxes;
}

}  // namespace ringproof::test
