// The families of families.hpp. Each comment names what the numbers are there to provoke.
#include "tests/unit/truth/families.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <sstream>

namespace ringproof::test {

using namespace oracle;

namespace {

constexpr std::string_view kNames[kFamilies] = {
    "randn",     "equal scores", "V = 1",        "ascending maxima",       "descending maxima",
    "sharp",     "dominant key", "unequal mass", "huge scores, tiny gaps", "repeated maxima",
    "tiny",      "huge",         "random bits",  "exponent spread",        "dot cancels",
    "V cancels", "V = 0",        "q = 0",        "span beyond 700",        "subnormal V"};

using Values = std::vector<double>;
using Random = std::mt19937_64;

Values normals(Random& random, std::int64_t count, double size) {
  Values values(static_cast<std::size_t>(count));
  for (double& value : values) value = normal(random) * size;
  return values;
}

struct Numbers {
  Values q, k, v;
};

/// Row n of `values` times factor(n).
template <class F>
void scale_rows(Values& values, std::int64_t columns, F factor) {
  for (std::size_t n = 0; n < values.size(); ++n) {
    values[n] *= factor(static_cast<std::int64_t>(n) / columns);
  }
}

void fill_keys(Family family, const Shape& shape, Random& random, Numbers& numbers) {
  const std::int64_t dim = shape.head_dim, keys = shape.keys;
  const auto position = [&](std::int64_t row) { return static_cast<double>(row % keys); };
  const auto share = [&](std::int64_t row) { return position(row) / static_cast<double>(keys); };
  switch (family) {
    case Family::ascending:  // every block brings a new maximum
    case Family::descending:
      for (double& value : numbers.q) value = std::abs(value);
      for (double& value : numbers.k) value = std::abs(value);
      return scale_rows(numbers.k, dim, [&](std::int64_t row) {
        return family == Family::ascending ? share(row) * 4 : (1 - share(row)) * 4;
      });
    case Family::sharp:
      return scale_rows(numbers.q, dim, [](std::int64_t) { return 8.0; });
    case Family::dominant_key:  // one key outweighs all others: the answer is its value
      return scale_rows(numbers.k, dim,
                        [&](std::int64_t row) { return row % keys == keys / 2 ? 40.0 : 0.01; });
    case Family::unequal_mass:
      return scale_rows(numbers.k, dim,
                        [&](std::int64_t row) { return share(row) < 0.1 ? 3.0 : 0.1; });
    case Family::huge_scores_tiny_gaps:  // the same large key, a last digit changed here and there
      for (std::size_t n = 0; n < numbers.k.size(); ++n) {
        numbers.k[n] = 300 * numbers.k[n % static_cast<std::size_t>(dim)] *
                       (1 + 0x1p-20 * static_cast<double>(random() % 3));
      }
      return;
    case Family::repeated_maxima:
      for (std::size_t n = 0; n < numbers.k.size(); ++n) {
        numbers.k[n] = numbers.k[n % (3 * static_cast<std::size_t>(dim)) % numbers.k.size()];
      }
      return;
    case Family::equal_scores:
      for (std::size_t n = 0; n < numbers.k.size(); ++n) {
        numbers.k[n] = numbers.k[n % static_cast<std::size_t>(dim)];
      }
      return;
    case Family::dot_cancels:  // products of size 1e14 whose sum is 0 or nearly so
      for (std::size_t n = 0; n < numbers.k.size(); ++n) {
        numbers.q[n % numbers.q.size()] = 1;
        numbers.k[n] = (n % 2 != 0 ? -1 : 1) * 16777215.0 * (random() % 16 == 0 ? 1 + 0x1p-7 : 1);
      }
      return;
    case Family::wide_span:  // weights from 1 down to far below the smallest subnormal
      return scale_rows(numbers.q, dim, [](std::int64_t) { return 300.0; });
    default:
      return;
  }
}

void fill_values(Family family, const Shape& shape, Random& random, Numbers& numbers) {
  const std::int64_t columns = shape.value_dim;
  for (std::size_t n = 0; n < numbers.v.size(); ++n) {
    const auto row = static_cast<std::int64_t>(n) / columns % shape.keys;
    const auto column = static_cast<std::int64_t>(n) % columns;
    double& v = numbers.v[n];
    switch (family) {
      case Family::equal_scores:  // integers that name their key
        v = static_cast<double>(row % 64 - 32);
        break;
      case Family::value_ones:
        v = 1;
        break;
      case Family::value_cancels:  // large values of opposite sign, a small remainder
        v = row == shape.keys - 1 ? 0x1p-12
                                  : (row % 2 != 0 ? -1.0 : 1.0) * static_cast<double>(1 + column);
        break;
      case Family::value_zero:
        v = column % 2 == 0 ? 0 : v;
        break;
      case Family::subnormal_values:
        v = static_cast<double>(random() % 5) * format_of(shape.kv_type).smallest();
        break;
      default:
        break;
    }
  }
}

Numbers draw(Family family, const Shape& shape, Random& random) {
  const std::int64_t queries = shape.batches * shape.heads * shape.queries * shape.head_dim;
  const std::int64_t keys = shape.batches * shape.kv_heads * shape.keys;
  double size = 1;
  if (family == Family::tiny) size = format_of(shape.kv_type).smallest() * 64;
  if (family == Family::huge) size = format_of(shape.kv_type).largest / 8;
  if (shape.kv_type == DType::f64 && family == Family::huge) size = 1e100;
  if (family == Family::query_zero) size = 1;
  Numbers numbers{normals(random, queries, size), normals(random, keys * shape.head_dim, size),
                  normals(random, keys * shape.value_dim, family == Family::tiny ? 1 : size)};
  if (family == Family::query_zero) std::fill(numbers.q.begin(), numbers.q.end(), 0.0);
  for (Values* values : {&numbers.q, &numbers.k}) {
    for (double& value : *values) {
      if (family == Family::random_bits) value = random_finite(random, shape.kv_type);
      if (family == Family::exponent_spread)
        value = std::ldexp(value, static_cast<int>(random() % 24) - 20);
    }
  }
  if (family == Family::random_bits) {
    for (double& value : numbers.v) value = random_finite(random, shape.kv_type);
  }
  fill_keys(family, shape, random, numbers);
  fill_values(family, shape, random, numbers);
  return numbers;
}

void add_positions(const Shape& shape, Random& random, OwnedProblem& owned) {
  Problem& problem = owned.problem;
  problem.key_length.assign(static_cast<std::size_t>(shape.batches), shape.keys);
  if (shape.key_lengths) {
    for (auto& length : problem.key_length)
      length = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(shape.keys + 1));
  }
  for (std::int64_t b = 0; b < shape.batches; ++b) {
    for (std::int64_t i = 0; i < shape.queries; ++i) {
      problem.position_q.push_back(i + shape.keys - shape.queries);
      problem.document_q.push_back(
          shape.documents ? static_cast<std::int32_t>(i * 3 / shape.queries) : 0);
    }
    std::vector<std::int64_t> order(static_cast<std::size_t>(shape.keys));
    std::iota(order.begin(), order.end(), 0);
    if (shape.permuted_positions) std::shuffle(order.begin(), order.end(), random);
    for (std::int64_t j = 0; j < shape.keys; ++j) {
      problem.position_k.push_back(order[static_cast<std::size_t>(j)]);
      problem.document_k.push_back(shape.documents ? static_cast<std::int32_t>(j * 3 / shape.keys)
                                                   : 0);
    }
  }
  index_keys(problem);
}

void add_extras(const Shape& shape, Random& random, OwnedProblem& owned) {
  Problem& problem = owned.problem;
  const std::int64_t pairs = shape.queries * shape.keys;
  if (shape.bias || shape.finite_mask_bias) {
    Values bias = normals(random, shape.heads * pairs, 2);
    for (double& value : bias) {
      if (random() % 8 == 0) value = -std::numeric_limits<double>::infinity();
      if (shape.finite_mask_bias && random() % 2 == 0) value = -0x1.fffffep127;
    }
    problem.bias = owned.tensor(DType::f32, {1, shape.heads, shape.queries, shape.keys}, bias);
    problem.bias.stride[0] = 0;
    problem.bias.shape[0] = shape.batches;
  }
  if (shape.mask) {
    auto& bytes = owned.storage.emplace_back(static_cast<std::size_t>(pairs));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() % 4 != 0);
    problem.mask = {DType::boolean,
                    {shape.batches, shape.heads, shape.queries, shape.keys},
                    {0, 0, shape.keys, 1},
                    bytes.data()};
  }
  if (shape.alibi) {
    Values slopes;
    for (std::int64_t h = 0; h < shape.heads; ++h)
      slopes.push_back(std::exp2(-0.7 * static_cast<double>(h + 1)));
    problem.alibi_slopes = owned.tensor(DType::f32, {1, shape.heads, 1, 1}, slopes);
    problem.alibi_slopes.stride[0] = 0;
  }
  if (shape.sinks) {
    Values sinks;
    for (std::int64_t h = 0; h < shape.heads; ++h)
      sinks.push_back(normal(random) * (h % 2 == 0 ? 2 : 60));
    problem.sinks = owned.tensor(DType::f32, {1, shape.heads, 1, 1}, sinks);
  }
  if (shape.factors) {
    const auto factors = [&](std::array<std::int64_t, 4> count, std::array<std::int64_t, 4> block) {
      Values values(static_cast<std::size_t>(count[0] * count[1] * count[2] * count[3]));
      for (double& value : values) value = std::exp2(normal(random));
      return Factors{owned.tensor(DType::f32, count, values), block};
    };
    problem.q_scale =
        factors({1, 1, 1, 1}, {shape.batches, shape.heads, shape.queries, shape.head_dim});
    problem.k_scale =
        factors({1, shape.kv_heads, shape.keys, 1}, {shape.batches, 1, 1, shape.head_dim});
    problem.v_scale =
        factors({1, shape.kv_heads, 1, 1}, {shape.batches, 1, shape.keys, shape.value_dim});
  }
}

