#include "oracle/cli/arguments.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>

#include "oracle/case/error.hpp"
#include "oracle/case/mapped_file.hpp"
#include "oracle/case/words.hpp"
#include "oracle/cli/progress_bar.hpp"

namespace ringproof::oracle::cli {

namespace {

constexpr unsigned kLeastBits = 64, kMostPrecisionBits = 65536;
constexpr double kLongestBudget = 1e6;
constexpr std::size_t kLargestContract = 1 << 20;

AnswerKind answer_kind(const std::string& option, const std::string& word) {
  for (const AnswerKind kind : {AnswerKind::out, AnswerKind::lse, AnswerKind::dq, AnswerKind::dk,
                                AnswerKind::dv, AnswerKind::dbias, AnswerKind::dsinks}) {
    if (word == name(kind)) return kind;
  }
  throw BadInput(option + ": \"" + word + "\" is no answer (out, lse, dq, dk, dv, dbias, dsinks)");
}

std::vector<AnswerKind> answer_kinds(const std::string& option, const std::string& words) {
  std::vector<AnswerKind> kinds;
  for (std::size_t first = 0; !words.empty() && first <= words.size();) {
    const std::size_t comma = std::min(words.find(',', first), words.size());
    kinds.push_back(answer_kind(option, words.substr(first, comma - first)));
    first = comma + 1;
  }
  return kinds;
}

/// The file, or the case files in a folder, by name.
std::vector<std::string> files_of(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path};
  std::vector<std::string> files;
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() == ".safetensors") files.push_back(at->path().string());
  }
  if (error) throw BadInput(path + ": " + error.message());
  if (files.empty()) throw BadInput(path + ": holds no case file (*.safetensors)");
  std::sort(files.begin(), files.end());
  return files;
}

/// "90", "90s", "1.5m" or "1h" in seconds.
double seconds(const std::string& text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  const std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  const double factor = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  if (error != std::errc() || factor == 0 || !(number > 0) || !(number < kLongestBudget)) {
    throw BadInput("--budget: \"" + text + "\" is no time (10, 10s, 5m, 1h)");
  }
  return number * factor;
}

}  // namespace

CLI::Validator plain_number(const char* what, bool whole) {
  return {[what, whole](std::string& text) {
            double number = 0;
            std::uint64_t digits = 0;
            const char *begin = text.data(), *end = begin + text.size();
            const auto [stop, error] =
                whole ? std::from_chars(begin, end, digits) : std::from_chars(begin, end, number);
            const bool right = error == std::errc() && stop == end &&
                               (whole || (std::isfinite(number) && number > 0));
            return right ? std::string() : "\"" + text + "\" is no " + what;
          },
          "", what};
}

CLI::Validator not_empty() {
  return {[](std::string& text) { return text.empty() ? "names nothing" : std::string(); }, ""};
}

