// A draft laid out in memory as the kernel sees it (ringproof.h), and as the judge reads it back.
// Behind and in front of every answer lie guard bytes; inputs are compared with what was laid down.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "oracle/case/case_file.hpp"
#include "oracle/case/tensor_table.hpp"
#include "oracle/ringproof.h"
#include "tests/suite/draft.hpp"

namespace ringproof::suite {

/// Which answers are asked for, and in which types.
struct Wanted {
  oracle::DType out = oracle::DType::f32;
  oracle::DType lse = oracle::DType::f32;
  oracle::DType gradient = oracle::DType::f32;
  bool with_lse = true;
  bool with_gradients = false;
};

/// What the answers hold before the kernel runs.
enum class Fill { nan, large };

/// One problem in memory, with room for its answers. Views point into the memory given.
class Laid {
 public:
  /// `memory` empty: memory of its own. Throws std::length_error if the memory is too small.
  Laid(const Draft&, const Wanted&, Fill, std::span<std::byte> memory);
  Laid(const Laid&) = delete;
  Laid& operator=(const Laid&) = delete;

  const ringproof_problem* problem() const { return problem_; }
  ringproof_answer* answer() { return answer_; }

  /// Was a byte of the inputs, or of the guards around the answers, written? The tensor's name.
  std::optional<std::string> modified_input() const;
  std::optional<std::string> written_guard() const;
  /// Is every number of this answer still what it was filled with?
  bool untouched(const std::string& name) const;

  /// Bytes of one answer, C order in the axis order of the case.
  std::vector<std::byte> bytes_of(const std::string& name) const;
  /// Names of the answers that were asked for.
  std::vector<std::string> answers() const;

 private:
  struct Placed {
    std::string name;
    std::byte* data;
    std::size_t bytes;
    oracle::DType dtype;
  };
  std::byte* take(std::size_t bytes);
  ringproof_tensor place(const std::string& name, const Table&, const oracle::Spec&, Index gap);
  ringproof_tensor place_answer(const std::string& name, oracle::DType, std::vector<Index> shape);
  void fill_spec(const Draft&);
  void place_answers(const Draft&, const Wanted&);

  std::unique_ptr<std::byte[]> own_;
  std::span<std::byte> memory_;
  std::size_t used_ = 0;
  Fill fill_;
  ringproof_problem* problem_ = nullptr;
  ringproof_answer* answer_ = nullptr;
  std::vector<Placed> inputs_, outputs_;
  std::vector<std::vector<std::byte>> before_;  // of the inputs
};

/// The tensors and the spec that a kernel's structs stand for; views into them.
oracle::Source problem_source(const ringproof_problem&);
oracle::Source answer_source(const ringproof_answer&);
oracle::Spec problem_spec(const ringproof_problem&);

}  // namespace ringproof::suite
