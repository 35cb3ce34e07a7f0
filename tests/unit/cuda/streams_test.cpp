// Streams, events, messages and device memory: what nothing orders is found, in whatever order the
// work is run, and the same program with its event passes.
#include <cstring>

#include "cuda/handles.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/cuda/launches.hpp"

using namespace ringproof;
using namespace ringproof::cuda;
using cuda_host::FaultClass;
using cuda_host::Order;
using cuda_host::RankOptions;
using test::Outcome;

namespace {

constexpr std::size_t kWords = 64;

/// Runs a program of `ranks` ranks in every order; the first outcome that is not good, if any.
Outcome in_every_order(int ranks, const std::function<void(int)>& body) {
  for (const Order order : {Order::lazy, Order::eager, Order::random}) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      const RankOptions options{order, seed, seed % 2 == 0, true};
      const Outcome outcome = test::outcome_of([&] { cuda_host::run_ranks(ranks, options, body); });
      if (outcome.fault) return outcome;
    }
  }
  return {};
}

struct Fill {
  float* words;
  float value;
};
__global__ void fill(Fill arguments) { arguments.words[threadIdx.x] = arguments.value; }

void launch_fill(float* words, float value, cudaStream_t stream) {
  launch("fill", fill, dim3(1), dim3(kWords), 0, stream, Fill{words, value});
}

void copy_home(PinnedArray<float>& to, const DeviceArray<float>& from, cudaStream_t stream) {
  check(cudaMemcpyAsync(to.numbers().data(), from.get(), from.bytes(), cudaMemcpyDeviceToHost,
                        stream));
}

}  // namespace

TEST_CASE("work of one stream is in order, and is the host's after synchronising") {
  float seen = 0;
  const Outcome outcome = in_every_order(1, [&](int) {
    const StreamOwner stream = make_stream();
    const DeviceArray<float> device(kWords);
    PinnedArray<float> home(kWords);
    launch_fill(device.get(), 1, stream.get());
    launch_fill(device.get(), 2, stream.get());
    copy_home(home, device, stream.get());
    check(cudaStreamSynchronize(stream.get()));
    seen = home.numbers()[5];
  });
  INFO(outcome.text);
  CHECK(!outcome.fault);
  CHECK(seen == 2);
}

TEST_CASE("memory written by one stream and read by another needs an event between") {
  const auto program = [](bool record, bool wait) {
    return in_every_order(1, [=](int) {
      const StreamOwner writer = make_stream(), reader = make_stream();
      const EventOwner written = make_event();
      const DeviceArray<float> device(kWords);
      PinnedArray<float> home(kWords);
      if (record && !wait) check(cudaEventRecord(written.get(), writer.get()));  // too early
      check(cudaMemsetAsync(device.get(), 0, device.bytes(), writer.get()));
      if (record && wait) check(cudaEventRecord(written.get(), writer.get()));
      if (record) check(cudaStreamWaitEvent(reader.get(), written.get(), 0));
      copy_home(home, device, reader.get());
      check(cudaStreamSynchronize(reader.get()));
      check(cudaStreamSynchronize(writer.get()));
    });
  };
  CHECK(!program(true, true).fault);
  const Outcome without = program(false, false);
  CHECK(without.fault == FaultClass::device_race);
  CHECK(test::names(without, "cudaMemsetAsync"));
  CHECK(test::names(without, "streams_test.cpp:"));
  CHECK(program(true, false).fault == FaultClass::device_race);
}

TEST_CASE("memory read by one stream and overwritten by another needs an event between") {
  const auto program = [](bool ordered) {
    return in_every_order(1, [=](int) {
      const StreamOwner first = make_stream(), second = make_stream();
      const EventOwner read = make_event();
      const DeviceArray<float> device(kWords);
      PinnedArray<float> home(kWords);
      check(cudaMemsetAsync(device.get(), 0, device.bytes(), first.get()));
      check(cudaStreamSynchronize(first.get()));
      copy_home(home, device, first.get());
      check(cudaEventRecord(read.get(), first.get()));
      if (ordered) check(cudaStreamWaitEvent(second.get(), read.get(), 0));
      check(cudaMemsetAsync(device.get(), 1, device.bytes(), second.get()));
      check(cudaDeviceSynchronize());
    });
  };
  CHECK(!program(true).fault);
  CHECK(program(false).fault == FaultClass::device_race);
}

TEST_CASE("an event that was never recorded orders nothing, as on a device") {
  const Outcome outcome = in_every_order(1, [](int) {
    const StreamOwner stream = make_stream();
    const EventOwner event = make_event();
    check(cudaStreamWaitEvent(stream.get(), event.get(), 0));
    check(cudaEventSynchronize(event.get()));
    check(cudaStreamSynchronize(stream.get()));
  });
  CHECK(!outcome.fault);
}

#if RINGPROOF_CUDA_CHECKED

