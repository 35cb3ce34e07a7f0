// The CUDA runtime's calls as calls of the world (runtime.hpp).
#include "cuda/host/runtime.hpp"

#include <cstring>
#include <exception>

#include "cuda/host/world.hpp"

using namespace ringproof::cuda_host;

namespace ringproof::cuda_host {

struct Event {
  std::shared_ptr<EventRecord> last;  // null: never recorded
};

namespace {

constexpr std::size_t kDefaultSharedLimit = 48 << 10, kMostShared = 227 << 10;

Operation named(const char* name, const Location& place) {
  Operation operation;
  operation.name = name, operation.place = place;
  return operation;
}

std::string call_text(const char* name, const Location& place) {
  return std::string(name) + " (" + text_of(place) + ")";
}

cudaError_t allocate(void** address, std::size_t bytes, bool pinned, const char* name,
                     const Location& place) {
  World& world = World::current(name);
  world.begin_call(name, place);
  *address = world.memory.allocate(bytes, world.rank_number(), pinned);
  world.end_call();
  return *address != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
}

bool device_is_idle(World& world) {
  for (const Stream& stream : world.streams()) {
    if (stream.device == world.rank_number() && !stream.queue.empty()) return false;
  }
  return true;
}

void wait_for_device(World& world, const std::string& call) {
  world.wait_until(call, [&world, device = world.rank_number()] {
    for (const Stream& stream : world.streams()) {
      if (stream.device == device && !stream.queue.empty()) return false;
    }
    return true;
  });
  if (!device_is_idle(world)) return;  // the world has ended
  for (const Stream& stream : world.streams()) {
    if (stream.device == world.rank_number()) world.join(stream);
  }
}

/// What a rank gives up while an exception passes through it goes with the world.
bool is_unwinding(const World& world) { return world.aborting() || std::uncaught_exceptions() > 0; }

/// Waits for the device as the original does. Never throws: destructors call it.
cudaError_t release(void* address, const char* name, const Location& place) {
  World& world = World::current(name);
  if (address == nullptr || is_unwinding(world)) return cudaSuccess;
  wait_for_device(world, call_text(name, place));
  if (world.aborting()) return cudaSuccess;
  if (world.memory.release(address)) return cudaSuccess;
  world.note_fault(std::make_exception_ptr(
      Fault(FaultClass::usage, call_text(name, place) + " of what was not allocated")));
  return cudaErrorInvalidValue;
}

}  // namespace

cudaError_t raise_shared_limit(const void* kernel, std::size_t bytes) {
  World& world = World::current("cudaFuncSetAttribute");
  if (bytes > kMostShared) return cudaErrorInvalidValue;
  world.shared_limits[kernel] = bytes;
  return cudaSuccess;
}

void enqueue_kernel(const std::string& name, const void* kernel, dim3 grid, dim3 block,
                    std::size_t shared_bytes, Stream* stream, std::function<void()> body,
                    const Location& place) {
  World& world = World::current(name.c_str());
  world.begin_call(name, place);
  const auto raised = world.shared_limits.find(kernel);
  const std::size_t limit = raised == world.shared_limits.end()
                                ? kDefaultSharedLimit
                                : std::max(kDefaultSharedLimit, raised->second);
  if (shared_bytes > limit) {
    world.fail(Fault(FaultClass::usage,
                     name + " (" + text_of(place) + ") wants " + std::to_string(shared_bytes) +
                         " bytes of shared memory, its limit is " + std::to_string(limit)));
  }
  Operation operation = named(name.c_str(), place);
  operation.work = [=, body = std::move(body)] { run_grid(name, grid, block, shared_bytes, body); };
  world.enqueue(stream, std::move(operation));
  world.end_call();
}

}  // namespace ringproof::cuda_host

