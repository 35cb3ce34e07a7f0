// The functions of the package that judge nothing and hold nothing: truth, fit, audit, contracts.
// Tensors, spec and name are those of a Subject (subject.hpp).
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace ringproof::python {

/// {name: (lo, hi, rounded, undecided)} for out, lse and, where dout or dlse is given, the
/// gradients; canonical axes. `type` is that of the rounding ("BF16"), the LSE's is F32 (F64 with
/// F64). Throws BadInput.
nanobind::dict truth(const nanobind::object& tensors, const std::string& spec,
                     const std::string& type, const nanobind::dict& options,
                     const std::string& name);

/// The text of `ringproof fit`, and its result as JSON:
/// {"verdict", "answers": [{"answer", "deciding": [...]}], "accepting": [...], "explanations"}.
nanobind::tuple fit(const nanobind::object& tensors, const std::string& spec,
                    const std::string& contract, const nanobind::dict& options,
                    const std::string& name);

/// The text of `ringproof audit`, and as JSON {"rule", "rows", "exact", "made_up", "findings"}.
/// `rule`: the name of a public rule or JSON text; with None for tensors on the rule's own inputs.
nanobind::tuple audit(const std::string& rule, const nanobind::object& tensors,
                      const std::string& spec, const std::string& contract, std::int64_t rows,
                      int forms, const nanobind::object& threads, std::uint64_t seed,
                      const std::string& name);

/// The names of the public rules that audit() knows.
nanobind::list public_rule_names();

}  // namespace ringproof::python
