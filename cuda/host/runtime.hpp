// The part of the CUDA runtime that the driver uses, under its own names, on the host (world.hpp).
// Each call is also a place where other ranks and streams may run. Stricter than the original: the
// default stream, which orders all others, is refused, and so are asynchronous copies from or to
// memory that is not pinned, because they would not be asynchronous.
#pragma once

#include <cstddef>
#include <functional>
#include <tuple>
#include <utility>

#include "cuda/host/device.hpp"

namespace ringproof::cuda_host {
struct Stream;
struct Event;
}  // namespace ringproof::cuda_host

using cudaStream_t = ringproof::cuda_host::Stream*;
using cudaEvent_t = ringproof::cuda_host::Event*;

enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2 };
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
inline constexpr unsigned cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2;

#define RINGPROOF_HERE \
  const ringproof::cuda_host::Location& place = ringproof::cuda_host::Location::here()

cudaError_t cudaMalloc(void** address, std::size_t bytes, RINGPROOF_HERE);
cudaError_t cudaMallocHost(void** address, std::size_t bytes, RINGPROOF_HERE);
cudaError_t cudaFree(void* address, RINGPROOF_HERE);
cudaError_t cudaFreeHost(void* address, RINGPROOF_HERE);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream, RINGPROOF_HERE);
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream,
                            RINGPROOF_HERE);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags, RINGPROOF_HERE);
cudaError_t cudaStreamDestroy(cudaStream_t stream, RINGPROOF_HERE);
cudaError_t cudaStreamSynchronize(cudaStream_t stream, RINGPROOF_HERE);
cudaError_t cudaDeviceSynchronize(RINGPROOF_HERE);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags, RINGPROOF_HERE);
cudaError_t cudaEventDestroy(cudaEvent_t event, RINGPROOF_HERE);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream, RINGPROOF_HERE);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags,
                                RINGPROOF_HERE);
cudaError_t cudaEventSynchronize(cudaEvent_t event, RINGPROOF_HERE);
cudaError_t cudaGetLastError();
const char* cudaGetErrorString(cudaError_t error);

namespace ringproof::cuda_host {

cudaError_t raise_shared_limit(const void* kernel, std::size_t bytes);
void enqueue_kernel(const std::string& name, const void* kernel, dim3 grid, dim3 block,
                    std::size_t shared_bytes, Stream* stream, std::function<void()> body,
                    const Location& place);

}  // namespace ringproof::cuda_host

template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel* kernel, cudaFuncAttribute, int bytes) {
  return ringproof::cuda_host::raise_shared_limit(reinterpret_cast<const void*>(kernel),
                                                  static_cast<std::size_t>(bytes));
}
#undef RINGPROOF_HERE
