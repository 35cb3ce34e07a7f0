// Rows of the input families (families.hpp).
#include "tests/adversary/families.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace ringproof::adversary {
namespace {

constexpr std::array kNames = {"randn",
                               "flat",
                               "sharp x4",
                               "sharp x12",
                               "|m| = 1000",
                               "ascending",
                               "descending",
                               "V constant",
                               "V + 8",
                               "V +-1e4 alternating",
                               "one dominant key",
                               "1 to 4 keys",
                               "random count",
                               "sink",
                               "ties",
                               "cancelling dot products",
                               "finite mask",
                               "sink, |m| 500-2000",
                               "V 1e-41",
                               "scattered mask",
                               "weightless quarter, V 1e5",
                               "dyadic scores",
                               "tiny scores",
                               "weightless rank, V 1e30",
                               "lonely weightless key, V 1e30",
                               "slow ascent",
                               "sparse keys",
                               "vanishing weights"};

class RowMaker {
 public:
  RowMaker(Family family, const RowOptions& options, std::mt19937_64& random)
      : family_(family), options_(options), random_(random) {}

  Row make() {
    sizes();
    row_.scale = family_ == Family::dyadic ? std::log(2.0)
                                           : 1 / std::sqrt(static_cast<double>(row_.head_dim));
    row_.softcap = options_.softcap;
    const double spread = family_ == Family::flat      ? 0.05
                          : family_ == Family::sharp4  ? 4
                          : family_ == Family::sharp12 ? 12
                                                       : 1;
    for (std::int64_t t = 0; t < row_.head_dim; ++t) row_.query.push_back(spread * normal());
    for (std::int64_t k = 0; k < row_.visible() * row_.head_dim; ++k) row_.keys.push_back(normal());
    for (std::int64_t k = 0; k < row_.visible() * row_.value_dim; ++k)
      row_.values.push_back(normal());
    scores();
    values();
    additions();
    if (options_.sinks && (family_ == Family::sink || family_ == Family::sink_large_maximum))
      row_.sink = (family_ == Family::sink ? 0 : largest_score()) + 3 * uniform() - 1;
    if (options_.known_ring) {
      row_.ring = oracle::Ring{
          .layout = static_cast<oracle::RingLayout>(random_() % 3),
          .order = random_() % 2 == 0 ? oracle::RingOrder::down : oracle::RingOrder::up};
      row_.query_position =
          static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(row_.total_keys));
    }
    return std::move(row_);
  }

 private:
  double normal() { return std::normal_distribution<double>()(random_); }
  double uniform() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  double& key(std::int64_t j, std::int64_t t) {
    return row_.keys[static_cast<std::size_t>(j * row_.head_dim + t)];
  }

  void sizes() {
    row_.head_dim = options_.head_dim, row_.value_dim = options_.value_dim,
    row_.ranks = options_.partials;
    std::int64_t count = options_.longest;
    if (family_ == Family::few_keys)
      count = 1 + static_cast<std::int64_t>(random_() % 4) +
              (options_.partials > 1 ? options_.partials : 0);
    if (family_ == Family::random_count || family_ == Family::scattered)
      count = options_.longest / 6 + 1 +
              static_cast<std::int64_t>(uniform() * static_cast<double>(options_.longest) * 0.6);
    row_.position.resize(static_cast<std::size_t>(count));
    std::iota(row_.position.begin(), row_.position.end(), 0);
    if (family_ == Family::lonely_weightless)
      for (std::size_t j = 1; j < row_.position.size(); ++j) row_.position[j] += count;
    if (family_ == Family::sparse) {
      row_.position.resize(std::min<std::size_t>(row_.position.size(), 6));
      for (std::int64_t& position : row_.position)
        position = position * 80 + static_cast<std::int64_t>(random_() % 80);
    }
    if (family_ == Family::scattered) {
      std::int64_t place = static_cast<std::int64_t>(random_() % 20);
      for (std::int64_t& position : row_.position) {
        position = place;
        place += uniform() < 0.3 ? 1 : 1 + static_cast<std::int64_t>(uniform() * 40);
      }
    }
    row_.total_keys =
        row_.position.back() + 1 +
        (family_ == Family::scattered ? static_cast<std::int64_t>(random_() % 20) : 0);
  }

