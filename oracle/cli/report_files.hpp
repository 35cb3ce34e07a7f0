// --report FORMAT=FILE,...: where reports go beside standard output.
#pragma once

#include <string>
#include <vector>

#include "oracle/cli/arguments.hpp"
#include "oracle/report/case_outcome.hpp"

namespace ringproof::oracle::cli {

class ReportFiles {
 public:
  /// Throws BadInput for a format that is none and for a file that must not be written
  /// (output_file.hpp), before anything is judged.
  ReportFiles(const std::string& words, const CaseArguments& inputs);
  /// Adds what the files say beyond the report: why a refused answer is wrong, and pictures.
  void complete(CaseOutcome&, const Case&, const Contract&, const CheckOptions&) const;
  /// Writes every file, complete or not at all. Throws BadInput naming the file.
  void write(const std::vector<CaseOutcome>&) const;

 private:
  struct File {
    std::string format, path;
  };
  std::vector<File> files_;
};

}  // namespace ringproof::oracle::cli
