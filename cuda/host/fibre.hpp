// A stack that can be left and entered again: what a CUDA thread or a rank is on the host.
// Boost.Context switches in about twenty nanoseconds. Stacks end in a page that may not be touched,
// so that an overflow stops the program instead of corrupting another thread.
#pragma once

#include <cstddef>

namespace ringproof::cuda_host {

class Fibre {
 public:
  /// The stack that is running: gets its content when it is left for the first time.
  Fibre() = default;
  explicit Fibre(std::size_t stack_bytes);
  Fibre(Fibre&& other) noexcept;
  Fibre& operator=(Fibre&&) = delete;
  ~Fibre();

  /// Prepares the stack to run entry(argument), which must never return. Whatever ran on it before
  /// is forgotten, not unwound.
  void prepare(void (*entry)(void*), void* argument);

  /// Leaves this fibre for another; comes back when somebody enters this one again. `for_ever`:
  /// nobody will.
  void leave_for(Fibre& next, bool for_ever = false);

 private:
  struct Switch;
  static void land(Switch& from, void* context);
  friend struct FibreEntry;

  void* context_ = nullptr;
  void* stack_ = nullptr;  // lowest usable byte; null for a stack we do not own
  std::size_t bytes_ = 0;
  void (*entry_)(void*) = nullptr;
  void* argument_ = nullptr;
  void* sanitizer_stack_ = nullptr;  // AddressSanitizer's own record of this stack
  const void* bottom_ = nullptr;     // the stack as AddressSanitizer knows it
  std::size_t size_ = 0;
};

}  // namespace ringproof::cuda_host
