// A case: one problem, with or without answers, read from safetensors files (docs/formats.md).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "oracle/case/problem.hpp"

namespace ringproof::oracle {

/// Kinds of answers, in the order in which reports list them.
enum class AnswerKind { out, lse, dq, dk, dv, dbias, dsinks };
std::string_view name(AnswerKind);

struct Answer {
  AnswerKind kind;
  Tensor
      tensor;  // canonical axes: out [B, H, Nq, Dv], lse [B, H, Nq, 1], gradients as their inputs
};

struct Case {
  std::string name;  // the file (or first shard) as given on the command line
  Problem problem;
  std::vector<Answer> answers;                       // those present, in AnswerKind order
  Tensor dout, dlse;                                 // upstream gradients, where present
  std::vector<std::shared_ptr<const void>> storage;  // keeps mapped files and owned buffers alive

  const Answer* find(AnswerKind) const;
};

struct CaseOptions {
  std::optional<std::string> spec_file = {};     // --spec F replaces the spec in the file
  std::optional<std::string> problem_file = {};  // --problem P
};

/// Reads one case. Throws BadInput "FILE: what is wrong (where)"; allocates no more than the file
/// holds (plus 12 bytes a row for positions and documents).
Case read_case(const std::string& path, const CaseOptions& = {});
/// The problem file that the spec of a case names; empty if it names none, or is no case.
std::string named_problem(const std::string& path, const std::optional<std::string>& spec_file);
/// Reads the shards of one case (`--shards`) and joins them by position.
Case read_shards(const std::vector<std::string>& paths, const CaseOptions& = {});

/// One tensor to write: canonical data is copied as it is, in the order of `shape`.
struct NamedTensor {
  std::string name;
  DType dtype;
  std::vector<std::int64_t> shape;
  const std::byte* data;
};
/// Writes a safetensors file whose metadata key "ringproof" is `spec_json`. The file appears
/// complete or not at all (temporary file beside it, then rename). Throws BadInput naming file and
/// reason.
void write_case(const std::string& path, const std::vector<NamedTensor>&,
                const std::string& spec_json);

}  // namespace ringproof::oracle
