// `ringproof audit --rule RULE [CASE...]`: judges a test instead of a kernel. Which known mistakes
// would the tolerance rule accept on these problems, or on the inputs that belong to the rule?
#include <fmt/format.h>

#include <memory>

#include "oracle/audit/audit.hpp"
#include "oracle/case/error.hpp"
#include "oracle/case/json_text.hpp"
#include "oracle/cli/arguments.hpp"
#include "oracle/cli/commands.hpp"
#include "oracle/generate/suite.hpp"

namespace ringproof::oracle::cli {

namespace {

struct Arguments {
  CaseArguments from;
  std::string rule;
  bool table = false;
  std::uint64_t seed = 1;
  AuditOptions options;
};

/// A rule by name, as JSON text, or in a file.
Rule rule_of(const std::string& text) {
  for (const Rule& rule : public_rules()) {
    if (rule.name == text) return rule;
  }
  if (text.starts_with('@')) {
    return read_rule(parse_json(small_file(text.substr(1)), text.substr(1)), text.substr(1));
  }
  if (text.starts_with('{')) return read_rule(parse_json(text, "--rule"), "--rule");
  std::string names;
  for (const Rule& rule : public_rules()) names += (names.empty() ? "" : ", ") + rule.name;
  throw BadInput("--rule: \"" + text + "\" is neither JSON, @FILE, nor one of " + names);
}

/// The contract of the case, else the first one for its type: it says how answers are stored.
Contract contract_of(const Arguments& arguments, const Case& input) {
  if (arguments.from.has_contract(input)) return arguments.from.contract_of(input);
  return read_contract(contracts_of(input.problem.q.dtype).front(), input.problem.spec);
}

void print_report(const Arguments& arguments, const Case& input, const Rule& rule) {
  const Contract contract = contract_of(arguments, input);
  AuditReport report = audit(input, contract, rule, arguments.options);
  audit_gradients(input, contract, rule, arguments.options, report);
  fmt::print("{}", to_text(report));
}

int run(const Arguments& arguments) {
  const bool own_inputs = arguments.from.files.empty() && arguments.from.shards.empty();
  if (arguments.table) {
    if (!own_inputs || !arguments.rule.empty()) {
      throw BadInput("audit: --table is of every public rule on its own inputs, of no case");
    }
    fmt::print("{}", audit_table(arguments.options));
    return 0;
  }
  if (arguments.rule.empty()) throw BadInput("audit: --rule names no rule");
  const Rule rule = rule_of(arguments.rule);
  if (own_inputs) {
    const GeneratedCase inputs = rule_inputs(rule, arguments.seed);
    const Case input = inputs.as_case();
    print_report(arguments, input, rule);
    return 0;
  }
  for (const std::vector<std::string>& files : arguments.from.cases()) {
    const Case input = arguments.from.read(files);
    fmt::print("{}: ", input.name);
    print_report(arguments, input, rule);
  }
  return 0;
}

}  // namespace

void add_audit(CLI::App& program, Command& chosen) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App& app = *program.add_subcommand("audit", "which mistakes does a tolerance rule accept");
  arguments->from.add_to(app);
  app.add_option("--rule", arguments->rule, "a public rule by name, JSON text, or @FILE")
      ->type_name("RULE");
  app.add_flag("--table", arguments->table, "the public rules, each on its own inputs");
  app.add_option("--seed", arguments->seed, "seed of the rule's own inputs")
      ->check(plain_number(kSeed, true))
      ->capture_default_str();
  app.add_option("--rows", arguments->options.rows, "query rows of each head")
      ->check(plain_number("positive number", false))
      ->capture_default_str();
  app.add_option("--forms", arguments->options.forms_per_class, "forms of each class")
      ->check(plain_number("positive number", false))
      ->capture_default_str();
  app.add_option("--threads", arguments->options.threads, "threads (default: one a processor)")
      ->check(CLI::Range(1, kMostThreads));
  app.callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace ringproof::oracle::cli
