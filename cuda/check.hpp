// Calls of CUDA and NCCL that fail, as exceptions that say which.
#pragma once

#include <stdexcept>
#include <string>

#include "cuda/device/cuda.cuh"

namespace ringproof::cuda {

class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline void check(cudaError_t error) {
  if (error != cudaSuccess) throw DeviceError(std::string("CUDA: ") + cudaGetErrorString(error));
}

inline void check(ncclResult_t result) {
  if (result != ncclSuccess) throw DeviceError(std::string("NCCL: ") + ncclGetErrorString(result));
}

}  // namespace ringproof::cuda
