// Ranks as fibres (rank_group.hpp).
#include "cuda/handles.hpp"
#include "cuda/host/rank_options.hpp"
#include "cuda/rank_group.hpp"

namespace ringproof::cuda_host {

RankOptions& rank_options() {
  static RankOptions options;
  return options;
}

RankCounts& rank_counts() {
  static RankCounts counts;
  return counts;
}

}  // namespace ringproof::cuda_host

namespace ringproof::cuda {

void run_rank_group(int ranks, const RankBody& body) {
  ncclUniqueId id{};
  bool known = false;  // the first rank makes it; elsewhere it would be broadcast
  cuda_host::rank_counts() = cuda_host::run_ranks(ranks, cuda_host::rank_options(), [&](int rank) {
    if (!known) check(ncclGetUniqueId(&id));
    known = true;
    ncclComm_t communicator{};
    check(ncclCommInitRank(&communicator, ranks, id, rank));
    const Owner<ncclComm_t, close_communicator> owner(communicator);
    body(rank, communicator);
  });
}

}  // namespace ringproof::cuda
