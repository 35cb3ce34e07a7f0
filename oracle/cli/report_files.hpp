// --report FORMAT=FILE,...: where reports go beside standard output.
#pragma once

#include <string>
#include <vector>

#include "oracle/cli/arguments.hpp"
#include "oracle/report/report_json.hpp"

namespace ringproof::oracle::cli {

class ReportFiles {
 public:
  /// Throws BadInput for a format that is none, or is reserved, and for a file that
  /// must not be written (output_file.hpp), before anything is judged.
  ReportFiles(const std::string& words, const CaseArguments& inputs);
  /// Writes every file, complete or not at all. Throws BadInput naming the file.
  void write(const std::vector<CaseOutcome>&) const;

 private:
  std::vector<std::string> json_;  // paths
};

}  // namespace ringproof::oracle::cli
