// Ranks on the host: each is a fibre with a device of its own; what its streams hold is run at some
// legal time, chosen by the order below. Throws the first Fault, or what a rank threw.
//
//   run_ranks(4, {.order = Order::random, .seed = 7}, [&](int rank) { drive(rank); });
#pragma once

#include <cstdint>
#include <functional>

#include "cuda/host/grid.hpp"

namespace ringproof::cuda_host {

/// When the work that streams hold is run.
enum class Order {
  lazy,    // as late as possible: only when a rank waits and no other rank can go on
  eager,   // as early as possible: before every call returns
  random,  // drawn from the seed, switching between ranks at any call
};

struct RankOptions {
  Order order = Order::random;
  std::uint64_t seed = 1;
  bool buffered_sends = false;  // a send may end before its receive begins, as small ones do
  bool race_checks = true;      // in device and pinned memory
};

/// What was executed.
struct RankCounts {
  std::uint64_t operations = 0, messages = 0, switches = 0;
  std::uint64_t device_bytes = 0;  // allocated at one time on the fullest device
};

RankCounts run_ranks(int ranks, const RankOptions& options, const std::function<void(int)>& body);

}  // namespace ringproof::cuda_host
