// One judgement, held for Python: the arrays, the case they make, and what check() said of it.
// Explanations and pictures are computed when they are asked for, from the same arrays; so it is
// remembered what the arrays held, and nothing is said about arrays that have changed since.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "oracle/diagnose/diagnose.hpp"
#include "oracle/judge/check.hpp"
#include "oracle/python/arrays.hpp"

namespace ringproof::python {

class Judgement {
 public:
  /// `spec`: the JSON text of a spec; `contract`: a name or JSON text, empty: the spec's. Takes the
  /// interpreter's lock away while it judges. Throws BadInput.
  Judgement(const nb::dict& tensors, const std::string& spec, const std::string& contract,
            const nb::dict& options, const std::string& name);

  const oracle::Report& report() const { return report_; }
  /// The words of `ringproof check`; `repeat` is the command that repeats it, or empty.
  std::string text(const std::string& repeat) const;
  /// The report file that `ringproof check --report json=F` writes.
  std::string json(const std::string& repeat) const;
  /// What `ringproof explain` adds to the words of `check`: classes, or where it is refused.
  std::string explanation_text();
  /// The explanations as a JSON array of {"id", "also", "words", "elements", "open"}.
  std::string explanations_json();
  /// A picture of error over bound, SVG.
  std::string heat_map();
  /// Writes problem, answers and contract as one case file.
  void save(const std::string& path) const;

 private:
  const oracle::Diagnosis& diagnosis();
  void require_unchanged() const;

  Arrays arrays_;
  oracle::Case case_;
  std::string contract_text_;
  oracle::Contract contract_;
  oracle::CheckOptions options_;
  oracle::Report report_;
  std::uint64_t fingerprint_ = 0;
  std::mutex mutex_;  // taken without the interpreter's lock, guards what follows
  std::optional<oracle::Diagnosis> diagnosis_;
};

/// The options of check() from their names in Python. Throws BadInput.
oracle::CheckOptions check_options(const nb::dict& options);

/// The case of tensors and spec; points into the arrays.
oracle::Case case_of(const Arrays& arrays, const std::string& spec);

}  // namespace ringproof::python
