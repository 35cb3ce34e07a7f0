// The part of NCCL that the ring uses, under its own names, on the host (world.hpp). A send waits
// for its receive unless sends are buffered; calls of one group proceed together, others in the
// order of their stream.
#pragma once

#include <cstddef>

#include "cuda/host/runtime.hpp"

namespace ringproof::cuda_host {
struct Communicator;
}

enum ncclResult_t { ncclSuccess = 0, ncclInvalidArgument = 4 };
enum ncclDataType_t { ncclInt8 = 0, ncclFloat32 = 7 };
struct ncclUniqueId {
  char internal[128];
};
using ncclComm_t = ringproof::cuda_host::Communicator*;

#define RINGPROOF_HERE \
  const ringproof::cuda_host::Location& place = ringproof::cuda_host::Location::here()

ncclResult_t ncclGetUniqueId(ncclUniqueId* id);
ncclResult_t ncclCommInitRank(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank,
                              RINGPROOF_HERE);
ncclResult_t ncclCommDestroy(ncclComm_t communicator);
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd(RINGPROOF_HERE);
ncclResult_t ncclSend(const void* buffer, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream, RINGPROOF_HERE);
ncclResult_t ncclRecv(void* buffer, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream, RINGPROOF_HERE);
const char* ncclGetErrorString(ncclResult_t result);
#undef RINGPROOF_HERE
