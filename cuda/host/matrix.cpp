// Matrix loads and products (matrix.hpp).
#include "cuda/host/matrix.hpp"

#include <cmath>

#include "cuda/sixteen_bits.hpp"

namespace ringproof::cuda_host {
namespace {

constexpr int kRows = 16, kInner = 16, kColumns = 8;
constexpr std::size_t kRowBytes = 16;

struct MatrixRow {
  const void* row;
  const void* instruction;
};

struct MatrixProduct {
  std::uint32_t a[4], b[2];
  float c[4];
};

/// Rows of one 8 x 8 matrix that lie in the same banks are served one after the other.
std::uint64_t extra_turns(const std::uintptr_t (&address)[8]) {
  std::uint64_t extra = 0;
  unsigned seen = 0;
  for (const std::uintptr_t row : address) {
    const unsigned banks = 1U << (row / kRowBytes % 8);
    if ((seen & banks) != 0) ++extra;
    seen |= banks;
  }
  return extra;
}

template <bool transposed>
void load(Slot* slots) {
  const std::uint16_t* row[32];
  for (unsigned lane = 0; lane < 32; ++lane) {
    const auto given = slots[lane].as<MatrixRow>();
    expect_shared(given.row, kRowBytes, kRowBytes, "ldmatrix");
    note_lane_access(lane, given.row, kRowBytes, Access::read, given.instruction);
    row[lane] = static_cast<const std::uint16_t*>(given.row);
  }
  ++device_counts().matrix_loads;
  for (int matrix = 0; matrix < 4; ++matrix) {
    std::uintptr_t address[8];
    for (int r = 0; r < 8; ++r) address[r] = reinterpret_cast<std::uintptr_t>(row[matrix * 8 + r]);
    device_counts().bank_conflicts += extra_turns(address);
  }
  for (unsigned lane = 0; lane < 32; ++lane) {
    const unsigned r = lane / 4, c = 2 * (lane % 4);
    std::uint32_t taken[4];
    for (unsigned matrix = 0; matrix < 4; ++matrix) {
      const auto at = [&](unsigned i, unsigned j) -> std::uint32_t {
        return row[matrix * 8 + i][j];
      };
      taken[matrix] = transposed ? at(c, r) | at(c + 1, r) << 16 : at(r, c) | at(r, c + 1) << 16;
    }
    std::memcpy(slots[lane].bytes, taken, sizeof taken);
  }
}

/// Cut to a multiple of 2^grid, towards zero.
double cut(double number, int grid) {
  return std::ldexp(std::trunc(std::ldexp(number, -grid)), grid);
}

float truncated_sum(float c, const float* a, const float* b) {
  constexpr int kExtraBits = 2, kFraction = 23;
  double largest = std::fabs(static_cast<double>(c));
  for (int k = 0; k < kInner; ++k) {
    largest = std::fmax(largest, std::fabs(static_cast<double>(a[k]) * b[k]));
  }
  double plain = c;
  for (int k = 0; k < kInner; ++k) plain += static_cast<double>(a[k]) * b[k];
  if (largest == 0 || !std::isfinite(plain)) return static_cast<float>(plain);
  const int grid = std::ilogb(largest) - kFraction - kExtraBits;
  double sum = cut(c, grid);
  for (int k = 0; k < kInner; ++k) sum += cut(static_cast<double>(a[k]) * b[k], grid);
  return sum == 0 ? 0.0F : static_cast<float>(cut(sum, std::ilogb(sum) - kFraction));
}

template <float number(std::uint16_t)>
void multiply(Slot* slots) {
  float A[kRows][kInner], B[kColumns][kInner], C[kRows][kColumns];  // B by columns
  for (int lane = 0; lane < 32; ++lane) {
    const auto given = slots[lane].as<MatrixProduct>();
    const int group = lane / 4, pair = lane % 4 * 2;
    const auto half = [&](const std::uint32_t* words, int n) {
      return number(static_cast<std::uint16_t>(words[n / 2] >> (16 * (n % 2))));
    };
    for (int n = 0; n < 8; ++n) {
      const int row = group + (n / 2 % 2) * 8, column = pair + n % 2 + n / 4 * 8;
      A[row][column] = half(given.a, n);
    }
    for (int n = 0; n < 4; ++n) B[group][pair + n % 2 + n / 2 * 8] = half(given.b, n);
    for (int n = 0; n < 4; ++n) C[group + n / 2 * 8][pair + n % 2] = given.c[n];
  }
  ++device_counts().matrix_products;
  const MatrixSum model = device_options().matrix_sum;
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kColumns; ++j) C[i][j] = matrix_sum(model, C[i][j], A[i], B[j]);
  }
  for (int lane = 0; lane < 32; ++lane) {
    const int group = lane / 4, pair = lane % 4 * 2;
    float taken[4];
    for (int n = 0; n < 4; ++n) taken[n] = C[group + n / 2 * 8][pair + n % 2];
    std::memcpy(slots[lane].bytes, taken, sizeof taken);
  }
}

}  // namespace

float matrix_sum(MatrixSum model, float c, const float* a, const float* b) {
  if (model == MatrixSum::truncated) return truncated_sum(c, a, b);
  for (int k = 0; k < kInner; ++k) c += a[k] * b[k];
  return c;
}

void load_matrices(std::uint32_t (&taken)[4], const void* row, bool transposed,
                   const Location& place) {
  const MatrixRow given{row, __builtin_return_address(0)};
  const Slot* slots = meet_warp(Collective::matrix_load, ~0U, &given, sizeof given,
                                transposed ? load<true> : load<false>, place);
  std::memcpy(taken, slots[lane_number()].bytes, sizeof taken);
}

void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                  bool bf16, const Location& place) {
  MatrixProduct given;
  std::memcpy(given.a, a, sizeof given.a);
  std::memcpy(given.b, b, sizeof given.b);
  std::memcpy(given.c, c, sizeof given.c);
  const Slot* slots =
      meet_warp(Collective::matrix_product, ~0U, &given, sizeof given,
                bf16 ? multiply<cuda::float_of_bf16> : multiply<cuda::float_of_fp16>, place);
  std::memcpy(c, slots[lane_number()].bytes, sizeof c);
}

}  // namespace ringproof::cuda_host
