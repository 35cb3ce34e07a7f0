// Reading one case: its file, and the problem file beside it where the answer is apart.
#include "oracle/case/case_file.hpp"

#include "oracle/case/assemble.hpp"
#include "oracle/case/error.hpp"
#include "oracle/case/load.hpp"
#include "oracle/case/sha256.hpp"
#include "oracle/case/words.hpp"

namespace ringproof::oracle {

Case read_case(const std::string& path, const CaseOptions& options) {
  const LoadedCase loaded = load_case(path, options);
  Case result = assemble_case(loaded.problem(), loaded.answer, loaded.spec);
  result.storage = loaded.storage;
  return result;
}

}  // namespace ringproof::oracle
