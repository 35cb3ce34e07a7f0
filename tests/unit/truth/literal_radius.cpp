#include "tests/unit/truth/literal_radius.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace ringproof::test {

using namespace oracle;
namespace {

using Wide = long double;

constexpr double u = 0x1p-53, uu = 0x1p-106;
constexpr double up = 1 + 0x1p-30, few = 1 + 0x1p-45;  // Lemma 4
constexpr double linear = 1 + 0x1p-18;                 // Lemma 14, Theorem 20
constexpr int kTile = 64, kBlock = 256;

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

/// The largest e for which x is a multiple of 2^e; much for 0.
int lowest_bit(double x) {
  if (x == 0) return 400;
  int exponent = 0;
  const double fraction = std::frexp(std::abs(x), &exponent);
  return exponent - 53 + std::countr_zero(static_cast<std::uint64_t>(std::ldexp(fraction, 53)));
}

double grid(double magnitude) {  // Lemma 5
  return std::max(magnitude > 0 ? std::ldexp(4.0, std::ilogb(magnitude)) : 0, 0x1p-900);
}

/// Lemmas 6 and 7: the error of a sum of products.
double sum_of_products(double terms, double magnitude, double sum, bool tight, bool exact) {
  const double C = grid(magnitude);
  if (!tight) return (terms * (terms + 1) / 2 + terms) * up * uu * C;
  const double products = exact ? 0 : terms * up * uu;
  return (terms * terms * (terms + 10) * up * 0x1p-157 + products) * C + few * uu * std::abs(sum);
}

int digits(const Tensor& tensor) { return format_of(tensor.dtype).digits; }

struct Number {
  double value = 0, error = 0;
};

Number product(const Number& x, const Number& y) {  // Lemma 24
  const double most = std::abs(y.value) + y.error;
  const double both = std::abs(x.value) * (8 * uu * most + y.error) + x.error * most;
  return {x.value * y.value, most == 0 ? 0 : both * few + 0x1p-1060};
}

/// Lemma 11, Theorem 13 and Lemma 14: the relative error of e^x for x = a - b, a off by `error`.
double exponent_error(double a, double b, double error) {
  return error + 2 * uu * (std::abs(a - b) + std::abs(a));
}
double weight_error(double x, double error) {
  return (error + 0x1p-101 + 0x1p-104 * std::abs(x)) * linear;
}

struct Column {  // Lemma 16, tile by tile
  double magnitude = 0, error = 0;

  void add_tile(double mass, double mass_error, double largest, double rounding) {
    if (largest == 0 || mass_error == 0) return;
    magnitude += mass * largest * up + 0x1p-1000;
    error += (mass_error + rounding) * largest;
  }
  void raise(double from, double to) {  // Lemma 21: of the reference
    if (magnitude == 0) return;
    const double x = from - to, factor = x < -690 ? 0 : std::exp(x);
    const double relative = weight_error(x, exponent_error(from, to, 0)) + 10 * uu;
    const double loss = x < -690 ? 0x1p-995 : factor * relative;
    error = error * (factor * few + loss) + magnitude * loss + 0x1p-1000;
    magnitude = magnitude * factor * few + 0x1p-1000;
  }
  double total(double tiles, bool tight) const {
    const double tile = (tight ? 330 : 64 * 64 + 3 * 64 + 130) * up * uu;
    return (error + magnitude * (4 * up * tile + 6 * up * uu * tiles) + tiles * 0x1p-900 * tile) *
           up;
  }
};

class Literal {
 public:
  Literal(const Problem& problem, const RowTruth& row, bool tight)
      : p_(problem), row_(row), tight_(tight), kv_(problem.kv_head(row.h)) {}

  LiteralRow forward() {
    score();
    weigh();
    denominator();
    LiteralRow result;
    result.abs_dot = abs_dot_;
    for (std::size_t j = 0; j < error_.size(); ++j) {
      const double covered = u * std::abs(static_cast<double>(score_[j]));
      result.score_excess = std::max(result.score_excess, error_[j] - covered);
    }
    const double columns = static_cast<double>(tiles_);
    for (std::int64_t c = 0; c < p_.value_dim; ++c) {
      const Column& column = columns_[size(c)];
      const double o = std::abs(row_.out[size(c)].hi);
      // Theorem 20 and Lemma 17.
      const double error = column.total(columns, tight_) + o * below_.error;
      const double radius = error / below_.value * linear + o * 12 * few * uu + 0x1p-1060;
      result.out.push_back(column.magnitude == 0 ? 0 : radius);
    }
    // Lemma 19: the last low word is rounded.
    const double high = row_.max_score + std::log(below_.value);
    const double low = (row_.lse.hi - high) + row_.lse.lo;
    result.lse = (below_.error / below_.value * linear + 0x1p-97 + std::abs(low) * u) * up;
    return result;
  }

