#include "oracle/generate/input_family.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <string>

#include "oracle/generate/random.hpp"

namespace ringproof::oracle {
namespace {

constexpr std::array<InputFamily, 19> kFamilies{{
    {"normal", Scores::normal, Values::normal},
    {"flat", Scores::flat, Values::offset},
    {"sharp", Scores::sharp, Values::normal},
    {"equal", Scores::equal, Values::indexed},
    {"ones", Scores::normal, Values::one},
    {"ascending", Scores::ascending, Values::normal},
    {"descending", Scores::descending, Values::normal},
    {"peak", Scores::peak, Values::normal},
    {"addressed", Scores::addressed, Values::normal},
    {"high", Scores::high, Values::normal},
    {"low", Scores::low, Values::normal},
    {"ties", Scores::ties, Values::indexed},
    {"shards", Scores::shards, Values::normal},
    {"cancelling", Scores::cancelling, Values::alternating},
    {"one-high", Scores::one_high, Values::positive},
    {"tiny", Scores::normal, Values::tiny},
    {"long-equal", Scores::equal, Values::balanced},
    {"long-dyadic", Scores::dyadic, Values::coded},
    {"long-coded", Scores::normal, Values::coded},
}};

/// A well-mixed function of two indices and the seed.
std::uint64_t hash(const FamilyShape& shape, std::int64_t a, std::int64_t b) {
  const std::uint64_t place =
      static_cast<std::uint64_t>(a) * 0x9e3779b97f4a7c15ULL + static_cast<std::uint64_t>(b);
  return Random(shape.seed ^ place, shape.stream).bits();
}

bool is_narrow(DType type) { return type == DType::f8_e4m3 || type == DType::f8_e5m2; }

std::string stream_of(const FamilyShape& shape, const char* tensor) {
  return std::string(shape.stream) + "/" + tensor;
}

/// The largest power of two <= x.
double power_below(double x) { return std::ldexp(1.0, std::ilogb(x)); }

/// q[0] in the families that set the scores by the first component alone.
double first_query_component(const InputFamily& family, const FamilyShape& shape) {
  switch (family.scores) {
    case Scores::high:
      return is_narrow(shape.dtype) ? 16 : 32;
    case Scores::low:
      return is_narrow(shape.dtype) ? 64 : 512;
    case Scores::dyadic:
      return 1;
    default:
      return 4;
  }
}

/// The key that query row i (of the B * H * Nq) addresses: one that a causal mask leaves visible.
std::int64_t addressed_key(const FamilyShape& shape, std::int64_t row) {
  const std::int64_t i = row % shape.queries;
  const std::int64_t seen = std::max<std::int64_t>(1, (i + 1) * shape.keys / shape.queries);
  return static_cast<std::int64_t>(hash(shape, row, -1) % static_cast<std::uint64_t>(seen));
}

/// +-1, what key row j of the B * Hkv * Nk is recognised by.
double key_sign(const FamilyShape& shape, std::int64_t row, std::int64_t t) {
  return (hash(shape, row, t / 64) >> (t % 64) & 1) != 0 ? 1 : -1;
}

/// Score that the first component alone gives key j, for the families that have one.
double score_shift(const InputFamily& family, const FamilyShape& shape, std::int64_t j,
                   Random& random) {
  const double place = static_cast<double>(j) / static_cast<double>(shape.keys);
  constexpr std::array<double, 8> kShards{3, -6, 0, 2, -3, 1, -8, 4};
  switch (family.scores) {
    case Scores::ascending:
      return 12 * place;
    case Scores::descending:
      return 12 - 12 * place;
    case Scores::peak:
      return 12 - 24 * std::abs(place - 0.5);
    case Scores::high:
    case Scores::low:
      return score_level(family, shape.dtype);
    case Scores::shards:
      return kShards[static_cast<std::size_t>(8 * place)];
    case Scores::dyadic:
      return -static_cast<double>(8 * j / std::max<std::int64_t>(1, shape.keys) % 4);
    case Scores::one_high:
      return j == shape.keys / 3 ? 0 : -7;
    default:
      return random.normal();
  }
}

bool has_shift(Scores scores) {
  switch (scores) {
    case Scores::ascending:
    case Scores::descending:
    case Scores::peak:
    case Scores::high:
    case Scores::low:
    case Scores::shards:
    case Scores::dyadic:
    case Scores::one_high:
      return true;
    default:
      return false;
  }
}

/// How far the components behind the first spread in the families with a shift.
double spread_behind(Scores scores) {
  if (scores == Scores::dyadic || scores == Scores::one_high) return 0;
  return scores == Scores::low ? 0.25 : 0.5;
}

}  // namespace

std::span<const InputFamily> input_families() { return kFamilies; }

const InputFamily& input_family(std::string_view name) {
  for (const InputFamily& one : kFamilies) {
    if (one.name == name) return one;
  }
  throw std::logic_error("no input family is called " + std::string(name));
}

double score_level(const InputFamily& family, DType type) {
  if (family.scores == Scores::high) return is_narrow(type) ? 200 : 1000;
  if (family.scores == Scores::low) return is_narrow(type) ? -2000 : -100000;
  return 0;
}

std::vector<double> draw_queries(const InputFamily& family, const FamilyShape& shape) {
  Random random(shape.seed, stream_of(shape, "q"));
  const std::int64_t rows = shape.batches * shape.heads * shape.queries,
                     group = shape.heads / shape.kv_heads;
  std::vector<double> q(static_cast<std::size_t>(rows * shape.head_dim));
  const double spread = family.scores == Scores::flat    ? 0.0625
                        : family.scores == Scores::sharp ? 8
                                                         : 1;
  for (std::int64_t row = 0; row < rows; ++row) {
    double* to = q.data() + row * shape.head_dim;
    for (std::int64_t t = 0; t < shape.head_dim; ++t) to[t] = spread * random.normal();
    if (family.scores == Scores::equal) std::fill(to, to + shape.head_dim, 0.0);
    if (has_shift(family.scores)) {
      for (std::int64_t t = 0; t < shape.head_dim; ++t) to[t] *= spread_behind(family.scores);
      to[0] = first_query_component(family, shape);
    }
    if (family.scores == Scores::addressed) {
      const std::int64_t head = row / shape.queries, kv_head = head / group;
      const std::int64_t key = kv_head * shape.keys + addressed_key(shape, row);
      // The addressed key is ahead of a random one by size * scale * D units of score.
      const double wanted = 160 / (shape.scale * static_cast<double>(shape.head_dim));
      const double size = std::min(2 * power_below(wanted), 256.0);
      for (std::int64_t t = 0; t < shape.head_dim; ++t) to[t] = size * key_sign(shape, key, t);
    }
    if (family.scores == Scores::cancelling && shape.head_dim >= 2) to[0] = to[1] = 16;
  }
  return q;
}

std::vector<double> draw_keys(const InputFamily& family, const FamilyShape& shape) {
  Random random(shape.seed, stream_of(shape, "k"));
  const std::int64_t rows = shape.batches * shape.kv_heads * shape.keys;
  std::vector<double> k(static_cast<std::size_t>(rows * shape.head_dim));
  const double unit = 1 / (first_query_component(family, shape) * shape.scale);
  constexpr std::int64_t kPeriod = 3;
  for (std::int64_t row = 0; row < rows; ++row) {
    double* to = k.data() + row * shape.head_dim;
    const std::int64_t j = row % shape.keys;
    for (std::int64_t t = 0; t < shape.head_dim; ++t) to[t] = random.normal();
    if (family.scores == Scores::dyadic) {
      to[0] = score_shift(family, shape, j, random);
    } else if (has_shift(family.scores)) {
      to[0] = unit * score_shift(family, shape, j, random);
    }
    if (family.scores == Scores::addressed) {
      for (std::int64_t t = 0; t < shape.head_dim; ++t) to[t] = key_sign(shape, row, t);
    }
    if (family.scores == Scores::ties && j >= kPeriod) {
      std::copy_n(to - kPeriod * shape.head_dim, shape.head_dim, to);
    }
    if (family.scores == Scores::cancelling && shape.head_dim >= 2) {
      to[0] = 16 * to[0];
      to[1] = -to[0];
    }
  }
  return k;
}

namespace {

double value(const InputFamily& family, const FamilyShape& shape, std::int64_t row,
             std::int64_t column, Random& random) {
  const std::int64_t j = row % shape.keys;
  const bool positive_column = column % 4 == 0;
  switch (family.values) {
    case Values::one:
      return 1;
    case Values::positive:
      return 0.5 + random.uniform();
    case Values::coded:
      if (positive_column) return 0.5 + random.uniform();
      return (hash(shape, row / shape.keys * shape.keys + j / 64, column) & 1) != 0 ? 1 : -1;
    case Values::indexed:
      return static_cast<double>(1 + hash(shape, row, column) % 8) *
             (column % 2 == 0                        ? 1
              : (hash(shape, row, ~column) & 1) != 0 ? 1
                                                     : -1);
    case Values::offset:
      return 4 + random.normal();
    case Values::alternating:
      return (j % 2 == 0 ? 1 : -1) * (is_narrow(shape.dtype) ? 64 : 1000) *
             (1 + random.normal() / 64);
    case Values::tiny:
      return 4096 * format_of(shape.dtype).smallest() * random.normal();
    case Values::normal:
    case Values::balanced:
      break;
  }
  return random.normal();
}

}  // namespace

std::vector<double> draw_values(const InputFamily& family, const FamilyShape& shape) {
  Random random(shape.seed, stream_of(shape, "v"));
  const std::int64_t rows = shape.batches * shape.kv_heads * shape.keys;
  const std::int64_t half = shape.keys / 2;
  std::vector<double> v(static_cast<std::size_t>(rows * shape.value_dim));
  for (std::int64_t row = 0; row < rows; ++row) {
    double* to = v.data() + row * shape.value_dim;
    const std::int64_t j = row % shape.keys;
    for (std::int64_t c = 0; c < shape.value_dim; ++c) {
      if (family.values != Values::balanced) {
        to[c] = value(family, shape, row, c, random);
      } else if (c % 4 == 0 || j < half) {
        to[c] = static_cast<double>(1 + random.below(3));
      } else {
        // An odd number of keys leaves the last one over: it has the value 0.
        to[c] = j < 2 * half ? -to[c - half * shape.value_dim] : 0;
      }
    }
  }
  return v;
}

}  // namespace ringproof::oracle
