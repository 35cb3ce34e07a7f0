// Files of one case before they become one: which file has the problem, and what the spec is.
// Private to the readers of cases and shards.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "oracle/case/case_file.hpp"
#include "oracle/case/tensor_table.hpp"

namespace ringproof::oracle {

struct LoadedCase {
  Source answer;                    // the file named by the caller
  std::optional<Source> elsewhere;  // the problem file, where the answer is apart
  Spec spec;                        // joined
  std::vector<std::shared_ptr<const void>> storage;

  const Source& problem() const { return elsewhere ? *elsewhere : answer; }
};

/// Opens the file and, where it has no q, the problem file its spec or `options` name; checks
/// names, types, roles and the digest, and joins the specs. Throws BadInput.
/// A shard of answers may say which rows of the problem it holds (positions_*).
enum class FilePart { whole, shard };
LoadedCase load_case(const std::string& path, const CaseOptions& options,
                     FilePart part = FilePart::whole);

}  // namespace ringproof::oracle