  void scores() {
    const std::int64_t n = row_.visible();
    std::vector<double>& q = row_.query;
    const double root = std::sqrt(static_cast<double>(row_.head_dim));
    switch (family_) {
      case Family::large_maximum:
      case Family::sink_large_maximum: {
        const double size = family_ == Family::large_maximum ? 100 : 50 + 150 * uniform();
        const double offset =
            random_() % 2 == 0 && family_ == Family::sink_large_maximum ? -size : size;
        q[0] = 40;
        for (std::int64_t j = 0; j < n; ++j) key(j, 0) = offset + 0.1 * normal();
        break;
      }
      case Family::ascending:
      case Family::descending:
        q[0] = 8;
        for (std::int64_t j = 0; j < n; ++j)
          key(j, 0) =
              (family_ == Family::ascending ? 1 : -1) * 0.1 * static_cast<double>(j) * root / 4;
        break;
      case Family::one_dominant:
        for (std::int64_t t = 0; t < row_.head_dim; ++t)
          key(n / 2, t) = 6 * q[static_cast<std::size_t>(t)];
        break;
      case Family::ties:
        for (std::int64_t j = 3; j < n; ++j)
          for (std::int64_t t = 0; t < row_.head_dim; ++t) key(j, t) = key(j % 3, t);
        break;
      case Family::cancelling_dots:
        q[0] = q[1] = 100;
        for (std::int64_t j = 0; j < n; ++j) key(j, 0) = 100 * normal(), key(j, 1) = -key(j, 0);
        break;
      case Family::finite_mask:
        if (options_.bias) break;
        q[0] = 30;
        for (std::int64_t j = 0; j < n; j += 2) key(j, 0) = -3000;
        break;
      case Family::weightless_quarter:
        q[0] = 20;
        for (std::int64_t j = 0; j < n; ++j) key(j, 0) = j < n / 4 ? -12 : 0.1 * normal();
        break;
      case Family::dyadic:
        std::fill(q.begin(), q.end(), 0.0);
        q[0] = 1;
        for (std::int64_t j = 0; j < n; ++j) key(j, 0) = std::floor(8 * uniform()) - 4;
        break;
      case Family::tiny_scores:
        for (double& x : q) x *= std::exp2(-10 - 12 * uniform());
        break;
      case Family::weightless_rank:
      case Family::lonely_weightless:
        only_first_component(std::log(options_.weight_floor));
        break;
      case Family::slow_ascent:
        only_first_component(0);
        row_.query[0] = random_() % 2 == 0 ? 0.001 : -0.001;
        for (std::int64_t j = 0; j < n; ++j) key(j, 0) = static_cast<double>(j);
        break;
      case Family::vanishing_weights:
        only_first_component(0);
        for (std::int64_t j = 0; j < n; ++j)
          key(j, 0) = 1.2 * std::log(options_.weight_floor) * uniform() * root;
        key(0, 0) = 0;
        break;
      default:
        break;
    }
  }

  /// Scores 0 everywhere but in the first quarter of the positions, where they are `score`.
  void only_first_component(double score) {
    std::fill(row_.query.begin(), row_.query.end(), 0.0);
    row_.query[0] = 1;
    for (std::int64_t j = 0; j < row_.visible(); ++j)
      key(j, 0) = in_first_quarter(j) ? (score - uniform()) / row_.scale : 0;
  }
  bool in_first_quarter(std::int64_t j) const {
    return row_.position[static_cast<std::size_t>(j)] < row_.total_keys / 4;
  }

  void values() {
    const std::int64_t n = row_.visible();
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t c = 0; c < row_.value_dim; ++c) {
        double& v = row_.values[static_cast<std::size_t>(j * row_.value_dim + c)];
        switch (family_) {
          case Family::constant_values:
            v = 1.75;
            break;
          case Family::offset_values:
            v += 8;
            break;
          case Family::huge_alternating:
            v = (j % 2 == 0 ? 1e4 : -1e4) * (1 + 0.001 * v);
            break;
          case Family::subnormal_values:
            v *= 1e-41;
            break;
          case Family::weightless_quarter:
            v *= j < n / 4 ? 1e5 : 1;
            break;
          case Family::weightless_rank:
          case Family::lonely_weightless:
            v = in_first_quarter(j) ? 1e30 * (1 + 0.1 * v) : 1e-20 * v;
            break;
          case Family::slow_ascent:
            v = (row_.query[0] > 0 ? j : n - 1 - j) < 4 ? 1 + 0.1 * v : 1e-3 * v;
            break;
          case Family::vanishing_weights:
            v *= j == 0 ? 1e-30 : 1e10;
            break;
          default:
            break;
        }
      }
    }
  }

  void additions() {
    const std::int64_t n = row_.visible();
    for (std::int64_t j = 0; j < n; ++j) {
      const double distance =
          static_cast<double>(row_.total_keys - 1 - row_.position[static_cast<std::size_t>(j)]);
      double bias = 2 * normal();
      if (family_ == Family::finite_mask && j % 2 == 0) bias = -1e6;
      if (family_ == Family::tiny_scores) bias *= 1e-5;
      if (options_.bias) row_.bias.push_back(bias);
      if (options_.alibi) row_.alibi.push_back(-0.25 * distance);
    }
  }

  double largest_score() const {
    double largest = -INFINITY;
    for (std::int64_t j = 0; j < row_.visible(); ++j) {
      double dot = 0;
      for (std::int64_t t = 0; t < row_.head_dim; ++t)
        dot += row_.query[static_cast<std::size_t>(t)] *
               row_.keys[static_cast<std::size_t>(j * row_.head_dim + t)];
      double score = dot * row_.scale;
      if (row_.softcap > 0) score = row_.softcap * std::tanh(score / row_.softcap);
      largest = std::max(largest, score);
    }
    return largest;
  }

  Family family_;
  const RowOptions& options_;
  std::mt19937_64& random_;
  Row row_;
};

}  // namespace

std::vector<Family> all_families() {
  std::vector<Family> families;
  for (std::size_t k = 0; k < kNames.size(); ++k) families.push_back(static_cast<Family>(k));
  return families;
}

std::string_view name(Family family) { return kNames[static_cast<std::size_t>(family)]; }

Row make_row(Family family, const RowOptions& options, std::mt19937_64& random) {
  return RowMaker(family, options, random).make();
}

}  // namespace ringproof::adversary
