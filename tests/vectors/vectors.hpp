// The shipped vectors: small problems with the certified intervals of their answers, as JSON that
// any language reads. The text is a pure function of the generator and its seed: intervals come
// from arithmetic of a fixed number of binary digits, never from the fast path, whose radius
// depends on the processor.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "oracle/generate/generated_case.hpp"

namespace ringproof::vectors {

constexpr std::uint64_t kSeed = 1;
/// Enough for intervals that binary64 ends cannot show, and fewer than the 60 decimal digits of the
/// second truth, whose own errors thereby stay inside.
constexpr unsigned kBits = 128;

/// A vector file: its name, and the type of the inputs of its cases.
struct VectorFile {
  std::string name;
  oracle::DType dtype;
};
std::vector<VectorFile> vector_files();

/// The problems of one file.
std::vector<oracle::GeneratedCase> vector_cases(oracle::DType);

/// The text of one file.
std::string vector_text(const VectorFile&);

}  // namespace ringproof::vectors
