// One judgement, held for Python: the case, and what check() said of it. Explanations and pictures
// are computed when they are asked for, from the same arrays; so it is remembered what the arrays
// held, and nothing is said about arrays that have changed since.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "oracle/python/subject.hpp"
#include "oracle/report/case_outcome.hpp"

namespace ringproof::python {

class Judgement {
 public:
  /// `tensors`, `spec`, `name`: as Subject. `contract`: a name or JSON text, empty: the case's own.
  /// Takes the interpreter's lock away while it judges. Throws BadInput.
  Judgement(const nb::object& tensors, const std::string& spec, const std::string& contract,
            const nb::dict& options, const std::string& name);

  /// The words of `ringproof check`; `repeat` is the command that repeats it, or empty.
  std::string text(const std::string& repeat) const;
  /// The report files of `ringproof check`: JSON (with the explanation once it was asked for), and
  /// a page of HTML.
  std::string json(const std::string& repeat) const;
  std::string html(const std::string& repeat);
  /// What `ringproof explain` adds to the words of `check`: classes, or where it is refused.
  std::string explanation_text();
  /// The explanations as a JSON array of {"id", "also", "words", "elements", "open",
  /// "estimated"}.
  std::string explanations_json();
  /// A picture of error over bound, SVG.
  std::string heat_map();
  /// Writes problem, answers and contract as one case file. Throws BadInput; also for a case that
  /// was read from one.
  void save(const std::string& path) const;

 private:
  void find();
  void require_unchanged() const;
  oracle::ErrorField field() const;
  std::vector<oracle::GradientField> gradients() const;

  Subject subject_;
  std::string contract_text_;
  oracle::CheckOptions options_;
  oracle::Contract contract_;
  std::uint64_t fingerprint_ = 0;
  std::mutex mutex_;  // taken without the interpreter's lock, guards what follows
  oracle::CaseOutcome outcome_;
};

}  // namespace ringproof::python