/// Overwrites every key that no query sees (PAD-LEAK): nothing of the answer may change.
void poison(double value, OwnedProblem& owned) {
  Problem& problem = owned.problem;
  for (std::int64_t b = 0; b < problem.batches; ++b) {
    for (std::int64_t kv = 0; kv < problem.kv_heads; ++kv) {
      for (std::int64_t j = 0; j < problem.keys; ++j) {
        bool seen = false;
        for (std::int64_t h = 0; h < problem.heads; ++h) {
          if (problem.kv_head(h) != kv) continue;
          for (std::int64_t i = 0; i < problem.queries; ++i)
            seen = seen || visible(problem, b, h, i, j);
        }
        if (seen) continue;
        for (Tensor* tensor : {&problem.k, &problem.v}) {
          for (std::int64_t d = 0; d < tensor->shape[3]; ++d) {
            encode(tensor->dtype, value, const_cast<std::byte*>(tensor->address(b, kv, j, d)));
          }
        }
      }
    }
  }
}

}  // namespace

double normal(std::mt19937_64& random) {
  // Box and Muller: the same numbers with every standard library.
  const double u = static_cast<double>((random() >> 11) + 1) * 0x1p-53;
  const double v = static_cast<double>(random() >> 11) * 0x1p-53;
  return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v);
}
double random_finite(std::mt19937_64& random, DType type) {
  for (;;) {
    const std::uint64_t bits = random();
    const double value =
        type == DType::f64
            ? std::bit_cast<double>(bits)
            : static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    if (std::isfinite(value)) return value;
  }
}

