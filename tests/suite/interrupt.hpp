// Ctrl-C as an exception between two calls, so that destructors remove what lies about.
#pragma once

#include <csignal>

namespace ringproof::suite {

/// SIGINT, SIGTERM or SIGHUP arrived.
struct Interrupted {
  int signal = SIGINT;
};

/// From now on these signals are remembered, not deadly. For programs.
void remember_signals();
/// In a child process: back to what they were.
void forget_signals();
/// Throws Interrupted if one has arrived.
void check_interrupt();

}  // namespace ringproof::suite
