// Stacks and switches (fibre.hpp).
#include "cuda/host/fibre.hpp"

#include <sys/mman.h>

#include <boost/context/detail/fcontext.hpp>
#include <cstdlib>
#include <new>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define RINGPROOF_FIBRE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RINGPROOF_FIBRE_ASAN 1
#endif
#endif

#ifdef RINGPROOF_FIBRE_ASAN
extern "C" {
void __sanitizer_start_switch_fiber(void** save, const void* bottom, std::size_t size);
void __sanitizer_finish_switch_fiber(void* save, const void** bottom_old, std::size_t* size_old);
void __asan_unpoison_memory_region(const volatile void* address, std::size_t size);
}
#endif

namespace ringproof::cuda_host {
namespace {

namespace context = boost::context::detail;
constexpr std::size_t kPage = 4096;

}  // namespace

/// Handed over at a switch; lies on the stack that is being left.
struct Fibre::Switch {
  Fibre* from;
  Fibre* to;
};

/// Runs on the new stack: notes where its predecessor stands.
void Fibre::land(Switch& from, void* context) {
  from.from->context_ = context;
#ifdef RINGPROOF_FIBRE_ASAN
  const void* bottom = nullptr;
  std::size_t size = 0;
  __sanitizer_finish_switch_fiber(from.to->sanitizer_stack_, &bottom, &size);
  from.from->bottom_ = bottom, from.from->size_ = size;
#endif
}

/// First function of every new stack.
struct FibreEntry {
  static void run(context::transfer_t arrived) {
    Fibre::Switch& from = *static_cast<Fibre::Switch*>(arrived.data);
    Fibre& self = *from.to;
    Fibre::land(from, arrived.fctx);
    self.entry_(self.argument_);
    std::abort();  // entries leave for another fibre, they do not return
  }
};

Fibre::Fibre(std::size_t stack_bytes) : bytes_(stack_bytes) {
  void* memory = mmap(nullptr, bytes_ + kPage, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  mprotect(memory, kPage, PROT_NONE);
  stack_ = static_cast<char*>(memory) + kPage;
}

Fibre::Fibre(Fibre&& other) noexcept
    : context_(std::exchange(other.context_, nullptr)),
      stack_(std::exchange(other.stack_, nullptr)),
      bytes_(other.bytes_) {}

Fibre::~Fibre() {
  if (stack_ == nullptr) return;
#ifdef RINGPROOF_FIBRE_ASAN
  __asan_unpoison_memory_region(stack_, bytes_);  // the next owner of these pages starts clean
#endif
  munmap(static_cast<char*>(stack_) - kPage, bytes_ + kPage);
}

void Fibre::prepare(void (*entry)(void*), void* argument) {
  entry_ = entry, argument_ = argument;
  bottom_ = stack_, size_ = bytes_;
  sanitizer_stack_ = nullptr;
#ifdef RINGPROOF_FIBRE_ASAN
  __asan_unpoison_memory_region(stack_, bytes_);
#endif
  context_ = context::make_fcontext(static_cast<char*>(stack_) + bytes_, bytes_, FibreEntry::run);
}

void Fibre::leave_for(Fibre& next, bool for_ever) {
  Switch here{this, &next};
#ifdef RINGPROOF_FIBRE_ASAN
  __sanitizer_start_switch_fiber(for_ever ? nullptr : &sanitizer_stack_, next.bottom_, next.size_);
#else
  (void)for_ever;
#endif
  const context::transfer_t back = context::jump_fcontext(next.context_, &here);
  land(*static_cast<Switch*>(back.data), back.fctx);
}

}  // namespace ringproof::cuda_host
