// Arguments that several commands share, and what they mean to the libraries.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "oracle/judge/check.hpp"

namespace ringproof::oracle::cli {

/// Where cases come from.
struct CaseArguments {
  std::vector<std::string> files;
  std::vector<std::string> shards;  // after --shards, in its place
  bool joined = false;              // --shards was given: all files are ranks of one problem
  std::optional<std::string> spec, problem, contract;

  void add_to(CLI::App&);
  /// One entry a case: its files.
  std::vector<std::vector<std::string>> cases() const;
  /// The files of the only case of a command that takes one. Throws BadInput for more.
  std::vector<std::string> only_case(const std::string& verb) const;
  Case read(const std::vector<std::string>& files) const;
  /// The contract of --contract (a name, JSON text, or @FILE), else the spec's. Throws BadInput.
  Contract contract_of(const Case&) const;
  bool has_contract(const Case&) const;
};

/// --precision fast|tight|BITS and --threads N.
struct TruthArguments {
  std::string precision = "fast";
  int threads = 0;

  void add_to(CLI::App&);
  Precision fast_or_tight() const;
  unsigned bits() const;  // 0: not interval arithmetic
  WalkOptions walk() const;
};

/// What is judged, and how hard.
struct CheckArguments {
  std::string only, require;  // words separated by commas
  std::optional<std::int64_t> rows;
  bool edges_first = false;
  std::optional<double> budget;  // seconds
  std::uint64_t seed = 0;
  std::optional<double> power;
  bool probabilistic = false;

  void add_to(CLI::App&);
  CheckOptions options(const TruthArguments&) const;
  /// The same for exactly so many rows in the order of --budget.
  CheckArguments with_rows(std::int64_t rows_judged) const;
};

/// Accepts a whole number without a sign, or a positive one; CLI11's own checks name the limits of
/// their types in messages and let "nan" and "-1" pass.
CLI::Validator plain_number(const char* what, bool whole);
inline constexpr const char* kSeed = "seed (0, 1, 2, ...)";

/// Refuses the empty word, which a script passes whose variable is not set: it would choose nothing
/// and say so nowhere.
CLI::Validator not_empty();

/// A word as a POSIX shell reads it back.
std::string shell_word(const std::string&);

/// The command line that judges the same again: files, contract, spec, rows, precision.
std::string repeat_command(const std::string& verb, const std::vector<std::string>& files,
                           const CaseArguments&, const TruthArguments&, const CheckArguments&);

/// The text of a small file, for --contract @FILE. Throws BadInput naming it.
std::string small_file(const std::string& path);

}  // namespace ringproof::oracle::cli
