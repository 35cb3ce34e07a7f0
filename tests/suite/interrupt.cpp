// Remembered signals (interrupt.hpp).
#include "tests/suite/interrupt.hpp"

namespace ringproof::suite {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
volatile std::sig_atomic_t arrived = 0;

void set_all(void (*handler)(int)) {
  for (const int signal : kSignals) {
    struct sigaction action {};
    action.sa_handler = handler;  // without SA_RESTART: a wait for the kernel ends at once
    sigaction(signal, &action, nullptr);
  }
}

}  // namespace

void remember_signals() {
  set_all([](int signal) { arrived = signal; });
}

void forget_signals() { set_all(SIG_DFL); }

void check_interrupt() {
  if (arrived != 0) throw Interrupted{static_cast<int>(arrived)};
}

}  // namespace ringproof::suite
