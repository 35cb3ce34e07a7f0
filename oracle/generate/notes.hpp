// What the flags of generated cases mean: notes.json, the one copy of these sentences. Families and
// semantics name the faults they are chosen against; faults name the projects where they were seen.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "oracle/generate/recipe.hpp"

namespace ringproof::oracle {

/// notes.json, embedded when the project is configured.
extern const std::string_view notes_text;

const nlohmann::json& notes();

/// Flags of a case: its family, its semantics, and the faults that the two are chosen against.
std::vector<std::string> flags_of(const Recipe&);

/// For each flag of the cases what it means and, for faults, where they were seen.
nlohmann::json notes_of(const std::vector<std::string>& flags);

}  // namespace ringproof::oracle
