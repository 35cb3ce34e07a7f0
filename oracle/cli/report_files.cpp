#include "oracle/cli/report_files.hpp"

#include <algorithm>

#include "oracle/case/error.hpp"
#include "oracle/cli/output_file.hpp"
#include "oracle/cli/progress_bar.hpp"
#include "oracle/report/html.hpp"
#include "oracle/report/junit.hpp"
#include "oracle/report/pictures.hpp"
#include "oracle/report/report_json.hpp"

namespace ringproof::oracle::cli {

namespace {

std::string page(const std::vector<CaseOutcome>& outcomes) {
  return to_html(outcomes, RINGPROOF_VERSION);
}

/// The function that writes a format; nullptr if it is none.
using Form = std::string (*)(const std::vector<CaseOutcome>&);
Form form(const std::string& format) {
  if (format == "json") return to_json;
  if (format == "junit") return to_junit;
  if (format == "html") return page;
  return nullptr;
}

}  // namespace

ReportFiles::ReportFiles(const std::string& words, const CaseArguments& inputs) {
  for (std::size_t first = 0; !words.empty() && first <= words.size();) {
    const std::size_t comma = std::min(words.find(',', first), words.size());
    const std::string one = words.substr(first, comma - first);
    first = comma + 1;
    const std::size_t sign = std::min(one.find('='), one.size());
    const File file{.format = one.substr(0, sign),
                    .path = one.substr(std::min(sign + 1, one.size()))};
    if (form(file.format) == nullptr || file.path.empty()) {
      throw BadInput("--report: \"" + one + "\" is not json=FILE, junit=FILE or html=FILE");
    }
    require_output(file.path, inputs);
    for (const File& other : files_) {
      if (other.path == file.path) throw BadInput("--report: " + file.path + " is named twice");
      if (other.format == file.format) {
        throw BadInput("--report: " + file.format + " is asked for twice, in " + other.path +
                       " and in " + file.path);
      }
    }
    files_.push_back(file);
  }
}

void ReportFiles::complete(CaseOutcome& outcome, const Case& input, const Contract& contract,
                           const CheckOptions& options) const {
  const bool refused = outcome.verdict == Verdict::fail;
  const bool drawn = std::any_of(files_.begin(), files_.end(),
                                 [](const File& file) { return file.format == "html"; });
  if (files_.empty() || (!refused && !drawn)) return;
  const ErrorField field = error_field(input, contract, options, outcome.report);
  const auto gradients = gradient_fields(input, contract, options, outcome.report);
  if (refused) {
    CheckOptions search = options;
    search.walk.progress = progress_bar("families of mistakes");
    outcome.findings = find(input, contract, search, outcome.report, field, gradients);
  }
  if (drawn) outcome.pictures = pictures(field, gradients);
}

void ReportFiles::write(const std::vector<CaseOutcome>& outcomes) const {
  for (const File& file : files_) write_output(file.path, form(file.format)(outcomes));
}

}  // namespace ringproof::oracle::cli
