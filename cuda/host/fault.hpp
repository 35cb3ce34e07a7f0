// What the emulation reports: one class of fault and one sentence that names who, where and what.
#pragma once

#include <stdexcept>
#include <string>

namespace ringproof::cuda_host {

enum class FaultClass {
  divergence,     // threads of a block or warp that do not meet at one barrier or collective
  shared_race,    // two threads of a block, one of them writes shared memory, no barrier between
  device_race,    // two streams, blocks or ranks, one of them writes memory, nothing orders them
  uninitialised,  // shared memory read that nobody wrote
  in_flight,      // data of an asynchronous copy used, or left, before its wait
  bounds,         // memory that was not allocated, or is not this device's
  alignment,      // an address that the instruction cannot use
  deadlock,       // every rank waits and no work can begin
  usage,          // a call that the interface forbids, or that this emulation does not know
};

inline const char* name_of(FaultClass fault) {
  switch (fault) {
    case FaultClass::divergence:
      return "divergence";
    case FaultClass::shared_race:
      return "race in shared memory";
    case FaultClass::device_race:
      return "race in device memory";
    case FaultClass::uninitialised:
      return "uninitialised shared memory";
    case FaultClass::in_flight:
      return "copy in flight";
    case FaultClass::bounds:
      return "out of bounds";
    case FaultClass::alignment:
      return "misaligned";
    case FaultClass::deadlock:
      return "deadlock";
    case FaultClass::usage:
      return "usage";
  }
  return "?";
}

class Fault : public std::runtime_error {
 public:
  Fault(FaultClass kind, const std::string& what)
      : std::runtime_error(std::string(name_of(kind)) + ": " + what), kind_(kind) {}
  FaultClass kind() const { return kind_; }

 private:
  FaultClass kind_;
};

}  // namespace ringproof::cuda_host
