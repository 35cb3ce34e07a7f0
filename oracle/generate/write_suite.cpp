#include "oracle/generate/write_suite.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>

#include "oracle/case/error.hpp"
#include "oracle/case/mapped_file.hpp"
#include "oracle/case/sha256.hpp"
#include "oracle/generate/certified_kills.hpp"
#include "oracle/generate/gradient_kills.hpp"
#include "oracle/generate/notes.hpp"
#include "oracle/generate/power_of_case.hpp"
#include "oracle/generate/suite.hpp"

namespace ringproof::oracle {
namespace {

namespace fs = std::filesystem;

/// Of each class, so that a suite is certified in the time in which it is judged.
constexpr int kFormsPerClass = 3;
/// A form costs a few passes over the keys, so on long rows one of each class is enough, and on the
/// longest the power says what there is to say: missing keys and gains.
constexpr std::int64_t kLongRow = 8192, kLongestCertified = 32768;

/// A folder beside the wanted one; it is removed again unless it was renamed.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& wanted) : wanted_(wanted) {
    std::error_code error;
    if (fs::exists(wanted_, error) && !(fs::is_directory(wanted_) && fs::is_empty(wanted_))) {
      throw BadInput(wanted + ": exists already, and is not an empty folder");
    }
    std::string name = wanted;
    while (name.size() > 1 && name.ends_with('/')) name.pop_back();
    name += ".XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw BadInput(wanted + ": no folder can be made here");
    path_ = name;
    fs::permissions(path_, fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec |
                               fs::perms::others_read | fs::perms::others_exec);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }

  const fs::path& path() const { return path_; }
  void finish() {
    std::error_code error;
    fs::rename(path_, wanted_, error);
    if (error) throw BadInput(wanted_.string() + ": " + error.message());
    path_.clear();
  }

 private:
  fs::path wanted_, path_;
};

void write_text(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text << '\n';
  file.close();
  if (!file) throw BadInput(path.string() + ": cannot be written");
}

nlohmann::json entry_of(const GeneratedCase& generated, const std::string& path) {
  const MappedFile file(path);
  return {{"file", generated.recipe.name + ".safetensors"},
          {"sha256", sha256_hex(file.bytes())},
          {"flags", generated.about.at("flags")}};
}

}  // namespace

CertifiedCase case_with_power(const Recipe& recipe, const SuiteOptions& options) {
  CertifiedCase result{generate(recipe, options.seed), {}, {}};
  nlohmann::json& about = result.generated.about;
  about["flags"] = flags_of(recipe);
  if (!options.certify) return result;
  WalkOptions walk = options.walk;
  walk.progress = nullptr;
  for (const std::string& contract : contracts_of(recipe)) {
    const CasePower power = power_of(result.generated, contract, walk);
    if (!power.refusal.empty()) {
      result.refusal = recipe.name + ": " + contract + ": " + power.refusal;
      return result;
    }
    if (!power.gradient_refusal.empty()) {
      Recipe forward = recipe;
      forward.gradients = false;
      result = case_with_power(forward, options);
      result.without_gradients = recipe.name + ": " + contract + ": " + power.gradient_refusal;
      return result;
    }
    about["power"][contract] = to_json(power);
  }
  return result;
}

CertifiedCase certified_case(const Recipe& recipe, const SuiteOptions& options) {
  CertifiedCase result = case_with_power(recipe, options);
  if (!options.certify || !result.refusal.empty() || recipe.keys > kLongestCertified) return result;
  const int forms = recipe.keys >= kLongRow ? 1 : kFormsPerClass;
  // The loosest contract: what it refuses, the stricter ones refuse, too.
  const std::string loosest = contracts_of(recipe).back();
  const Contract contract = read_contract(loosest, recipe.spec);
  std::vector<FormOutcome> outcomes =
      certified_kills(result.generated, contract, first_forms(forms));
  for (FormOutcome& one : gradient_kills(result.generated, contract, first_forms(1))) {
    outcomes.push_back(std::move(one));
  }
  result.generated.about["kills"][loosest] = to_json(outcomes);
  return result;
}

SuiteSummary write_suite(std::string_view name, const std::string& folder,
                         const SuiteOptions& options) {
  const std::vector<Recipe> recipes = suite(name);
  TemporaryFolder temporary(folder);
  SuiteSummary summary;
  nlohmann::json cases = nlohmann::json::array();
  std::set<std::string> flags;
  for (const Recipe& recipe : recipes) {
    const CertifiedCase certified = certified_case(recipe, options);
    if (certified.refusal.empty()) {
      const std::string path = temporary.path() / (recipe.name + ".safetensors");
      certified.generated.write(path);
      cases.push_back(entry_of(certified.generated, path));
      for (const auto& flag : cases.back().at("flags")) flags.insert(flag.get<std::string>());
      ++summary.written;
      if (!certified.without_gradients.empty()) {
        summary.without_gradients.push_back(certified.without_gradients);
      }
    } else {
      summary.refused.push_back(certified.refusal);
    }
    if (options.walk.progress) {
      const auto done = summary.written + static_cast<std::int64_t>(summary.refused.size());
      options.walk.progress(done, static_cast<std::int64_t>(recipes.size()));
    }
  }
  const nlohmann::json manifest{{"suite", name},
                                {"seed", options.seed},
                                {"cases", cases},
                                {"refused", summary.refused},
                                {"without_gradients", summary.without_gradients},
                                {"notes", notes_of({flags.begin(), flags.end()})}};
  write_text(temporary.path() / "suite.json", manifest.dump(1));
  temporary.finish();
  return summary;
}

}  // namespace ringproof::oracle
