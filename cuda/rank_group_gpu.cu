// Ranks as threads of one process, rank r on GPU r (rank_group.hpp).
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cuda/handles.hpp"
#include "cuda/rank_group.hpp"

namespace ringproof::cuda {

void run_rank_group(int ranks, const RankBody& body) {
  int devices = 0;
  check(cudaGetDeviceCount(&devices));
  if (ranks > devices) {
    throw DeviceError(std::to_string(ranks) + " ranks want a GPU each, there are " +
                      std::to_string(devices));
  }
  ncclUniqueId id{};
  check(ncclGetUniqueId(&id));
  std::exception_ptr failure;
  std::mutex failure_lock;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        check(cudaSetDevice(rank));
        ncclComm_t communicator{};
        check(ncclCommInitRank(&communicator, ranks, id, rank));
        const Owner<ncclComm_t, close_communicator> owner(communicator);
        body(rank, communicator);
      } catch (...) {
        const std::lock_guard hold(failure_lock);
        if (!failure) failure = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace ringproof::cuda