  void backward(const Upstream& upstream, const RowGradients& g, LiteralRow& result) {
    const bool isolated = upstream.given.isolated();
    // Lemma 24: D.
    double magnitude = 0, propagated = 0;
    for (std::int64_t c = 0; c < p_.value_dim; ++c) {
      const double o =
          isolated ? upstream.given.out.at(row_.b, row_.h, row_.i, c) : row_.out[size(c)].hi;
      magnitude += std::abs(g.dout[size(c)] * o);
      propagated += isolated ? 0 : std::abs(g.dout[size(c)]) * row_.out[size(c)].radius;
    }
    const auto terms = static_cast<double>(p_.value_dim);
    const bool none = magnitude == 0 && propagated == 0;
    result.D = none ? 0 : (propagated + (4 * terms + 6) * uu * magnitude) * up + terms * 0x1p-1060;
    const double rounding = g.D == 0 ? 0 : 4 * uu * (std::abs(g.dlse) + std::abs(g.D));
    const Number shift{g.dlse - g.D, (result.D + rounding) * few};
    given_ = isolated ? Number{g.lse_given, 0} : Number{};
    if (isolated && upstream.given.base == LseBase::two) {
      given_.error = 10 * uu * std::abs(g.lse_given) * few + 0x1p-1070;
    }
    std::vector<Column> dq(size(p_.head_dim));
    double mass = 0, error = 0;
    for (std::int64_t j = 0; j < p_.keys; ++j) {
      const Number dbias = product(probability(j, isolated), difference(j, upstream, g, shift));
      const Number ds = p_.spec.softcap > 0 ? product(factor_[size(j)], dbias) : dbias;
      const Number p = probability(j, isolated);
      result.dbias.push_back(dbias.error);
      result.p.push_back(p.value);
      result.p_error.push_back(p.error);
      result.ds.push_back(ds.value);
      result.ds_error.push_back(ds.error);
      mass += std::abs(ds.value);
      error += ds.error;
      if (j % kTile != kTile - 1 && j + 1 < p_.keys) continue;
      for (std::int64_t d = 0; d < p_.head_dim; ++d) {
        dq[size(d)].add_tile(mass * few, error * few, largest_in_tile(p_.k, j / kTile, d), 0);
      }
      mass = error = 0;
    }
    for (std::int64_t d = 0; d < p_.head_dim; ++d) {  // Lemma 27
      const double total = dq[size(d)].total(static_cast<double>(tiles_), tight_);
      const double of_scale = 10 * uu * std::abs(g.dq[size(d)].hi);
      const double radius = (total * std::abs(scale()) + of_scale) * few + 0x1p-1060;
      result.dq.push_back(dq[size(d)].magnitude == 0 ? 0 : radius);
    }
    if (!row_.has_sink) return;
    const Number factor = factor_at(row_.sink, isolated);
    const double of_p = factor.value * (factor.error + 24 * uu) + 0x1p-990;
    result.dsink = product({factor.value, of_p}, shift).error;
  }

 private:
  double scale() const {
    return p_.spec.scale.value_or(1 / std::sqrt(static_cast<double>(p_.head_dim)));
  }

  /// Lemmas 6 to 10 and 22.
  void score() {
    const auto dim = static_cast<double>(p_.head_dim);
    for (std::int64_t j = 0; j < p_.keys; ++j) {
      Wide dot = 0, magnitude = 0;
      int of_q = 400, of_k = 400;
      for (std::int64_t d = 0; d < p_.head_dim; ++d) {
        const double q = p_.q.at(row_.b, row_.h, row_.i, d), k = p_.k.at(row_.b, kv_, j, d);
        dot += Wide{q} * k;
        magnitude += std::abs(Wide{q} * k);
        of_q = std::min(of_q, lowest_bit(q));
        of_k = std::min(of_k, lowest_bit(k));
      }
      const double most = static_cast<double>(magnitude) * up;
      const bool exact = of_q + of_k + 53 >= -840 && most <= std::ldexp(1.0, of_q + of_k + 53);
      const double of_sum = sum_of_products(dim, most, static_cast<double>(dot), tight_,
                                            digits(p_.q) + digits(p_.k) <= 53);
      abs_dot_.push_back(most * std::abs(scale()) * few * few);
      Wide s = dot * Wide{scale()};
      if (!p_.spec.scale) s = dot / std::sqrt(static_cast<Wide>(p_.head_dim));
      double error = (exact ? 0 : of_sum) * std::abs(scale()) * few +
                     10 * uu * std::abs(static_cast<double>(s)) + 0x1p-1000;
      if (const double cap = p_.spec.softcap; cap > 0) {
        const Wide tanh = std::tanh(s / cap);
        s = cap * tanh;
        error += cap * 0x1p-98;
        const double of_tanh = error / cap * few;
        factor_.push_back({static_cast<double>(1 - tanh * tanh),
                           std::min(of_tanh * (2 * few + of_tanh) + 16 * uu, 2.0)});
      }
      if (magnitude == 0) error = 0;
      const auto add = [&](double addend) {
        error += 4 * uu * (std::abs(static_cast<double>(s)) + std::abs(addend));
        s += addend;
      };
      if (!row_.bias.empty()) add(row_.bias[size(j)]);
      if (!row_.alibi.empty()) add(row_.alibi[size(j)]);
      score_.push_back(s);
      error_.push_back(error);
    }
  }

