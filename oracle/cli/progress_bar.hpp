// A bar on a terminal for work of more than two seconds; nothing anywhere else.
#pragma once

#include <cstdint>
#include <functional>

namespace ringproof::oracle::cli {

/// A function of (done, in all) for WalkOptions::progress; empty if standard error is no terminal.
/// `what`: is counted.
std::function<void(std::int64_t, std::int64_t)> progress_bar(const char* what = "rows");

}  // namespace ringproof::oracle::cli
