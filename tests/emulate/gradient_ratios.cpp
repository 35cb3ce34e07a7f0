// Truth and bounds of a case's gradients (gradient_ratios.hpp).
#include "tests/emulate/gradient_ratios.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "oracle/contract/backward_bound.hpp"
#include "oracle/contract/output_format.hpp"

namespace ringproof::emulate {
namespace {

using oracle::Certified;
using oracle::Problem;
using oracle::Tensor;

class Comparison {
 public:
  explicit Comparison(const Draw& draw)
      : draw_(draw), problem_(draw.owned.problem), contract_(draw.contract()) {
    upstream_.dout = draw.dout;
    upstream_.dlse = draw.dlse;
    if (contract_.backward.mode == oracle::BackwardMode::isolated) {
      upstream_.given = {.out = draw.out, .lse = draw.lse, .base = contract_.lse.base};
    }
  }

  GradientRatios run() {
    for (std::int64_t b = 0; b < problem_.batches; ++b) {
      for (std::int64_t kv = 0; kv < problem_.kv_heads; ++kv) head(b, kv);
    }
    for (std::int64_t h = 0; h < problem_.heads && draw_.dsinks && !sinks_unknown_; ++h) {
      const auto& sum = sinks_[h];
      compare("dsinks", draw_.dsinks, 0, h, 0, 0, sum.value.value(), sum.bound);
    }
    if (draw_.dbias && !sinks_unknown_) biases();
    return std::move(result_);
  }

 private:
  struct Summed {
    oracle::CertifiedSum value;
    double bound = 0;
  };

  void compare(const char* what, const Tensor& answer, std::int64_t b, std::int64_t h,
               std::int64_t n, std::int64_t d, const Certified& exact, double bound) {
    oracle::Contract::Out out = contract_.out;
    out.dtype = answer.dtype;
    const oracle::OutputRounding rounding = oracle::output_rounding(out);
    // What overflowed lay beyond the largest number: the error is at least the one from there.
    const double largest = oracle::format_of(answer.dtype).largest;
    const double value = std::clamp(answer.at(b, h, n, d), -largest, largest);
    const double error = std::fabs((value - exact.hi) - exact.lo);
    const double known = exact.radius + 0x1p-50 * (std::fabs(exact.hi) + bound);
    const double allowed = known + rounding.u * (std::fabs(exact.hi) + bound) + rounding.eta;
    ++result_.elements;
    if (std::isinf(bound)) return;
    const double beyond = std::max(0.0, error - allowed);
    const double ratio = beyond == 0 ? 0 : bound > 0 ? beyond / bound : INFINITY;
    double& worst = result_.worst[what];
    worst = std::max(worst, ratio);
    if (!(ratio <= 1) && result_.complaint.empty()) {
      result_.complaint =
          fmt::format("{} b {} h {} n {} column {}: answer {} exact {} bound {} ratio {}", what, b,
                      h, n, d, value, exact.hi, bound, ratio);
    }
  }

  void head(std::int64_t b, std::int64_t kv) {
    const oracle::HeadTruth forward(problem_, b, kv, oracle::Precision::fast);
    const oracle::HeadGradients backward(problem_, upstream_, forward);
    const oracle::BackwardHead arrays(problem_, backward.keys(), backward.keys_stride(),
                                      forward.values(), forward.values_stride());
    const oracle::GradientShape shape(contract_, problem_, b, kv);
    oracle::GradientBoundSums bounds(shape);
    oracle::GradientSums sums(problem_);
    std::vector<char> unknown(static_cast<std::size_t>(problem_.keys), 0);
    for (std::int64_t h = kv * problem_.group(); h < (kv + 1) * problem_.group(); ++h) {
      for (std::int64_t i = 0; i < problem_.queries; ++i) {
        row(backward, arrays, b, h, i, sums, bounds, unknown);
      }
    }
    bounds.finish();
    for (std::int64_t j = 0; j < problem_.keys; ++j) {
      if (unknown[static_cast<std::size_t>(j)] != 0 || sums.not_applicable(j)) continue;
      for (std::int64_t d = 0; d < problem_.head_dim; ++d) {
        compare("dk", draw_.dk, b, kv, j, d, sums.dk(j, d), bounds.dk(j, d));
      }
      for (std::int64_t c = 0; c < problem_.value_dim; ++c) {
        compare("dv", draw_.dv, b, kv, j, c, sums.dv(j, c), bounds.dv(j, c));
      }
    }
  }

  void row(const oracle::HeadGradients& backward, const oracle::BackwardHead& arrays,
           std::int64_t b, std::int64_t h, std::int64_t i, oracle::GradientSums& sums,
           oracle::GradientBoundSums& bounds, std::vector<char>& unknown) {
    const oracle::HeadTruth::RowId id[] = {{h, i}};
    oracle::RowTruth truth;
    oracle::RowGradients gradients;
    backward.rows(id, &truth, &gradients, &sums);
    if (gradients.failed) {
      interval_row_gradients(problem_, upstream_, b, h, i, 128, truth, gradients, &sums);
    }
    oracle::RowGradientBound bound;
    bound_row_backward(contract_, problem_, upstream_.given, arrays, truth, gradients, bound,
                       &bounds);
    if (!bound.not_applicable.empty() || gradients.failed) {
      ++result_.not_applicable;
      sinks_unknown_ = true;
      for (std::size_t n = 0; n < truth.score.size(); ++n) {
        if (truth.score[n] == -INFINITY) continue;
        unknown[static_cast<std::size_t>(truth.keys.first) + n] = 1;
      }
      return;
    }
    for (std::int64_t d = 0; d < problem_.head_dim; ++d) {
      const auto at = static_cast<std::size_t>(d);
      compare("dq", draw_.dq, b, h, i, d, gradients.dq[at], bound.dq[at]);
    }
    if (truth.has_sink) {
      sinks_[h].value.add(gradients.dsink);
      sinks_[h].bound += bound.dsink;
    }
    if (!draw_.dbias) return;
    const auto& shape = draw_.dbias.shape;
    for (std::size_t n = 0; n < truth.score.size(); ++n) {
      if (truth.score[n] == -INFINITY) continue;
      const std::int64_t j = truth.keys.first + static_cast<std::int64_t>(n);
      Summed& sum = biases_[{b % shape[0], h % shape[1], i % shape[2], j % shape[3]}];
      sum.value.add(gradients.dbias[n]);
      sum.bound += bound.dbias[n];
    }
  }

  void biases() {
    for (const auto& [at, sum] : biases_) {
      compare("dbias", draw_.dbias, at[0], at[1], at[2], at[3], sum.value.value(), sum.bound);
    }
  }

  const Draw& draw_;
  const Problem& problem_;
  oracle::Contract contract_;
  oracle::Upstream upstream_;
  GradientRatios result_;
  std::map<std::int64_t, Summed> sinks_;
  std::map<std::array<std::int64_t, 4>, Summed> biases_;
  bool sinks_unknown_ = false;
};

}  // namespace

GradientRatios gradient_ratios(const Draw& draw) { return Comparison(draw).run(); }

}  // namespace ringproof::emulate
