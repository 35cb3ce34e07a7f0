// Where a command may write: never over what it reads, never over what is no plain file.
#pragma once

#include <string>

#include "oracle/cli/arguments.hpp"

namespace ringproof::oracle::cli {

/// Throws BadInput if `path` is one of the files that `from` reads, a folder, a device or a pipe.
/// Called before any work, so that a slip costs nothing.
void require_output(const std::string& path, const CaseArguments& from);

/// Writes a file that appears complete or not at all: beside it first, then renamed. Throws
/// BadInput naming it.
void write_output(const std::string& path, const std::string& text);

}  // namespace ringproof::oracle::cli
