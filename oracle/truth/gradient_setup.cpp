// The part of a row's backward pass that needs no arithmetic (gradient_setup.hpp).
#include "oracle/truth/gradient_setup.hpp"

#include <algorithm>
#include <cmath>

namespace ringproof::oracle {
namespace {

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

bool all_finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double x) { return std::isfinite(x); });
}

/// Row (b, h, i) of a stored tensor; zeros if the tensor is absent.
void decode_upstream(const Tensor& tensor, const RowTruth& row, std::int64_t columns,
                     std::vector<double>& out) {
  out.assign(size(columns), 0);
  if (!tensor) return;
  decode_row(tensor.dtype, tensor.address(row.b, row.h, row.i, 0), tensor.stride[3], columns,
             out.data());
}

std::string not_finite(const RowGradients& gradients, const GradientInputs& inputs) {
  if (!all_finite(gradients.dout)) return "dout is not finite";
  if (!std::isfinite(gradients.dlse)) return "dlse is not finite";
  if (!all_finite(inputs.out_given)) return "the given out is not finite";
  if (!std::isfinite(inputs.lse_given)) return "the given lse is not finite";
  return "";
}

}  // namespace

bool begin_gradients(const Problem& problem, const Upstream& upstream, const RowTruth& row,
                     RowGradients& gradients, GradientInputs& inputs) {
  const bool isolated = upstream.given.isolated();
  const std::size_t keys = size(row.keys.size());
  gradients.not_applicable = row.not_applicable;
  gradients.failed = false;
  gradients.D = gradients.D_radius = gradients.dp_radius = gradients.ds_radius = 0;
  gradients.lse_given = gradients.p_sink = 0;
  gradients.dsink = {};
  for (auto* array : {&gradients.dp, &gradients.abs_dp, &gradients.ds}) array->assign(keys, 0);
  gradients.p.assign(isolated ? keys : 0, 0);
  gradients.factor.assign(problem.spec.softcap > 0 ? keys : 0, 0);
  gradients.dbias.assign(problem.bias ? keys : 0, {});
  gradients.dq.assign(size(problem.head_dim), {});
  gradients.q.resize(size(problem.head_dim));
  decode_scaled(problem.q, problem.q_scale, row.b, row.h, row.i, gradients.q.data());
  decode_upstream(upstream.dout, row, problem.value_dim, gradients.dout);
  gradients.dlse = upstream.dlse ? upstream.dlse.at(row.b, row.h, row.i, 0) : 0;
  inputs.out_given.clear();
  inputs.lse_given = 0;
  if (isolated) {
    decode_upstream(upstream.given.out, row, problem.value_dim, inputs.out_given);
    inputs.lse_given = upstream.given.lse.at(row.b, row.h, row.i, 0);
  }
  if (!row.not_applicable.empty() || row.empty()) return false;
  gradients.not_applicable = not_finite(gradients, inputs);
  if (!gradients.not_applicable.empty()) return false;
  if (row.visible > 0 || isolated) return true;
  // Only a sink: its probability is 1, out and D are 0, and nothing else depends on it.
  gradients.p_sink = 1;
  gradients.dsink = {gradients.dlse, 0, 0};
  return false;
}

}  // namespace ringproof::oracle
