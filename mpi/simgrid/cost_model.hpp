// How long a ring takes, derived before anything is measured (docs/math.md, section 9): pure
// functions of counted work, of rates and of the order in which the ring does things.
// A rank begins to compute and to transfer at the same time; a step is over when both are. A
// transfer begins when both its ends have arrived at the step, because neither end is buffered.
#pragma once

#include <algorithm>
#include <vector>

#include "reference/balance.hpp"

namespace ringproof::mpi {

using reference::Index;

/// One machine of the simulated cluster, and its link.
struct Machine {
  double flops = 1;      // floating-point operations a second
  double bandwidth = 1;  // bytes a second, each way
  double latency = 0;    // seconds of a message
};

/// What is computed.
struct Shape {
  Index rows_per_rank = 1, heads = 1, kv_heads = 1, width = 1;  // b, H, Hkv, D = Dv
  Index bytes_per_number = 4;
};

inline double compute_seconds(const Machine& machine, const Shape& shape, Index pairs) {
  const double operations = 4.0 * static_cast<double>(shape.heads * shape.width);
  return operations * static_cast<double>(pairs) / machine.flops;
}

inline Index block_bytes(const Shape& shape) {
  return 2 * shape.kv_heads * shape.rows_per_rank * shape.width * shape.bytes_per_number;
}

inline double transfer_seconds(const Machine& machine, const Shape& shape) {
  return machine.latency + static_cast<double>(block_bytes(shape)) / machine.bandwidth;
}

/// The block size from which a full ring hides its transfers, latency left aside (17).
inline double crossing_rows(const Machine& machine, const Shape& shape) {
  return static_cast<double>(shape.bytes_per_number * shape.kv_heads) * machine.flops /
         (2 * machine.bandwidth * static_cast<double>(shape.heads));
}

/// A ring in which everybody has the same work at every step.
inline double full_ring_seconds(const Machine& machine, const Shape& shape, Index ranks,
                                bool overlap) {
  const double compute = compute_seconds(machine, shape, shape.rows_per_rank * shape.rows_per_rank);
  const double transfer = transfer_seconds(machine, shape);
  const double step = overlap ? std::max(compute, transfer) : compute + transfer;
  return static_cast<double>(ranks - 1) * step + compute;
}

/// Any ring, from the pairs that each rank computes at each step, and moves(block, step): does a
/// block travel on after a step?
inline double ring_seconds(const Machine& machine, const Shape& shape,
                           const reference::Workload& work, reference::Direction direction,
                           bool overlap, const auto& moves) {
  using reference::block_at;
  const Index P = work.ranks;
  const double transfer = transfer_seconds(machine, shape);
  std::vector<double> begin(static_cast<std::size_t>(P), 0.0), next(begin);
  for (Index t = 0; t < P; ++t) {
    for (Index r = 0; r < P; ++r) {
      const double compute = compute_seconds(machine, shape, work.at(t, r));
      double arrived = begin[r];  // both messages of this rank are through
      const Index to = reference::send_to(r, P, direction);
      const Index from = reference::receive_from(r, P, direction);
      if (t + 1 < P && moves(block_at(t, r, P, direction), t)) {
        arrived = std::max(arrived, std::max(begin[r], begin[to]) + transfer);
      }
      if (t + 1 < P && moves(block_at(t, from, P, direction), t)) {
        arrived = std::max(arrived, std::max(begin[r], begin[from]) + transfer);
      }
      next[r] = overlap ? std::max(arrived, begin[r] + compute) : arrived + compute;
    }
    begin.swap(next);
  }
  return *std::max_element(begin.begin(), begin.end());
}

}  // namespace ringproof::mpi
