// A backward pass for a drawn case (draw.hpp).
#include <algorithm>
#include <cmath>

#include "tests/emulate/backward_kernel.hpp"
#include "tests/emulate/draw.hpp"

namespace ringproof::emulate {
namespace {

using oracle::DType;
using oracle::Problem;

/// Gradients of a bias are summed over the axes along which it is broadcast, in the kernel's type.
template <class Real>
std::vector<double> summed_bias(const Problem& p, const oracle::Tensor& stored,
                                const std::vector<double>& dbias) {  // [B, H, Nq, Nk]
  const auto& shape = stored.shape;
  std::vector<Real> sums(static_cast<std::size_t>(shape[0] * shape[1] * shape[2] * shape[3]), 0);
  std::size_t at = 0;
  for (std::int64_t b = 0; b < p.batches; ++b) {
    for (std::int64_t h = 0; h < p.heads; ++h) {
      for (std::int64_t i = 0; i < p.queries; ++i) {
        for (std::int64_t j = 0; j < p.keys; ++j) {
          const std::int64_t place =
              ((b % shape[0] * shape[1] + h % shape[1]) * shape[2] + i % shape[2]) * shape[3] +
              j % shape[3];
          sums[static_cast<std::size_t>(place)] += static_cast<Real>(dbias[at++]);
        }
      }
    }
  }
  return {sums.begin(), sums.end()};
}

std::vector<double> values_of(const oracle::Tensor& tensor) {
  std::vector<double> values;
  for (std::int64_t b = 0; b < tensor.shape[0]; ++b)
    for (std::int64_t h = 0; h < tensor.shape[1]; ++h)
      for (std::int64_t n = 0; n < tensor.shape[2]; ++n)
        for (std::int64_t d = 0; d < tensor.shape[3]; ++d) values.push_back(tensor.at(b, h, n, d));
  return values;
}

bool worth_drawing(const Draw& draw, const BackwardNumerics& backward) {
  const Problem& p = draw.owned.problem;
  constexpr std::int64_t kMostPairs = 20000;
  if (p.q_scale.tensor || p.batches * p.heads * p.queries * p.keys > kMostPairs) return false;
  // exp(s - L) with a base-two L needs a product that only the fused form declares.
  if (draw.numerics.lse_base_two && draw.numerics.argument != Argument::fused) return false;
  // A stored P is that of a two-pass kernel with one partial.
  const bool stored = draw.contract().backward.p_from == oracle::ProbabilityFrom::stored;
  return !stored || backward.stored;
}

}  // namespace

bool draw_gradients(Draw& draw) {
  std::mt19937_64 random(draw.seed * 40503 + 977);
  const oracle::Contract contract = draw.contract();
  const BackwardNumerics backward = draw_backward(contract, draw.numerics, random);
  if (!worth_drawing(draw, backward)) return false;
  const Problem& p = draw.owned.problem;
  OwnedTensors& tensors = draw.owned.tensors;
  std::normal_distribution<double> normal;
  const double sizes[] = {1, 1, 1, 1e-3, 1e-40, 1e3};
  const double size = draw.numerics.input == DType::f16 ? 1 : sizes[random() % 6];
  const auto rows = static_cast<std::size_t>(p.batches * p.heads * p.queries);
  std::vector<double> dout(rows * static_cast<std::size_t>(p.value_dim)), dlse;
  for (double& x : dout) x = size * normal(random);
  if (random() % 2 == 0) {
    for (std::size_t row = 0; row < rows; ++row) dlse.push_back(size * normal(random));
  }
  draw.dout = tensors.add(draw.numerics.output, {p.batches, p.heads, p.queries, p.value_dim}, dout);
  if (!dlse.empty()) {
    draw.dlse = tensors.add(DType::f32, {p.batches, p.heads, p.queries, 1}, dlse);
  }
  const Answers forward{.out = values_of(draw.out), .lse = values_of(draw.lse)};
  const UpstreamValues upstream{
      .dout = values_of(draw.dout),
      .dlse = dlse.empty() ? std::vector<double>{} : values_of(draw.dlse)};
  const GradientAnswers answers =
      run_backward(p, draw.numerics, backward, forward, upstream, random());
  const DType dtype = draw.numerics.input;
  draw.dq = tensors.add(dtype, p.q.shape, answers.dq);
  draw.dk = tensors.add(dtype, p.k.shape, answers.dk);
  draw.dv = tensors.add(dtype, p.v.shape, answers.dv);
  for (const Draw::Stored& one : draw.stored) {
    if (one.name != "bias") continue;
    const auto sums = draw.numerics.binary64 ? summed_bias<double>(p, one.tensor, answers.dbias)
                                             : summed_bias<float>(p, one.tensor, answers.dbias);
    // A binary64 kernel returns binary64 gradients, whatever type its small inputs were stored in.
    const DType of_bias = draw.numerics.binary64 ? DType::f64 : one.tensor.dtype;
    draw.dbias = tensors.add(of_bias, one.tensor.shape, sums);
  }
  const DType of_sinks = draw.numerics.binary64 ? DType::f64 : DType::f32;
  if (p.sinks) draw.dsinks = tensors.add(of_sinks, {1, p.heads, 1, 1}, answers.dsinks);
  return true;
}

}  // namespace ringproof::emulate