std::string_view name(Family family) { return kNames[static_cast<int>(family)]; }

Tensor OwnedProblem::tensor(DType type, std::array<std::int64_t, 4> shape,
                            const std::vector<double>& values) {
  const std::size_t bytes = size_of(type);
  auto& data = storage.emplace_back(values.size() * bytes);
  for (std::size_t n = 0; n < values.size(); ++n) {
    double value = round_nearest(type, values[n]);
    // A rounded number may leave the finite range of a narrow type: the largest is meant then.
    if (!std::isfinite(value) && std::isfinite(values[n])) {
      value = std::copysign(format_of(type).largest, values[n]);
    }
    encode(type, value, data.data() + n * bytes);
  }
  Tensor tensor{type, shape, {}, data.data()};
  tensor.stride = {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1};
  return tensor;
}

OwnedProblem make_problem(Family family, const Shape& shape, std::uint64_t seed) {
  Random random(seed);
  OwnedProblem owned;
  Problem& problem = owned.problem;
  problem.batches = shape.batches;
  problem.heads = shape.heads;
  problem.kv_heads = shape.kv_heads;
  problem.queries = shape.queries;
  problem.keys = shape.keys;
  problem.head_dim = shape.head_dim;
  problem.value_dim = shape.value_dim;
  problem.spec.causal = shape.causal ? Causal::bottom_right : Causal::none;
  if (shape.window) problem.spec.window_left = shape.keys / 4;
  problem.spec.softcap = shape.softcap;
  if (shape.scale != 0) problem.spec.scale = shape.scale;
  const Numbers numbers = draw(family, shape, random);
  problem.q = owned.tensor(shape.q_type,
                           {shape.batches, shape.heads, shape.queries, shape.head_dim}, numbers.q);
  problem.k = owned.tensor(shape.kv_type,
                           {shape.batches, shape.kv_heads, shape.keys, shape.head_dim}, numbers.k);
  problem.v = owned.tensor(shape.kv_type,
                           {shape.batches, shape.kv_heads, shape.keys, shape.value_dim}, numbers.v);
  add_positions(shape, random, owned);
  add_extras(shape, random, owned);
  if (shape.poison) poison(shape.poison_value, owned);
  return owned;
}