std::string small_file(const std::string& path) {
  const MappedFile file(path);
  if (file.bytes().size() > kLargestContract) {
    throw BadInput(path + ": larger than any contract (" + std::to_string(kLargestContract) +
                   " bytes)");
  }
  const auto bytes = file.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void CaseArguments::add_to(CLI::App& app) {
  app.add_option("CASE", files, "case files (safetensors)");
  app.add_option_function<std::vector<std::string>>(
         "--shards",
         [this](const std::vector<std::string>& more) {
           joined = true;
           for (const std::string& file : more) {
             if (!file.empty()) shards.push_back(file);
           }
         },
         "the files are ranks of one problem")
      ->expected(0, CLI::detail::expected_max_vector_size)
      ->trigger_on_parse(false)
      ->type_name("F...");
  app.add_option("--contract", contract, "contract: a name, JSON text, or @FILE")->type_name("C");
  app.add_option("--spec", spec, "spec file in place of the one in the case")->type_name("F");
  app.add_option("--problem", problem, "file that holds the problem of the answer")->type_name("P");
}

std::vector<std::vector<std::string>> CaseArguments::cases() const {
  std::vector<std::string> all = files;
  all.insert(all.end(), shards.begin(), shards.end());
  if (all.empty()) throw BadInput("no case file is named");
  if (joined) return {all};
  std::vector<std::vector<std::string>> cases;
  for (const std::string& file : all) {
    for (std::string& one : files_of(file)) cases.push_back({std::move(one)});
  }
  return cases;
}

std::vector<std::string> CaseArguments::only_case(const std::string& verb) const {
  const auto all = cases();
  if (all.size() == 1) return all.front();
  throw BadInput(verb + " takes one case (several files need --shards)");
}

Case CaseArguments::read(const std::vector<std::string>& paths) const {
  const CaseOptions options{.spec_file = spec, .problem_file = problem};
  return joined ? read_shards(paths, options) : read_case(paths.front(), options);
}

bool CaseArguments::has_contract(const Case& input) const {
  return contract.has_value() || !input.problem.spec.contract.empty();
}

Contract CaseArguments::contract_of(const Case& input) const {
  if (!has_contract(input)) {
    throw BadInput(input.name + ": no contract is given (spec key \"contract\" or --contract)");
  }
  std::string text = contract.value_or(input.problem.spec.contract);
  if (contract && text.starts_with('@')) text = small_file(text.substr(1));
  try {
    return read_contract(text, input.problem.spec);
  } catch (const BadInput& error) {
    throw BadInput(input.name + ": " + error.what());
  }
}

void TruthArguments::add_to(CLI::App& app) {
  app.add_option("--precision", precision, "fast, tight, or binary digits of interval arithmetic")
      ->capture_default_str();
  app.add_option("--threads", threads, "threads (default: one a processor)")
      ->check(CLI::Range(1, kMostThreads));
}

Precision TruthArguments::fast_or_tight() const {
  return precision == "tight" ? Precision::tight : Precision::fast;
}

unsigned TruthArguments::bits() const {
  if (precision == "fast" || precision == "tight") return 0;
  unsigned bits = 0;
  const char* end = precision.data() + precision.size();
  const auto [stop, error] = std::from_chars(precision.data(), end, bits);
  if (error != std::errc() || stop != end || bits < kLeastBits || bits > kMostPrecisionBits) {
    throw BadInput("--precision: \"" + precision + "\" is neither fast, tight nor a number from " +
                   std::to_string(kLeastBits) + " to " + std::to_string(kMostPrecisionBits));
  }
  return bits;
}

WalkOptions TruthArguments::walk() const {
  return {.precision = fast_or_tight(), .threads = threads, .progress = progress_bar()};
}

void CheckArguments::add_to(CLI::App& app) {
  app.add_option("--only", only, "answers to judge, separated by commas")
      ->check(not_empty())
      ->type_name("out,lse,...");
  app.add_option("--require", require, "answers that must be there")
      ->check(not_empty())
      ->type_name("out,lse,...");
  app.add_option("--rows", rows, "judge K sampled query rows")
      ->check(plain_number("positive number", false))
      ->type_name("K");
  app.add_flag("--edges-first", edges_first, "K rows in the order of --budget, not a sample");
  app.add_option_function<std::string>(
         "--budget", [this](const std::string& text) { budget = seconds(text); },
         "judge rows until this time is spent, edges of tiles, documents and ranks first")
      ->type_name("T[s|m|h]");
  app.add_option("--seed", seed, "seed of the sample")
      ->check(plain_number(kSeed, true))
      ->type_name("S")
      ->capture_default_str();
  app.add_option("--power", power, "a gain error of G must be detectable")
      ->check(plain_number("positive number", false))
      ->type_name("G");
  app.add_flag("--probabilistic", probabilistic, "also the level that can say SUSPECT");
}

CheckArguments CheckArguments::with_rows(std::int64_t rows_judged) const {
  CheckArguments same = *this;
  same.budget.reset();
  same.rows = rows_judged;
  same.edges_first = true;
  return same;
}

CheckOptions CheckArguments::options(const TruthArguments& truth) const {
  if (budget && rows) throw BadInput("--budget and --rows exclude each other");
  if (edges_first && !rows) throw BadInput("--edges-first needs --rows");
  CheckOptions options;
  options.edges_first = edges_first;
  options.budget = budget;
  options.only = answer_kinds("--only", only);
  options.require = answer_kinds("--require", require);
  options.rows = rows;
  options.seed = seed;
  options.power = power;
  options.probabilistic = probabilistic;
  options.bits = truth.bits();
  options.walk = truth.walk();
  return options;
}

std::string shell_word(const std::string& word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("_-+./,:=@%").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return word;
  if (const std::string shown = printable(word); shown != word) {
    std::string quoted = "$'";  // its escapes say which bytes these are
    for (const char c : word) {
      const std::string one = printable(std::string_view(&c, 1));
      const bool special = c == '\'' || c == '\\';
      const auto byte = static_cast<unsigned char>(c);
      char hex[8];
      std::snprintf(hex, sizeof hex, "\\x%02x", byte);
      quoted += special ? std::string{'\\', c} : one.size() > 1 || byte >= 0x80 ? hex : one;
    }
    return quoted + "'";
  }
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string repeat_command(const std::string& verb, const std::vector<std::string>& files,
                           const CaseArguments& from, const TruthArguments& truth,
                           const CheckArguments& check) {
  std::string command = "ringproof " + verb;
  const auto add = [&](const std::string& option, const std::string& value) {
    command += " " + option + " " + shell_word(value);
  };
  for (const std::string& file : files) command += " " + shell_word(file);
  if (from.joined) command += " --shards";
  if (from.contract) add("--contract", *from.contract);
  if (from.spec) add("--spec", *from.spec);
  if (from.problem) add("--problem", *from.problem);
  if (!check.only.empty()) add("--only", check.only);
  if (!check.require.empty()) add("--require", check.require);
  if (check.rows) {
    add("--rows", std::to_string(*check.rows));
    if (check.edges_first) command += " --edges-first";
    add("--seed", std::to_string(check.seed));
  }
  if (check.power) {
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, *check.power).ptr;
    add("--power", std::string(text, end));
  }
  if (check.probabilistic) command += " --probabilistic";
  if (truth.precision != "fast") add("--precision", truth.precision);
  return command;
}

}  // namespace ringproof::oracle::cli
