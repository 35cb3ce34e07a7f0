#include "oracle/cli/report_files.hpp"

#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "oracle/case/error.hpp"
#include "oracle/cli/output_file.hpp"

namespace ringproof::oracle::cli {

namespace {

void write_file(const std::string& path, const std::string& text) {
  const std::string temporary = path + "." + std::to_string(getpid());
  std::ofstream file(temporary, std::ios::binary);
  file << text;
  file.close();
  if (file && std::rename(temporary.c_str(), path.c_str()) == 0) return;
  std::remove(temporary.c_str());
  throw BadInput(path + ": the report cannot be written");
}

}  // namespace

ReportFiles::ReportFiles(const std::string& words, const CaseArguments& inputs) {
  for (std::size_t first = 0; !words.empty() && first <= words.size();) {
    const std::size_t comma = std::min(words.find(',', first), words.size());
    const std::string one = words.substr(first, comma - first);
    first = comma + 1;
    const std::size_t sign = one.find('=');
    const std::string format = one.substr(0, sign);
    if (format == "junit" || format == "html") {
      throw BadInput("--report " + format + ": reserved, not supported yet");
    }
    if (format != "json" || sign == std::string::npos || sign + 1 == one.size()) {
      throw BadInput("--report: \"" + one + "\" is not json=FILE");
    }
    require_output(one.substr(sign + 1), inputs);
    json_.push_back(one.substr(sign + 1));
  }
}

void ReportFiles::write(const std::vector<CaseOutcome>& outcomes) const {
  for (const std::string& path : json_) write_file(path, to_json(outcomes));
}

}  // namespace ringproof::oracle::cli
