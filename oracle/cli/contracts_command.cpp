// `ringproof contracts [NAME]`: the presets, or one contract expanded, with its hash.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "oracle/cli/arguments.hpp"
#include "oracle/cli/commands.hpp"
#include "oracle/contract/contract.hpp"

namespace ringproof::oracle::cli {

namespace {

int run(const std::string& named) {
  if (named.empty()) {
    for (const std::string& preset : preset_names()) {
      fmt::print("{:<18} {}\n", preset, contract_hash(preset));
    }
    return 0;
  }
  const std::string text = named.starts_with('@') ? small_file(named.substr(1)) : named;
  const std::string json = expanded_json(text), hash = contract_hash(text);
  fmt::print("{}\n{}\n", json, hash);
  return 0;
}

}  // namespace

void add_contracts(CLI::App& program, Command& chosen) {
  auto name = std::make_shared<std::string>();
  CLI::App& app = *program.add_subcommand("contracts", "list the presets, or expand one contract");
  app.add_option("NAME", *name, "a name, JSON text, or @FILE");
  app.callback([name, &chosen] { chosen = [name] { return run(*name); }; });
}

}  // namespace ringproof::oracle::cli