TEST_CASE("the host must wait before it reads what a stream brings home") {
  const auto program = [](bool wait) {
    return in_every_order(1, [=](int) {
      const StreamOwner stream = make_stream();
      const DeviceArray<float> device(kWords);
      PinnedArray<float> home(kWords);
      check(cudaMemsetAsync(device.get(), 0, device.bytes(), stream.get()));
      copy_home(home, device, stream.get());
      if (wait) check(cudaStreamSynchronize(stream.get()));
      volatile float seen = home.numbers()[0];
      (void)seen;
      check(cudaStreamSynchronize(stream.get()));
    });
  };
  CHECK(!program(true).fault);
  CHECK(program(false).fault == FaultClass::device_race);
}

TEST_CASE("host code that touches device memory is a fault") {
  CHECK(in_every_order(1, [](int) {
          const DeviceArray<float> device(kWords);
          device.get()[3] = 1;
          check(cudaDeviceSynchronize());
        }).fault == FaultClass::bounds);
}

TEST_CASE("kernels that leave an allocation, or use a freed one, are faults") {
  const auto at = [](int shift, bool freed) {
    return in_every_order(1,
                          [=](int) {
                            const StreamOwner stream = make_stream();
                            DeviceArray<float> device(kWords);
                            float* words = device.get() + shift;
                            if (freed) device = DeviceArray<float>();
                            launch_fill(words, 1, stream.get());
                            check(cudaStreamSynchronize(stream.get()));
                          })
        .fault;
  };
  CHECK(!at(0, false));
  CHECK(at(1, false) == FaultClass::bounds);
  CHECK(at(-1, false) == FaultClass::bounds);
  CHECK(at(0, true) == FaultClass::bounds);
}

TEST_CASE("two blocks of a kernel that write one word are a race, unless atomically") {
  const auto program = [](bool atomic) {
    return in_every_order(1, [=](int) {
      const StreamOwner stream = make_stream();
      const DeviceArray<float> device(kWords);
      check(cudaMemsetAsync(device.get(), 0, device.bytes(), stream.get()));
      launch("add", atomic ? +[](Fill f) { if (threadIdx.x == 0) atomicAdd(f.words, f.value); }
                           : +[](Fill f) { if (threadIdx.x == 0) f.words[0] = f.value; },
             dim3(2), dim3(32), 0, stream.get(), Fill{device.get(), 1});
      check(cudaStreamSynchronize(stream.get()));
    });
  };
  CHECK(!program(true).fault);
  const Outcome race = program(false);
  CHECK(race.fault == FaultClass::device_race);
  CHECK(test::names(race, "another block"));
}

#endif

TEST_CASE("a device cannot reach another device's memory, nor memory that is not pinned") {
  float* other = nullptr;
  CHECK(in_every_order(2, [&](int rank) {
          const StreamOwner stream = make_stream();
          const DeviceArray<float> mine(kWords);
          if (rank == 0) other = mine.get();
          while (rank == 1 && other == nullptr) check(cudaDeviceSynchronize());
          if (rank == 1) {
            check(cudaMemcpyAsync(mine.get(), other, mine.bytes(), cudaMemcpyDeviceToDevice,
                                  stream.get()));
          }
          check(cudaDeviceSynchronize());
        }).fault == FaultClass::bounds);
  CHECK(in_every_order(1, [](int) {
          const StreamOwner stream = make_stream();
          const DeviceArray<float> mine(kWords);
          static float pageable[kWords];
          check(cudaMemcpyAsync(mine.get(), pageable, mine.bytes(), cudaMemcpyHostToDevice,
                                stream.get()));
          check(cudaDeviceSynchronize());
        }).fault == FaultClass::bounds);
}

TEST_CASE("the default stream, and more shared memory than asked for, are refused") {
  CHECK(in_every_order(1, [](int) {
          const DeviceArray<float> device(kWords);
          launch_fill(device.get(), 1, nullptr);
        }).fault == FaultClass::usage);
  const auto shared = [](std::size_t bytes, int limit) {
    return in_every_order(1,
                          [=](int) {
                            const StreamOwner stream = make_stream();
                            const DeviceArray<float> device(kWords);
                            if (limit > 0) {
                              check(cudaFuncSetAttribute(
                                  fill, cudaFuncAttributeMaxDynamicSharedMemorySize, limit));
                            }
                            launch("fill", fill, dim3(1), dim3(kWords), bytes, stream.get(),
                                   Fill{device.get(), 1});
                            check(cudaStreamSynchronize(stream.get()));
                          })
        .fault;
  };
  CHECK(!shared(48 << 10, 0));
  CHECK(shared((48 << 10) + 1, 0) == FaultClass::usage);
  CHECK(!shared(64 << 10, 64 << 10));
}

TEST_CASE("calls outside ranks are refused") {
  void* memory = nullptr;
  CHECK(test::outcome_of([&] { cudaMalloc(&memory, 4); }).fault == FaultClass::usage);
}
