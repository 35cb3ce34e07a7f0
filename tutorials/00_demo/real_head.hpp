// A real attention head: read from tests/data/, computed by a ring, judged from the file that the
// ring wrote. The judge sees nothing but that file.
#pragma once

#include <string>

#include "oracle/diagnose/diagnose.hpp"

namespace ringproof::demo {

enum class Ring { as_it_should_be, averaging };

struct Judged {
  oracle::Report report;
  oracle::Diagnosis diagnosis;  // of a refused answer
};

/// The problem file of the demo, and the answer of a stranger's kernel to it.
std::string problem_path();
std::string stranger_path();

/// Runs the ring on `ranks` ranks and judges its answer; of the averaging one `out` alone, because
/// a kernel that never joins its denominators has no LSE to give.
Judged run_and_judge(Ring ring, int ranks);

/// Judges an answer file under a contract, or, if none is named, under the one it declares itself.
Judged judge_file(const std::string& path, const std::string& contract, bool only_out);

}  // namespace ringproof::demo
