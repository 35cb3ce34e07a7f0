// The check of an exercise: counts what is as it should be, and prints what is not. Numbers are
// compared for equality, never within a tolerance: the exercises are made so that the arithmetic is
// exact (exact.hpp) or on integers.
//
//   Check check("03");
//   check.equal("blocks sent by a rank", sent, ranks - 1);
//   return check.finish();    // 0 if everything was right, 1 if not
#pragma once

#include <fmt/format.h>

#include <string>

namespace ringproof::tutorials {

class Check {
 public:
  /// `number` is the chapter's, two digits.
  explicit Check(std::string number) : number_(std::move(number)) {}

  template <class T>
  void equal(const std::string& what, const T& found, const T& expected) {
    ++made_;
    if (found == expected) return;
    if (++failed_ <= kShown) fmt::print("{}: {}, expected {}\n", what, found, expected);
  }

  void holds(const std::string& what, bool condition) {
    ++made_;
    if (condition) return;
    if (++failed_ <= kShown) fmt::print("{}: no\n", what);
  }

  /// The last line, and the exit status of the program.
  int finish() const {
    if (failed_ > 0) {
      fmt::print("exercise {}: {} of {} checks fail\n", number_, failed_, made_);
      return 1;
    }
    fmt::print("exercise {}: all {} checks pass\n", number_, made_);
    return 0;
  }

 private:
  static constexpr int kShown = 8;  // more lines than that help nobody
  std::string number_;
  int made_ = 0, failed_ = 0;
};

}  // namespace ringproof::tutorials
