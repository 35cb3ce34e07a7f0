// Where a command may write: never over what it reads, never over what is no plain file.
#pragma once

#include <string>
#include <vector>

#include "oracle/cli/arguments.hpp"

namespace ringproof::oracle::cli {

/// Throws BadInput if `path` is one of `inputs`, lies in a folder among them, is a folder, a device
/// or a pipe, or cannot be written. Called before any work, so that a slip costs nothing.
void require_output(const std::string& path, const std::vector<std::string>& inputs);
/// The same for all files that `from` reads.
void require_output(const std::string& path, const CaseArguments& from);

/// Writes a file that appears complete or not at all: beside it first, then renamed. Throws
/// BadInput naming it.
void write_output(const std::string& path, const std::string& text);

}  // namespace ringproof::oracle::cli
