// The compiler's own instrumentation, received by this project: sources compiled with
// -fsanitize=thread call these functions at every load and store, and nothing is linked against the
// thread sanitizer's library. So every access of a kernel, and every touch of device memory by the
// driver's host code, is seen with its instruction; the sources need no wrapper types.
#include <cstdint>
#include <cstring>
#include <string>

#include "cuda/host/grid.hpp"

#define RINGPROOF_INSTRUCTION __builtin_return_address(0)

using ringproof::cuda_host::Access;
using ringproof::cuda_host::note_access;

namespace {

/// An access whose type promises alignment. A GPU ends the program where the promise is broken;
/// this processor would not.
void note_aligned(void* at, std::size_t size, Access access, const void* instruction) {
  using namespace ringproof::cuda_host;
  if (inside_kernel() && reinterpret_cast<std::uintptr_t>(at) % size != 0) {
    fail_kernel(Fault(FaultClass::alignment, std::to_string(size) +
                                                 " bytes at once at an address that is no "
                                                 "multiple of it, " +
                                                 running_thread() + " at " +
                                                 text_of_instruction(instruction)));
  }
  note_access(at, size, access, instruction);
}

}  // namespace

extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

#define RINGPROOF_HOOKS(size, name, note)                 \
  void __tsan_##name##read##size(void* at) {              \
    note(at, size, Access::read, RINGPROOF_INSTRUCTION);  \
  }                                                       \
  void __tsan_##name##write##size(void* at) {             \
    note(at, size, Access::write, RINGPROOF_INSTRUCTION); \
  }
#define RINGPROOF_HOOKS_OF(size)        \
  RINGPROOF_HOOKS(size, , note_aligned) \
  RINGPROOF_HOOKS(size, volatile_, note_aligned) RINGPROOF_HOOKS(size, unaligned_, note_access)
RINGPROOF_HOOKS_OF(1)
RINGPROOF_HOOKS_OF(2)
RINGPROOF_HOOKS_OF(4)
RINGPROOF_HOOKS_OF(8)
RINGPROOF_HOOKS_OF(16)

void __tsan_read_range(void* at, unsigned long size) {
  note_access(at, size, Access::read, RINGPROOF_INSTRUCTION);
}
void __tsan_write_range(void* at, unsigned long size) {
  note_access(at, size, Access::write, RINGPROOF_INSTRUCTION);
}

// clang calls these in place of the C functions.
void* __tsan_memcpy(void* to, const void* from, unsigned long size) {
  note_access(from, size, Access::read, RINGPROOF_INSTRUCTION);
  note_access(to, size, Access::write, RINGPROOF_INSTRUCTION);
  return std::memcpy(to, from, size);
}
void* __tsan_memmove(void* to, const void* from, unsigned long size) {
  note_access(from, size, Access::read, RINGPROOF_INSTRUCTION);
  note_access(to, size, Access::write, RINGPROOF_INSTRUCTION);
  return std::memmove(to, from, size);
}
void* __tsan_memset(void* to, int value, unsigned long size) {
  note_access(to, size, Access::write, RINGPROOF_INSTRUCTION);
  return std::memset(to, value, size);
}

// The standard library's reference counts; device code has none.
#define RINGPROOF_ATOMICS(bits, type)                                                              \
  type __tsan_atomic##bits##_load(const volatile type* at, int) {                                  \
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                                  \
  }                                                                                                \
  void __tsan_atomic##bits##_store(volatile type* at, type value, int) {                           \
    __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                                 \
  }                                                                                                \
  type __tsan_atomic##bits##_exchange(volatile type* at, type value, int) {                        \
    return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                                       \
  }                                                                                                \
  type __tsan_atomic##bits##_fetch_add(volatile type* at, type value, int) {                       \
    return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST);                                        \
  }                                                                                                \
  type __tsan_atomic##bits##_fetch_sub(volatile type* at, type value, int) {                       \
    return __atomic_fetch_sub(at, value, __ATOMIC_SEQ_CST);                                        \
  }                                                                                                \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile type* at, type* expected, type value, \
                                                    int, int) {                                    \
    return __atomic_compare_exchange_n(at, expected, value, false, __ATOMIC_SEQ_CST,               \
                                       __ATOMIC_SEQ_CST);                                          \
  }                                                                                                \
  type __tsan_atomic##bits##_compare_exchange_val(volatile type* at, type expected, type value,    \
                                                  int, int) {                                      \
    __atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);  \
    return expected;                                                                               \
  }
RINGPROOF_ATOMICS(8, unsigned char)
RINGPROOF_ATOMICS(16, unsigned short)
RINGPROOF_ATOMICS(32, unsigned)
RINGPROOF_ATOMICS(64, unsigned long)
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
}