Shape random_shape(std::mt19937_64& random) {
  const auto below = [&](std::uint64_t bound) {
    return static_cast<std::int64_t>(random() % bound);
  };
  const auto sometimes = [&](std::uint64_t one_in) { return random() % one_in == 0; };
  constexpr DType kTypes[] = {DType::f32,  DType::f64,     DType::f16,
                              DType::bf16, DType::f8_e4m3, DType::f8_e5m2};
  constexpr std::int64_t kDims[] = {1, 3, 8, 16, 20, 33, 64};
  Shape shape;
  shape.batches = 1 + below(2);
  shape.kv_heads = 1 + below(2);
  shape.heads = shape.kv_heads * (1 + below(3));
  shape.queries = 1 + below(9);
  shape.keys = sometimes(6) ? 1 + below(3) : 1 + below(150);
  shape.head_dim = kDims[below(7)];
  shape.value_dim = kDims[below(7)];
  shape.q_type = kTypes[below(6)];
  shape.kv_type = sometimes(2) ? shape.q_type : kTypes[below(6)];
  shape.causal = sometimes(2);
  shape.window = sometimes(5);
  shape.mask = sometimes(4);
  shape.bias = sometimes(4);
  shape.finite_mask_bias = sometimes(8);
  shape.alibi = sometimes(5);
  shape.sinks = sometimes(4);
  shape.key_lengths = sometimes(6);
  shape.documents = sometimes(6);
  shape.factors = sometimes(5);
  shape.permuted_positions = sometimes(6);
  shape.poison = sometimes(3);
  shape.softcap = sometimes(4) ? (sometimes(2) ? 30.0 : 1.5) : 0;
  shape.scale = sometimes(4) ? (sometimes(2) ? 0.3 : -0.01) : 0;
  return shape;
}

std::string describe(Family family, const Shape& s, std::uint64_t seed) {
  std::ostringstream text;
  text << name(family) << ", seed " << seed << ", B H Hkv " << s.batches << ' ' << s.heads << ' '
       << s.kv_heads << ", Nq Nk " << s.queries << ' ' << s.keys << ", D Dv " << s.head_dim << ' '
       << s.value_dim << ", " << name(s.q_type) << '/' << name(s.kv_type);
  const std::pair<bool, const char*> flags[] = {{s.causal, "causal"},
                                                {s.window, "window"},
                                                {s.mask, "mask"},
                                                {s.bias, "bias"},
                                                {s.finite_mask_bias, "finite mask bias"},
                                                {s.alibi, "alibi"},
                                                {s.sinks, "sinks"},
                                                {s.key_lengths, "key lengths"},
                                                {s.documents, "documents"},
                                                {s.factors, "factors"},
                                                {s.permuted_positions, "permuted"},
                                                {s.poison, "poison"}};
  for (const auto& [set, word] : flags) {
    if (set) text << ", " << word;
  }
  if (s.softcap != 0) text << ", softcap " << s.softcap;
  if (s.scale != 0) text << ", scale " << s.scale;
  return text.str();
}

}  // namespace ringproof::test
