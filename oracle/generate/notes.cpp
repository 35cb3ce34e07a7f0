#include "oracle/generate/notes.hpp"

#include <set>
#include <stdexcept>

namespace ringproof::oracle {

const nlohmann::json& notes() {
  static const nlohmann::json kNotes = nlohmann::json::parse(notes_text);
  return kNotes;
}

std::vector<std::string> flags_of(const Recipe& recipe) {
  const std::string family(recipe.family->name), semantics(recipe.semantics);
  std::set<std::string> faults;
  for (const nlohmann::json& note :
       {notes().at("families").at(family), notes().at("semantics").at(semantics)}) {
    for (const auto& fault : note.at("against")) faults.insert(fault.get<std::string>());
  }
  std::vector<std::string> flags{"family:" + family, "semantics:" + semantics};
  flags.insert(flags.end(), faults.begin(), faults.end());
  return flags;
}

nlohmann::json notes_of(const std::vector<std::string>& flags) {
  nlohmann::json result = nlohmann::json::object();
  for (const std::string& flag : flags) {
    const std::size_t colon = flag.find(':');
    const std::string name = colon == std::string::npos ? flag : flag.substr(colon + 1);
    const char* part = flag.starts_with("family:")      ? "families"
                       : flag.starts_with("semantics:") ? "semantics"
                                                        : "faults";
    result[flag] = notes().at(part).at(name);
  }
  return result;
}

}  // namespace ringproof::oracle
