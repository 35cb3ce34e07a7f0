// --report FORMAT=FILE,...: where reports go beside standard output.
#pragma once

#include <string>
#include <vector>

#include "oracle/report/report_json.hpp"

namespace ringproof::oracle::cli {

class ReportFiles {
 public:
  /// Throws BadInput for a format that is none, or is reserved, before anything is judged.
  explicit ReportFiles(const std::string& words);
  /// Writes every file, complete or not at all. Throws BadInput naming the file.
  void write(const std::vector<CaseOutcome>&) const;

 private:
  std::vector<std::string> json_;  // paths
};

}  // namespace ringproof::oracle::cli
