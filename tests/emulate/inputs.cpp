// The input families (inputs.hpp), each chosen against terms of the bounds that the others leave
// small.
#include "tests/emulate/inputs.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace ringproof::emulate {
namespace {

constexpr std::array kNames = {"randn",
                               "flat",
                               "sharp",
                               "V + 4",
                               "V constant",
                               "V near the smallest numbers",
                               "large |m|",
                               "V = 1 + 0.01 randn",
                               "ties",
                               "one dominant key",
                               "cancelling dot products",
                               "ascending",
                               "descending",
                               "dyadic scores",
                               "equal scores, integer V",
                               "V alternating and huge",
                               "tiny scores",
                               "weightless quarter"};
static_assert(kNames.size() == static_cast<std::size_t>(InputFamily::count));

class Inputs {
 public:
  Inputs(InputFamily family, const InputShape& shape, std::mt19937_64& random)
      : family_(family),
        shape_(shape),
        random_(random),
        narrow_(shape.dtype == oracle::DType::f8_e4m3) {}

  InputValues draw() {
    const double spread = family_ == InputFamily::flat    ? 0.05
                          : family_ == InputFamily::sharp ? 6
                                                          : 1;
    fill(values_.q, shape_.query_rows * shape_.head_dim, spread);
    fill(values_.k, shape_.key_rows * shape_.head_dim, 1);
    fill(values_.v, shape_.key_rows * shape_.value_dim, 1);
    scores();
    for (std::int64_t row = 0; row < shape_.key_rows; ++row)
      for (std::int64_t c = 0; c < shape_.value_dim; ++c) value(row, c);
    return std::move(values_);
  }

 private:
  double normal() { return std::normal_distribution<double>()(random_); }
  double uniform() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  void fill(std::vector<double>& to, std::int64_t count, double spread) {
    to.resize(static_cast<std::size_t>(count));
    for (double& x : to) x = spread * normal();
  }
  double& q(std::int64_t row, std::int64_t t) {
    return values_.q[static_cast<std::size_t>(row * shape_.head_dim + t)];
  }
  double& k(std::int64_t row, std::int64_t t) {
    return values_.k[static_cast<std::size_t>(row * shape_.head_dim + t)];
  }

  /// Scores that the first component alone decides: q = (size, 0, ...), key = value(place in its
  /// head).
  template <class Value>
  void first_component(double size, Value&& value) {
    for (std::int64_t row = 0; row < shape_.query_rows; ++row)
      for (std::int64_t t = 0; t < shape_.head_dim; ++t) q(row, t) = t == 0 ? size : 0;
    for (std::int64_t row = 0; row < shape_.key_rows; ++row) k(row, 0) = value(row % shape_.keys);
  }

  void scores() {
    const double largest = narrow_ ? 200 : 1e4;
    switch (family_) {
      case InputFamily::large_maximum: {
        const double offset =
            (random_() % 2 == 0 ? 1 : -1) * std::min(50 + 150 * uniform(), largest);
        for (std::int64_t row = 0; row < shape_.query_rows; ++row) q(row, 0) = 40;
        for (std::int64_t row = 0; row < shape_.key_rows; ++row)
          k(row, 0) = offset + 0.1 * normal();
        return;
      }
      case InputFamily::ties:
        for (std::int64_t row = 0; row < shape_.key_rows; ++row)
          for (std::int64_t t = 0; t < shape_.head_dim; ++t)
            k(row, t) =
                k(row - row % shape_.keys + row % std::min<std::int64_t>(3, shape_.keys), t);
        return;
      case InputFamily::one_dominant:
        for (std::int64_t row = shape_.keys / 2; row < shape_.key_rows; row += shape_.keys)
          for (std::int64_t t = 0; t < shape_.head_dim; ++t) k(row, t) *= 6;
        return;
      case InputFamily::cancelling_dots:
        if (shape_.head_dim < 2) return;
        for (std::int64_t row = 0; row < shape_.query_rows; ++row)
          q(row, 0) = q(row, 1) = narrow_ ? 20 : 100;
        for (std::int64_t row = 0; row < shape_.key_rows; ++row) {
          k(row, 0) = 100 * normal() * (narrow_ ? 0.2 : 1);
          k(row, 1) = -k(row, 0);
        }
        return;
      case InputFamily::ascending:
        return first_component(
            8, [&](std::int64_t j) { return 0.02 * static_cast<double>(j) / shape_.scale; });
      case InputFamily::descending:
        return first_component(
            8, [&](std::int64_t j) { return -0.02 * static_cast<double>(j) / shape_.scale; });
      case InputFamily::dyadic:
        return first_component(1, [&](std::int64_t) { return std::floor(8 * uniform()) - 4; });
      case InputFamily::equal_scores:
        std::fill(values_.q.begin(), values_.q.end(), 0.0);
        return;
      case InputFamily::tiny_scores:
        for (double& x : values_.q) x *= std::exp2(-6 - 12 * uniform());
        return;
      case InputFamily::weightless_quarter:
        return first_component(8, [&](std::int64_t j) {
          return (j < shape_.keys / 4 ? -11 : 0.1 * normal()) / (8 * shape_.scale) * 1.5;
        });
      default:
        return;
    }
  }

  void value(std::int64_t row, std::int64_t column) {
    double& v = values_.v[static_cast<std::size_t>(row * shape_.value_dim + column)];
    const std::int64_t j = row % shape_.keys, half = (shape_.keys + 1) / 2;
    switch (family_) {
      case InputFamily::offset_values:
        v += 4;
        return;
      case InputFamily::constant_values:
        v = 1.75;
        return;
      case InputFamily::subnormal_values:
        v *= 64 * oracle::format_of(shape_.dtype).smallest();
        return;
      case InputFamily::near_one_values:
        v = 1 + 0.01 * v;
        return;
      case InputFamily::huge_alternating:
        v = (j % 2 == 0 ? 1 : -1) * (narrow_ ? 100 : 1e4) * (1 + 0.001 * v);
        return;
      case InputFamily::weightless_quarter:
        v *= j < shape_.keys / 4 ? (narrow_ ? 100 : 1e4) : 0.125;
        return;
      case InputFamily::equal_scores: {
        // Columns of one sign, and columns whose halves cancel: sums that are exact, some of them
        // zero.
        const double integer = std::floor(3 * uniform()) + 1;
        v = column % 2 == 0 || j < half
                ? integer
                : -values_.v[static_cast<std::size_t>((row - half) * shape_.value_dim + column)];
        return;
      }
      default:
        return;
    }
  }

  InputFamily family_;
  const InputShape& shape_;
  std::mt19937_64& random_;
  bool narrow_;
  InputValues values_;
};

}  // namespace

std::string_view name(InputFamily family) { return kNames[static_cast<std::size_t>(family)]; }

InputValues draw_inputs(InputFamily family, const InputShape& shape, std::mt19937_64& random) {
  return Inputs(family, shape, random).draw();
}

}  // namespace ringproof::emulate
