// A reverse-mode tape on which every rounding is a free choice of the adversary:
//   y = x + (u |x| + eta) xi,   xi in [-1, 1]          (the rounding model of docs/contract.md,
// section 1)
// The tape records a kernel once, differentiates one result by every xi, and sets each xi to the
// sign
// that moves the result the wrong way. It emulates no format: a value is never put on a grid.
#pragma once

#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

namespace ringproof::adversary {

class Tape;

/// One recorded value.
struct Traced {
  Tape* tape = nullptr;
  int node = -1;
  double value() const;
};

class Tape {
 public:
  /// Forgets the recorded values, keeps the choices.
  void restart() {
    nodes_.clear();
    used_ = 0;
  }
  void all_choices_zero() { choices_.assign(choices_.size(), 0.0); }
  void all_choices_random(std::mt19937_64& random) {
    for (double& choice : choices_) choice = (random() & 1) != 0 ? 1 : -1;
  }

  Traced constant(double value) { return record(value, {}, 0, {}, 0); }
  Traced record(double value, Traced left, double by_left, Traced right, double by_right) {
    nodes_.push_back({value, by_left, by_right, 0, left.node, right.node, -1});
    return {this, static_cast<int>(nodes_.size()) - 1};
  }

  /// |error| <= unit |x| + underflow. An exact zero is a number of every format and stays exact.
  Traced round(Traced x, double unit, double underflow = 0) {
    const double value = x.value();
    const double width = unit * std::fabs(value) + underflow;
    if (width == 0 || value == 0) return x;
    const double choice = next_choice();
    return record_choice(value + width * choice, x, 1 + (value > 0 ? unit : -unit) * choice, width);
  }

  /// Round to nearest in a format that holds the powers of two: by monotonicity the error is also
  /// at
  /// most the distance to the nearest power of two, the fact behind (12).
  Traced round_to_nearest(Traced x, double unit, double underflow = 0) {
    const double size = std::fabs(x.value());
    if (size == 0) return x;
    int exponent = 0;
    std::frexp(size, &exponent);
    const double to_power =
        std::fmin(std::ldexp(1.0, exponent) - size, size - std::ldexp(0.5, exponent));
    return shift(x, std::fmin(unit * size, to_power) + underflow);
  }

  /// |error| <= width, whatever the value.
  Traced shift(Traced x, double width) {
    if (width == 0) return x;
    const double choice = next_choice();
    return record_choice(x.value() + width * choice, x, 1, width);
  }

  /// Sets every choice that `target` depends on to the sign that moves it in `direction`.
  void follow(Traced target, double direction) {
    adjoint_.assign(nodes_.size(), 0.0);
    adjoint_[static_cast<std::size_t>(target.node)] = 1;
    for (int k = target.node; k >= 0; --k) {
      const double adjoint = adjoint_[static_cast<std::size_t>(k)];
      if (adjoint == 0) continue;
      const Node& node = nodes_[static_cast<std::size_t>(k)];
      if (node.left >= 0) adjoint_[static_cast<std::size_t>(node.left)] += adjoint * node.by_left;
      if (node.right >= 0)
        adjoint_[static_cast<std::size_t>(node.right)] += adjoint * node.by_right;
      if (node.choice < 0) continue;
      const double slope = direction * adjoint * node.by_choice;
      if (slope != 0) choices_[static_cast<std::size_t>(node.choice)] = slope > 0 ? 1 : -1;
    }
  }

  double value(int node) const { return nodes_[static_cast<std::size_t>(node)].value; }

 private:
  struct Node {
    double value, by_left, by_right, by_choice;
    int left, right, choice;
  };

  double next_choice() {
    if (used_ == choices_.size()) choices_.push_back(0.0);
    return choices_[used_++];
  }
  Traced record_choice(double value, Traced x, double by_x, double by_choice) {
    nodes_.push_back({value, by_x, 0, by_choice, x.node, -1, static_cast<int>(used_) - 1});
    return {this, static_cast<int>(nodes_.size()) - 1};
  }

  std::vector<Node> nodes_;
  std::vector<double> choices_, adjoint_;
  std::size_t used_ = 0;
};

inline double Traced::value() const { return tape->value(node); }

inline Traced operator+(Traced x, Traced y) {
  return x.tape->record(x.value() + y.value(), x, 1, y, 1);
}
inline Traced operator-(Traced x, Traced y) {
  return x.tape->record(x.value() - y.value(), x, 1, y, -1);
}
inline Traced operator*(Traced x, Traced y) {
  return x.tape->record(x.value() * y.value(), x, y.value(), y, x.value());
}
inline Traced operator*(double factor, Traced x) {
  return x.tape->record(factor * x.value(), x, factor, {}, 0);
}
inline Traced operator/(Traced x, Traced y) {
  const double quotient = x.value() / y.value();
  return x.tape->record(quotient, x, 1 / y.value(), y, -quotient / y.value());
}
inline Traced operator-(Traced x) { return -1.0 * x; }
inline Traced exp(Traced x) {
  const double value = std::exp(x.value());
  return x.tape->record(value, x, value, {}, 0);
}
inline Traced log(Traced x) { return x.tape->record(std::log(x.value()), x, 1 / x.value(), {}, 0); }
inline Traced log1p(Traced x) {
  return x.tape->record(std::log1p(x.value()), x, 1 / (1 + x.value()), {}, 0);
}
inline Traced tanh(Traced x) {
  const double value = std::tanh(x.value());
  return x.tape->record(value, x, 1 - value * value, {}, 0);
}
inline Traced max(Traced x, Traced y) { return x.value() >= y.value() ? x : y; }

}  // namespace ringproof::adversary
