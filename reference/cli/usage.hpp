// Choices on a command line, and what is said of one that is not to be run: the same in the
// programs of all tiers.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

namespace ringproof::reference {

/// What a program prints in place of a run: help, or what is wrong with its command line.
struct Usage {
  int status = 0;  // 0 help, 2 wrong usage
  std::string text;
};

/// Complaints begin with the name of the program, which is the app's.
Usage usage_of(const CLI::App& app, const CLI::ParseError& error);

/// Prints help to standard output and complaints to standard error. Returns the exit status.
int print(const Usage& usage);

/// An option that takes one of a few words; its help and its complaint list them.
template <class Choice>
void add_choice(CLI::App& app, const std::string& option, Choice& value, const std::string& help,
                const std::vector<std::pair<std::string, Choice>>& choices) {
  std::string words;
  for (const auto& [word, choice] : choices) words += (words.empty() ? "" : ", ") + word;
  app.add_option_function<std::string>(
         option,
         [option, choices, words, &value](const std::string& given) {
           for (const auto& [word, choice] : choices) {
             if (word != given) continue;
             value = choice;
             return;
           }
           throw CLI::ValidationError(option, "\"" + given + "\" is none of " + words);
         },
         help + ": " + words)
      ->type_name("WORD");
}

}  // namespace ringproof::reference