  /// Lemmas 11, 14, 15b, 16 and 21.
  void weigh() {
    columns_.resize(size(p_.value_dim + 1));
    reference_ = row_.has_sink ? row_.sink : -HUGE_VAL;
    for (std::int64_t block = 0; block < p_.keys; block += kBlock) {
      const std::int64_t last = std::min(p_.keys, block + kBlock);
      const auto largest =
          static_cast<double>(*std::max_element(score_.begin() + block, score_.begin() + last));
      if (largest > reference_) {
        for (Column& column : columns_) column.raise(reference_, largest);
        reference_ = largest;
      }
      for (std::int64_t j = block; j < last; j += kTile) weigh_tile(j, std::min(last, j + kTile));
    }
  }

  void weigh_tile(std::int64_t first, std::int64_t last) {
    double mass = 0, error = 0, worst = 0;
    for (std::int64_t j = first; j < last; ++j) {
      const Wide x = score_[size(j)] - reference_;
      const double s = static_cast<double>(score_[size(j)]);
      const double of_weight =
          weight_error(static_cast<double>(x), exponent_error(s, reference_, error_[size(j)]));
      if (x < -690) {
        error += 0x1p-995;
        continue;
      }
      const auto weight = static_cast<double>(std::exp(x));
      mass += weight;
      error += weight * of_weight;
      worst = std::max(worst, of_weight);
    }
    ++tiles_;
    relative_.push_back(worst);
    reference_of_tile_.push_back(reference_);
    error = error * few + 0x1p-1060;
    const int bits = tight_ ? 0 : slice_bits(first, last);
    const double rounding =
        bits == 0 ? 0 : 64 * 67 * up * u * (std::ldexp(1.0, -2 * bits - 1) + 4 * u);
    for (std::int64_t c = 0; c <= p_.value_dim; ++c) {
      const double most = c == p_.value_dim ? 1 : largest_in_tile(p_.v, first / kTile, c);
      columns_[size(c)].add_tile(mass * few, error, most, rounding);
    }
  }

  double largest_in_tile(const Tensor& tensor, std::int64_t tile, std::int64_t column) const {
    double largest = 0;
    for (std::int64_t j = tile * kTile; j < std::min(p_.keys, (tile + 1) * kTile); ++j) {
      largest = std::max(largest, std::abs(tensor.at(row_.b, kv_, j, column)));
    }
    return largest;
  }

  /// Lemma 15b: b = 45 - R for the V of one tile, the ones included.
  int slice_bits(std::int64_t first, std::int64_t last) const {
    int lowest = 0;
    double most = 1;
    for (std::int64_t j = first; j < last; ++j) {
      for (std::int64_t c = 0; c < p_.value_dim; ++c) {
        lowest = std::min(lowest, lowest_bit(p_.v.at(row_.b, kv_, j, c)));
        most = std::max(most, std::abs(p_.v.at(row_.b, kv_, j, c)));
      }
    }
    const int bits = std::min(26, 45 - (std::ilogb(most) + 1 - lowest));
    return lowest < -400 || most > 0x1p400 || bits < 16 ? 0 : bits;
  }

  void denominator() {
    Wide sum = 0;
    for (const Wide s : score_) sum += std::exp(s - reference_);
    double error = columns_.back().total(static_cast<double>(tiles_), tight_);
    if (row_.has_sink) {
      const double x = row_.sink - reference_;
      if (x < -690) {
        error += 0x1p-995;
      } else {
        const Wide weight = std::exp(Wide{x});
        sum += weight;
        const double of_exponent = weight_error(x, 0);
        error = (error + static_cast<double>(weight) * of_exponent +
                 static_cast<double>(sum) * 8 * uu + 0x1p-1060) *
                up;
      }
    }
    below_ = {static_cast<double>(sum), error};
  }

