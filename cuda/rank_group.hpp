// P ranks, each with a device and a communicator: threads and NCCL on GPUs (rank_group_gpu.cu),
// fibres on the host (rank_group_host.cpp). What a rank throws is thrown again here.
#pragma once

#include <functional>

#include "cuda/device/cuda.cuh"

namespace ringproof::cuda {

using RankBody = std::function<void(int rank, ncclComm_t communicator)>;

void run_rank_group(int ranks, const RankBody& body);

}  // namespace ringproof::cuda
