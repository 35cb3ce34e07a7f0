// A chapter's program prints in parts, so that the text can quote each where it is discussed.
//   tutorial-03             every part in order, figures excepted
//   tutorial-03 schedule    one part
//   tutorial-03 svg         a figure: parts whose names begin with "svg" print SVG
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

namespace ringproof::tutorials {

struct Part {
  std::string name;
  void (*print)();
};

inline bool is_figure(const Part& part) { return part.name.starts_with("svg"); }

/// The whole of a program's main(); returns its exit status.
inline int run_parts(int argc, char** argv, const std::vector<Part>& parts) {
  const std::string wanted = argc > 1 ? argv[1] : "";
  bool found = false;
  for (const Part& part : parts) {
    if (wanted.empty() ? is_figure(part) : part.name != wanted) continue;
    if (wanted.empty()) fmt::print("{}== {}\n", found ? "\n" : "", part.name);
    part.print();
    found = true;
  }
  if (found && argc <= 2) return 0;
  fmt::print(stderr, "usage: {} [PART], where PART is one of", argv[0]);
  for (const Part& part : parts) fmt::print(stderr, " {}", part.name);
  fmt::print(stderr, "\n");
  return 2;
}

}  // namespace ringproof::tutorials
