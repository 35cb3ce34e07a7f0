// What the tests of the emulation need: a kernel run, and the fault it ends with.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cuda/host/grid.hpp"
#include "cuda/host/ranks.hpp"

// Kernels of the tests are lambdas; file and line in reports are theirs.
namespace ringproof::test {

struct Outcome {
  std::optional<cuda_host::FaultClass> fault;  // none: the run went well
  std::string text;
};

inline bool names(const Outcome& outcome, const std::string& word) {
  return outcome.text.find(word) != std::string::npos;
}

inline Outcome outcome_of(const std::function<void()>& action) {
  try {
    action();
    return {};
  } catch (const cuda_host::Fault& fault) {
    return {fault.kind(), fault.what()};
  }
}

/// One block of threads.
inline Outcome run_block(unsigned threads, std::size_t shared_bytes,
                         const std::function<void()>& kernel) {
  return outcome_of(
      [&] { cuda_host::run_grid("kernel", dim3(1), dim3(threads), shared_bytes, kernel); });
}

/// Sets the options of the emulated device for the time of a test.
class WithDevice {
 public:
  explicit WithDevice(const cuda_host::DeviceOptions& options)
      : before_(cuda_host::device_options()) {
    cuda_host::device_options() = options;
  }
  WithDevice(const WithDevice&) = delete;
  WithDevice& operator=(const WithDevice&) = delete;
  ~WithDevice() { cuda_host::device_options() = before_; }

 private:
  cuda_host::DeviceOptions before_;
};

}  // namespace ringproof::test
