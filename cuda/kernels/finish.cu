// Before the first and after the last block: empty states, and the answer of the states. Each
// head's sink enters every row once, then the one division and the logarithm of the denominator.
#include "cuda/kernels/arguments.cuh"

namespace ringproof::cuda {
namespace {

constexpr int kThreads = 64;

struct EmptyArguments {
  float *m, *l, *o;
  int rows, width;
};

__global__ void empty_states(EmptyArguments states) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row >= states.rows) return;
  states.m[row] = minus_infinity();
  states.l[row] = 0;
  for (int c = 0; c < states.width; ++c) {
    states.o[static_cast<std::size_t>(row) * states.width + c] = 0;
  }
}

__global__ void finish(FinishArguments states) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int head = static_cast<int>(blockIdx.y), batch = static_cast<int>(blockIdx.z);
  if (i >= states.queries) return;
  const std::size_t row =
      (static_cast<std::size_t>(batch) * states.heads + head) * states.queries + i;
  float m = states.m[row], l = states.l[row], alpha = 1;
  const float* sinks = states.rules.sinks;
  if (sinks != nullptr && !(is_minus_infinity(m) && is_minus_infinity(sinks[head]))) {
    const float before = m;
    m = m < sinks[head] ? sinks[head] : m;
    alpha = exact_exp(before - m);
    l = alpha * l + exact_exp(sinks[head] - m);
  }
  const bool empty = l == 0;
  states.lse[row] = empty ? minus_infinity() : m + exact_log(l);
  const float nothing = states.rules.nan_where_empty ? NAN : 0.0F;
  for (int c = 0; c < states.width; ++c) {
    float& o = states.o[row * states.width + c];
    o = empty ? nothing : alpha * o / l;
  }
}

unsigned blocks_for(int rows) { return static_cast<unsigned>((rows + kThreads - 1) / kThreads); }

}  // namespace

void launch_empty_states(float* m, float* l, float* o, int rows, int width, cudaStream_t stream) {
  if (rows == 0) return;
  launch("empty_states", empty_states, dim3(blocks_for(rows)), dim3(kThreads), 0, stream,
         EmptyArguments{m, l, o, rows, width});
}

void launch_finish(const FinishArguments& arguments, cudaStream_t stream) {
  if (arguments.queries == 0) return;
  const dim3 grid(blocks_for(arguments.queries), static_cast<unsigned>(arguments.heads),
                  static_cast<unsigned>(arguments.batches));
  launch("finish", finish, grid, dim3(kThreads), 0, stream, arguments);
}

}  // namespace ringproof::cuda