cudaError_t cudaMalloc(void** address, std::size_t bytes, const Location& place) {
  return allocate(address, bytes, false, "cudaMalloc", place);
}
cudaError_t cudaMallocHost(void** address, std::size_t bytes, const Location& place) {
  return allocate(address, bytes, true, "cudaMallocHost", place);
}
cudaError_t cudaFree(void* address, const Location& place) {
  return release(address, "cudaFree", place);
}
cudaError_t cudaFreeHost(void* address, const Location& place) {
  return release(address, "cudaFreeHost", place);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream, const Location& place) {
  World& world = World::current("cudaMemcpyAsync");
  world.begin_call("cudaMemcpyAsync", place);
  Operation operation = named("cudaMemcpyAsync", place);
  operation.work = [=, &world] {
    world.access_device(from, bytes, Access::read);
    world.access_device(to, bytes, Access::write);
    std::memcpy(to, from, bytes);
  };
  world.enqueue(stream, std::move(operation));
  world.end_call();
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream,
                            const Location& place) {
  World& world = World::current("cudaMemsetAsync");
  world.begin_call("cudaMemsetAsync", place);
  Operation operation = named("cudaMemsetAsync", place);
  operation.work = [=, &world] {
    world.access_device(to, bytes, Access::write);
    std::memset(to, value, bytes);
  };
  world.enqueue(stream, std::move(operation));
  world.end_call();
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags, const Location& place) {
  World& world = World::current("cudaStreamCreateWithFlags");
  world.begin_call("cudaStreamCreateWithFlags", place);
  if (flags != cudaStreamNonBlocking) {
    world.fail(Fault(FaultClass::usage, "a stream that waits for the default stream"));
  }
  Stream& made = world.streams().emplace_back();
  made.device = world.rank_number();
  made.worker = world.new_worker();
  made.name = "stream " + std::to_string(world.streams().size()) + " of device " +
              std::to_string(made.device);
  *stream = &made;
  world.end_call();
  return cudaSuccess;
}

/// Waits for the stream, unlike the original, which lets it end by itself. Never throws.
cudaError_t cudaStreamDestroy(cudaStream_t stream, const Location& place) {
  World& world = World::current("cudaStreamDestroy");
  if (stream == nullptr || is_unwinding(world)) return cudaSuccess;
  world.wait_until(call_text("cudaStreamDestroy", place), [=] { return stream->queue.empty(); });
  stream->destroyed = true;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream, const Location& place) {
  World& world = World::current("cudaStreamSynchronize");
  world.begin_call("cudaStreamSynchronize", place);
  world.expect_stream(stream, "cudaStreamSynchronize");
  world.wait_until(call_text("cudaStreamSynchronize", place),
                   [=] { return stream->queue.empty(); });
  world.join(*stream);
  world.end_call();
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(const Location& place) {
  World& world = World::current("cudaDeviceSynchronize");
  world.begin_call("cudaDeviceSynchronize", place);
  wait_for_device(world, call_text("cudaDeviceSynchronize", place));
  world.end_call();
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned, const Location& place) {
  World& world = World::current("cudaEventCreateWithFlags");
  world.begin_call("cudaEventCreateWithFlags", place);
  *event = new Event;
  world.end_call();
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event, const Location&) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream, const Location& place) {
  World& world = World::current("cudaEventRecord");
  world.begin_call("cudaEventRecord", place);
  Operation operation = named("cudaEventRecord", place);
  operation.kind = OperationKind::record;
  operation.record = event->last = std::make_shared<EventRecord>();
  world.enqueue(stream, std::move(operation));
  world.end_call();
  return cudaSuccess;
}

/// An event that was never recorded is nothing to wait for, as in the original.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned,
                                const Location& place) {
  World& world = World::current("cudaStreamWaitEvent");
  world.begin_call("cudaStreamWaitEvent", place);
  if (event->last != nullptr) {
    Operation operation = named("cudaStreamWaitEvent", place);
    operation.kind = OperationKind::wait;
    operation.record = event->last;
    world.enqueue(stream, std::move(operation));
  }
  world.end_call();
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event, const Location& place) {
  World& world = World::current("cudaEventSynchronize");
  world.begin_call("cudaEventSynchronize", place);
  if (const std::shared_ptr<EventRecord> last = event->last) {
    world.wait_until(call_text("cudaEventSynchronize", place), [=] { return last->done; });
    world.rank().clock.join(last->clock);
  }
  world.end_call();
  return cudaSuccess;
}

cudaError_t cudaGetLastError() { return cudaSuccess; }

const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess             ? "success"
         : error == cudaErrorInvalidValue ? "invalid value"
                                          : "out of memory";
}
