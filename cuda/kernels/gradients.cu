// The backward pass on the matrix units, as step 5 has the forward pass. One kernel in three uses:
// a block of threads owns 64 rows of the wanted gradient and goes through all columns; what is a
// row and what a column differs.
//   dq: rows are queries, columns keys;     dq += dS K            (27)
//   dk: rows are keys,    columns queries;  dk += dS^T Q          (28)
//   dv: rows are keys,    columns queries;  dv += P^T dO          (24)
// P = exp(S - L) is formed again from the forward pass's LSE (21), dS = P (dO V^T - delta) (23), so
// the three need nothing of each other, and no sum depends on an order of blocks.
#include "cuda/kernels/gradients.cuh"

#include "cuda/kernels/padded_tile.cuh"

namespace ringproof::cuda {
namespace {

enum class Wanted { dq, dk, dv };

/// Two numbers of a query: the log of its denominator and delta (22).
struct QueryNumbers {
  float lse = 0, delta = 0;
};

template <int W, class Element>
struct Memory {
  PaddedTile<W, Element> row_a, row_b;        // q and dout, or k and v, of the rows
  PaddedTile<W, Element> column_a, column_b;  // of the columns the other two
  TileFacts facts;                            // of the columns
  QueryNumbers numbers[kMatrixKeys];          // of the columns, if they are queries
};

/// The lane's two rows.
struct GradientRows {
  Row row[2];
  QueryNumbers numbers[2];  // if the rows are queries
  bool here[2];
};

/// P or dS of one visible pair from q.k and dO.v. The scale of (27), (28) multiplies the sums.
template <Wanted wanted>
__device__ __forceinline__ float pair_term(const Rules& rules, int batch, int head,
                                           const Row& query, const Row& key,
                                           const QueryNumbers& numbers, float qk, float dov) {
  const float s = score<false>(rules, batch, head, query, key, qk);
  const float p = weight(s, numbers.lse * kLog2E);
  if constexpr (wanted == Wanted::dv) return p;
  float slope = 1;
  if (rules.softcap != 0) {
    const float y = tanhf(rules.scale * qk / rules.softcap);
    slope = 1 - y * y;
  }
  return p * (dov - numbers.delta) * slope;
}

/// Scores and dO V^T become the terms that are summed; an invisible pair adds nothing.
template <Wanted wanted, class Element>
__device__ __forceinline__ void pair_terms(float (&s)[kMatrixKeys / 8][4],
                                           const float (&dov)[kMatrixKeys / 8][4],
                                           const GradientRows& rows, const TileFacts& facts,
                                           const QueryNumbers* column_numbers,
                                           const BlockArguments<Element>& block, int head,
                                           const Place& place) {
  constexpr bool rows_are_queries = wanted == Wanted::dq;
  const std::uint32_t seen =
      visible_bits<32>(block.rules, place.batch, head, [&](int n) -> RowPair {  // n = 4 column + e
        const Row row = n / 2 % 2 == 0 ? rows.row[0] : rows.row[1];
        const Row column = facts.row[n / 4 * 8 + place.pair + n % 2];
        return rows_are_queries ? RowPair{row, column} : RowPair{column, row};
      });
  RINGPROOF_UNROLL
  for (int n = 0; n < kMatrixKeys / 8; ++n) {
    RINGPROOF_UNROLL
    for (int e = 0; e < 4; ++e) {
      const int j = n * 8 + place.pair + e % 2, r = e / 2;
      if ((seen >> (4 * n + e) & 1U) == 0) {
        s[n][e] = 0;
      } else if ((facts.spoilt[2 * j] | facts.spoilt[2 * j + 1]) != 0) {
        s[n][e] = NAN;
      } else {
        const Row& query = rows_are_queries ? rows.row[r] : facts.row[j];
        const Row& key = rows_are_queries ? facts.row[j] : rows.row[r];
        const QueryNumbers numbers = rows_are_queries ? rows.numbers[r] : column_numbers[j];
        s[n][e] = pair_term<wanted>(block.rules, place.batch, head, query, key, numbers, s[n][e],
                                    dov[n][e]);
      }
    }
  }
}

/// Rows and numbers of the queries [first, first + 64) of a head.
template <class Element>
__device__ __forceinline__ void load_queries(TileFacts& facts, QueryNumbers* numbers,
                                             const GradientArguments<Element>& given, int batch,
                                             int head, int first) {
  const int thread = static_cast<int>(threadIdx.x);
  if (thread >= kMatrixKeys) return;
  const int i = first + thread;
  const bool inside = i < given.block.queries;
  const std::size_t row = given.block.query_row(batch, head, inside ? i : 0);
  facts.row[thread] = inside ? given.block.query_rows.at(batch, i) : Row{};
  numbers[thread] = inside ? QueryNumbers{given.lse[row], given.delta[row]} : QueryNumbers{};
}

/// All columns of one query head, added to the lane's sums.
template <Wanted wanted, int W, class Element>
__device__ __forceinline__ void add_columns(float (&sum)[W / 8][4], Memory<W, Element>& memory,
                                            const GradientArguments<Element>& given,
                                            const GradientRows& rows, const Place& place,
                                            int head) {
  const BlockArguments<Element>& block = given.block;
  constexpr bool keys_are_columns = wanted == Wanted::dq;
  const std::size_t query_at = block.query_row(place.batch, head, 0) * W;
  const std::size_t key_at = block.key_row(place.batch, head, 0) * W;
  const int count = keys_are_columns ? block.keys : block.queries;
  for (int first = 0; first < count; first += kMatrixKeys) {
    __syncthreads();  // the tile before has been read
    load(memory.column_a, keys_are_columns ? block.k + key_at : block.q + query_at, first, count);
    load(memory.column_b, keys_are_columns ? block.v + key_at : given.dout + query_at, first,
         count);
    if constexpr (keys_are_columns) {
      load_rows(memory.facts, block, place.batch, first);
    } else {
      load_queries(memory.facts, memory.numbers, given, place.batch, head, first);
    }
    __syncthreads();
    auto& summed = wanted == Wanted::dv ? memory.column_b : memory.column_a;
    clean_values<W, Element>(memory.facts, summed);
    float s[kMatrixKeys / 8][4], dov[kMatrixKeys / 8][4];
    raw_scores<W, Element>(s, memory.row_a, memory.column_a, place);
    if constexpr (wanted != Wanted::dv) {
      raw_scores<W, Element>(dov, memory.row_b, memory.column_b, place);
    }
    pair_terms<wanted>(s, dov, rows, memory.facts, memory.numbers, block, head, place);
    add_values<W, Element>(s, sum, summed, place);
  }
}

template <Wanted wanted, int W, class Element>
__global__ void __launch_bounds__(kMatrixThreads) gradients(GradientArguments<Element> given) {
  RINGPROOF_DYNAMIC_SHARED(bytes);
  Memory<W, Element>& memory = *reinterpret_cast<Memory<W, Element>*>(bytes);
  const BlockArguments<Element>& block = given.block;
  const Place place = place_of_thread();
  constexpr bool queries_are_rows = wanted == Wanted::dq;
  const int group = queries_are_rows ? 1 : block.heads / block.kv_heads;
  const int first_head = place.head * group;  // blockIdx.y counts heads of the wanted gradient
  const int count = queries_are_rows ? block.queries : block.keys;
  const std::size_t row_at = queries_are_rows ? block.query_row(place.batch, first_head, 0)
                                              : block.key_row(place.batch, first_head, 0);
  load(memory.row_a, (queries_are_rows ? block.q : block.k) + row_at * W, place.first_query, count);
  load(memory.row_b, (queries_are_rows ? given.dout : block.v) + row_at * W, place.first_query,
       count);

  GradientRows rows;
  float sum[W / 8][4] = {};
  for (int r = 0; r < 2; ++r) {
    const int n = place.first_query + place.warp_row + place.group + 8 * r;
    rows.here[r] = n < count;
    const RowTable& table = queries_are_rows ? block.query_rows : block.key_rows;
    rows.row[r] = rows.here[r] ? table.at(place.batch, n) : Row{};
    if (queries_are_rows && rows.here[r]) {
      rows.numbers[r] = {given.lse[row_at + n], given.delta[row_at + n]};
    }
  }
  for (int head = first_head; head < first_head + group; ++head) {
    add_columns<wanted, W>(sum, memory, given, rows, place, head);
  }
  float* whole = wanted == Wanted::dq ? given.dq : wanted == Wanted::dk ? given.dk : given.dv;
  const float scale = wanted == Wanted::dv ? 1 : block.rules.scale;
  for (int r = 0; r < 2; ++r) {
    if (!rows.here[r]) continue;
    const int n = place.first_query + place.warp_row + place.group + 8 * r;
    for (int c = 0; c < W / 8; ++c) {
      float* two = whole + (row_at + n) * W + c * 8 + place.pair;
      two[0] += scale * sum[c][2 * r];
      two[1] += scale * sum[c][2 * r + 1];
    }
  }
}

template <Wanted wanted, int W, class Element>
void launch_wanted(const char* name, const GradientArguments<Element>& given, cudaStream_t stream) {
  const BlockArguments<Element>& block = given.block;
  const bool queries = wanted == Wanted::dq;
  const int rows = queries ? block.queries : block.keys;
  const dim3 grid(static_cast<unsigned>((rows + kMatrixRows - 1) / kMatrixRows),
                  static_cast<unsigned>(queries ? block.heads : block.kv_heads),
                  static_cast<unsigned>(block.batches));
  constexpr std::size_t bytes = sizeof(Memory<W, Element>);
  allow_shared(gradients<wanted, W, Element>, bytes);
  launch(name, gradients<wanted, W, Element>, grid, dim3(kMatrixThreads), bytes, stream, given);
}

}  // namespace

template <class Element>
void launch_gradients(const GradientArguments<Element>& given, cudaStream_t stream) {
  if (given.block.queries == 0 || given.block.keys == 0) return;
  with_width(given.block.width, [&]<int W>() {
    launch_wanted<Wanted::dq, W>("gradients dq", given, stream);
    launch_wanted<Wanted::dk, W>("gradients dk", given, stream);
    launch_wanted<Wanted::dv, W>("gradients dv", given, stream);
  });
}
template void launch_gradients(const GradientArguments<Bf16>&, cudaStream_t);
template void launch_gradients(const GradientArguments<Fp16>&, cudaStream_t);

}  // namespace ringproof::cuda
