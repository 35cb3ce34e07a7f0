// A recipe with its numbers: tensors in memory, the spec, and the case as a reader of its file
// would see it. A pure function of recipe and seed.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "oracle/case/case_file.hpp"
#include "oracle/generate/recipe.hpp"

namespace ringproof::oracle {

/// A tensor in the order of the file.
struct OwnedTensor {
  std::string name;
  DType dtype = DType::f64;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;
};

struct GeneratedCase {
  Recipe recipe;
  std::uint64_t seed = 0;
  std::vector<OwnedTensor> tensors;
  nlohmann::json about;  // free text of the spec: what was generated, flags, certificates

  const OwnedTensor* find(std::string_view name) const;
  /// The spec as it stands in the file.
  std::string spec_json() const;
  /// The case with `answers` (tensors named out, lse, ...) added, built by the readers of files.
  /// It points into this object and into `answers`.
  Case as_case(const std::vector<OwnedTensor>& answers = {}) const;
  /// Writes the problem file: complete or not at all.
  void write(const std::string& path) const;
};

GeneratedCase generate(const Recipe&, std::uint64_t seed);

/// Values of a canonical array [B, H, N, D] as a tensor in the axis order of the spec, each
/// rounded to nearest.
OwnedTensor feature_tensor(std::string name, DType, const Spec&,
                           const std::vector<std::int64_t>& shape,  // [4]
                           const std::vector<double>& values);      // [B, H, N, D]
/// The same for [B, H, N].
OwnedTensor row_tensor(std::string name, DType, const Spec&,
                       const std::vector<std::int64_t>& shape,  // [3]
                       const std::vector<double>& values);      // [B, H, N]

}  // namespace ringproof::oracle