  /// exp(x - m) / l, or exp(x - L) of a given L, and its relative error (Lemmas 21, 23).
  Number factor_at(double x, bool isolated) const {
    const double to = isolated ? given_.value : reference_;
    if (x - to < -690) return {};
    const double of_exponent = isolated ? exponent_error(-given_.value, -x, given_.error) : 0;
    const double relative = weight_error(x - to, of_exponent);
    if (isolated) return {std::exp(x - to), relative};
    return {std::exp(x - to) / below_.value, relative + below_.error / below_.value * linear};
  }

  Number probability(std::int64_t j, bool isolated) const {  // Lemma 23
    const double reference = reference_of_tile_[size(j / kTile)];
    const Number factor = factor_at(reference, isolated);
    const double weight = static_cast<double>(std::exp(score_[size(j)] - reference));
    const double value = weight * factor.value;
    const double relative = (relative_[size(j / kTile)] + factor.error + 24 * uu) * linear;
    return {value, value * relative + 0x1p-990};
  }

  /// Lemma 25: dP - D + dL.
  Number difference(std::int64_t j, const Upstream& upstream, const RowGradients& g,
                    const Number& shift) const {
    Wide dp = 0, magnitude = 0;
    for (std::int64_t c = 0; c < p_.value_dim; ++c) {
      const Wide term = Wide{g.dout[size(c)]} * p_.v.at(row_.b, kv_, j, c);
      dp += term;
      magnitude += std::abs(term);
    }
    const auto value = static_cast<double>(dp);
    const double most = static_cast<double>(magnitude) * up;
    const double error = most == 0
                             ? 0
                             : sum_of_products(static_cast<double>(p_.value_dim), most, value,
                                               tight_, digits(p_.v) + digits(upstream.dout) <= 53);
    return {value + shift.value,
            error + shift.error + 4 * uu * (std::abs(value) + std::abs(shift.value))};
  }

  const Problem& p_;
  const RowTruth& row_;
  bool tight_;
  std::int64_t kv_;
  std::vector<Wide> score_;
  std::vector<double> error_, abs_dot_;
  std::vector<Number> factor_;
  std::vector<Column> columns_;
  std::vector<double> relative_, reference_of_tile_;  // [tiles]
  double reference_ = 0;
  std::int64_t tiles_ = 0;
  Number below_, given_;
};

}  // namespace

LiteralRow literal_row(const Problem& problem, const RowTruth& row, bool tight,
                       const Upstream* upstream, const RowGradients* gradients) {
  Literal literal(problem, row, tight);
  LiteralRow result = literal.forward();
  if (gradients != nullptr) literal.backward(*upstream, *gradients, result);
  return result;
}

LiteralKeys literal_keys(const Problem& p, const std::vector<RowGradients>& gradients,
                         const std::vector<LiteralRow>& rows, bool tight, std::size_t at_once) {
  const double scale = p.spec.scale.value_or(1 / std::sqrt(static_cast<double>(p.head_dim)));
  // Lemma 26: of one key and column, its sum and bound.
  const auto of_column = [&](std::int64_t j, bool dk, std::int64_t column) {
    double sum = 0, error = 0;
    for (std::size_t first = 0; first < rows.size(); first += at_once) {
      const std::size_t last = std::min(rows.size(), first + at_once);
      const auto n =
          static_cast<double>(last - first + (last - first > 1 ? (last - first) % 2 : 0));
      double mass = 0, of_weights = 0, largest = 0, added = 0;
      for (std::size_t r = first; r < last; ++r) {
        const double weight = dk ? rows[r].ds[size(j)] : rows[r].p[size(j)];
        const double x = dk ? gradients[r].q[size(column)] : gradients[r].dout[size(column)];
        mass += std::abs(weight);
        of_weights += dk ? rows[r].ds_error[size(j)] : rows[r].p_error[size(j)];
        largest = std::max(largest, std::abs(x));
        added += weight * x;
      }
      if (largest == 0 || of_weights == 0) continue;
      const double C = grid(mass * few * largest * up + 0x1p-1000);
      const double rounding = (tight ? 330 : n * (n + 5) + 2) * up * uu * C;
      error += of_weights * largest + rounding + 2 * uu * (std::abs(sum) + std::abs(sum + added));
      sum += added;
    }
    error *= up;
    if (!dk || (sum == 0 && error == 0)) return error;
    return (error * std::abs(scale) + 10 * uu * std::abs(sum * scale)) * few + 0x1p-1070;
  };
  LiteralKeys keys;
  for (std::int64_t j = 0; j < p.keys; ++j) {
    for (std::int64_t d = 0; d < p.head_dim; ++d) keys.dk.push_back(of_column(j, true, d));
    for (std::int64_t c = 0; c < p.value_dim; ++c) keys.dv.push_back(of_column(j, false, c));
  }
  return keys;
}

}  // namespace ringproof::test
