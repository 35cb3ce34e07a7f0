// Work of the judge that Ctrl-C can end: it runs on a thread of its own, without the interpreter's
// lock, while the calling thread waits and lets Python look at its signals.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <future>
#include <optional>

#include "oracle/judge/row_walk.hpp"

namespace ringproof::python {

/// Thrown on the working threads once the caller was interrupted.
struct Interrupted : std::exception {};

/// Runs work(), which walks rows with `walk`, and returns when it has ended. What it throws is
/// thrown here, or what the signal's handler raised (KeyboardInterrupt).
template <class Work>
void interruptible(oracle::WalkOptions& walk, Work&& work) {
  namespace nb = nanobind;
  constexpr std::chrono::milliseconds kLook{50};
  std::atomic<bool> stop{false};
  walk.progress = [&stop](std::int64_t, std::int64_t) {
    if (stop) throw Interrupted();
  };
  std::optional<nb::python_error> raised;
  std::exception_ptr failure;
  {
    const nb::gil_scoped_release without_lock;
    std::future<void> done = std::async(std::launch::async, work);
    while (done.wait_for(kLook) != std::future_status::ready) {
      const nb::gil_scoped_acquire with_lock;
      if (!stop && PyErr_CheckSignals() != 0) {
        raised.emplace();
        stop = true;
      }
    }
    try {
      done.get();
    } catch (...) {
      failure = std::current_exception();
    }
  }
  walk.progress = {};
  if (raised) throw *raised;
  if (failure) std::rethrow_exception(failure);
}

}  // namespace ringproof::python
