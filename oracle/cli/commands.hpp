// The commands of `ringproof`: each adds its arguments to the parser and returns its exit code when
// run.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "oracle/judge/team.hpp"

namespace ringproof::oracle::cli {

/// Set by the subcommand that was chosen; returns the exit code. Throws BadInput for bad input and
/// usage.
using Command = std::function<int()>;

void add_check(CLI::App& program, Command& chosen);
void add_truth(CLI::App& program, Command& chosen);
void add_explain(CLI::App& program, Command& chosen);
void add_audit(CLI::App& program, Command& chosen);
void add_fit(CLI::App& program, Command& chosen);
void add_contracts(CLI::App& program, Command& chosen);
void add_gen(CLI::App& program, Command& chosen);
void add_onnx_case(CLI::App& program, Command& chosen);
void add_suite(CLI::App& program, Command& chosen);

/// `check` on a parser of its own, for a program that does nothing else (mpi/check_main.cpp). The
/// team's first member alone prints and writes; the function that is returned is collective.
Command check_command(CLI::App&, const Team*);

/// Prints "ringproof: MESSAGE" to standard error.
void print_error(const std::string& message);

}  // namespace ringproof::oracle::cli
