// What every command that judges cases takes on its command line, set up once: which cases, under
// which contract, what of them, and how hard. `check`, `explain` and their like hold one of these.
#pragma once

#include <string>
#include <vector>

#include "oracle/cli/arguments.hpp"

namespace ringproof::oracle::cli {

struct JudgeArguments {
  CaseArguments from;
  CheckArguments check;
  TruthArguments truth;

  void add_to(CLI::App& app) {
    from.add_to(app);
    check.add_to(app);
    truth.add_to(app);
  }
  /// Throws BadInput for words that mean nothing.
  CheckOptions options() const { return check.options(truth); }
  /// The command line that judges this case again.
  /// Time does not repeat: a budget becomes the number of rows it was enough for, if there was
  /// anything to spend it on.
  std::string repeat(const std::string& verb, const std::vector<std::string>& files,
                     const Report& report) const {
    return repeat_command(
        verb, files, from, truth,
        check.budget && report.rows_judged > 0 ? check.with_rows(report.rows_judged) : check);
  }
};

}  // namespace ringproof::oracle::cli
