// Draws the long rows (long_rows.hpp).
#include "tests/unit/contract/long_rows.hpp"

#include "oracle/case/dtype.hpp"

namespace ringproof::test {

namespace {

constexpr std::int64_t kColumns = 64;
constexpr std::int64_t kPositive = 16;  // columns of positive values; the rest is coded by sign

std::uint32_t scramble(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  x ^= x >> 16;
  return x;
}

std::uint32_t hash(std::int64_t row, std::int64_t column) {
  return scramble(static_cast<std::uint32_t>(row * kColumns + column));
}

double to_bf16(float x) { return oracle::round_nearest(oracle::DType::bf16, x); }

/// Integers; the later half of the row repeats the earlier one with the sign changed.
double cancelling_integer(std::int64_t j, std::int64_t column, std::int64_t keys) {
  if (column < kPositive) return 1.0 + hash(j, column) % 3;
  const std::uint32_t bits = hash(j % (keys / 2), column);
  const double value = (1.0 + bits % 3) * ((bits >> 8) & 1 ? 1 : -1);
  return j >= keys / 2 ? -value : value;
}

/// +-1, the sign a hash of the block of 64 keys.
double block_sign(std::int64_t j, std::int64_t column) {
  return (hash(j / 64, column) >> 9) & 1 ? 1.0 : -1.0;
}

}  // namespace

std::string name(Family family) {
  switch (family) {
    case Family::randn:
      return "randn";
    case Family::pos:
      return "pos";
    case Family::LC:
      return "LC";
    case Family::LE:
      return "LE";
    case Family::LD:
      return "LD";
  }
  return {};
}

void LongRows::next_length() {
  length_ *= 4;
  const std::int64_t N = length_, D = kColumns;
  const auto normal = [&] { return to_bf16(normal_(generator_)); };
  std::vector<double> keys(static_cast<std::size_t>(N * D));
  for (double& k : keys) k = normal();
  const auto draw = [&](Family family, double sharpness) {
    RowFixture fixture(N, family == Family::LD ? 1 : D, kColumns);
    std::vector<double> q(static_cast<std::size_t>(D));
    for (std::int64_t j = 0; j < N; ++j) {
      for (std::int64_t c = 0; c < kColumns; ++c) {
        double& v = fixture.values[static_cast<std::size_t>(j * kColumns + c)];
        if (family == Family::randn) {
          v = normal();
        } else if (family == Family::LE) {
          v = cancelling_integer(j, c, N);
        } else if (family == Family::pos || c < kPositive) {
          v = to_bf16(uniform_(generator_));
        } else {
          v = block_sign(j, c);
        }
      }
    }
    for (double& x : q) x = to_bf16(static_cast<float>(normal_(generator_) * sharpness));
    const bool equal = family == Family::LE, dyadic = family == Family::LD;
    const double scale = dyadic ? std::log(2.0) : 0.125;
    fixture.problem.spec.scale = scale;
    for (std::int64_t j = 0; j < N; ++j) {
      double dot = 0, abs_dot = 0;
      for (std::int64_t t = 0; t < D && !dyadic && !equal; ++t) {
        const double product =
            q[static_cast<std::size_t>(t)] * keys[static_cast<std::size_t>(j * D + t)];
        dot += product;
        abs_dot += std::fabs(product);
      }
      if (dyadic) {
        dot = -static_cast<double>((j / (N / 8)) % 4);
        abs_dot = -dot;
      }
      fixture.row.dot[static_cast<std::size_t>(j)] = dot * scale;
      fixture.row.abs_dot[static_cast<std::size_t>(j)] = abs_dot * scale;
    }
    fixture.finish();
    return fixture;
  };
  rows_.clear();
  rows_.push_back(draw(Family::randn, 1));
  rows_.push_back(draw(Family::pos, 1));
  draw(Family::randn,
       4);  // a family that is not in the table, but was drawn between its neighbours
  rows_.push_back(draw(Family::LC, 1));
  rows_.push_back(draw(Family::LE, 1));
  rows_.push_back(draw(Family::LD, 1));
}

}  // namespace ringproof::test
