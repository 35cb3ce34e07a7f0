// Exercise 05: what a rank holds, and when its transfers hide. Everything between the marks is
// yours. The first answer is compared with a ring that counts its numbers while it runs, the second
// with the times of the two block sizes around it.
#include "tutorials/support/check.hpp"
#include "tutorials/support/counted.hpp"

using ringproof::tutorials::Check;
using ringproof::tutorials::measure;

/// Numbers a rank needs for b rows of d components beside the scores: its queries, the states of
/// its rows, and its blocks. `keeps_own`: it keeps its own block all the time.
long numbers_of_a_rank(long b, long d, bool keeps_own) {
  // [answer]
  //? // Your turn.
  //? return 0;
  const long queries = b * d, states = b * (d + 2), block = 2 * b * d;
  return queries + states + (keeps_own ? 3 : 2) * block;
  // [/answer]
}

/// The smallest number of rows from which the transfer of a block takes no longer than the work on
/// it. `operations` and `bytes` are those of a microsecond, `width` the bytes of a number.
long smallest_block(long operations, long bytes, long width, long heads, long heads_of_keys) {
  // [answer]
  //? // Your turn. Round up: a block has whole rows.
  //? return 1;
  const long above = width * operations * heads_of_keys, below = 2 * bytes * heads;
  return (above + below - 1) / below;
  // [/answer]
}

int main() {
  Check check("05");
  for (const bool keeps : {false, true}) {
    for (const long b : {1, 4, 12}) {
      for (const long d : {2, 8}) {
        const long more = measure(6, b, d, keeps).most_alive - measure(5, b, d, keeps).most_alive;
        check.equal(fmt::format("numbers of a rank: {} rows of {}, own block {}", b, d,
                                keeps ? "kept" : "let go"),
                    numbers_of_a_rank(b, d, keeps), more);
      }
    }
  }

  for (const long operations : {1000, 70000, 1000000}) {
    for (const long bytes : {10000, 450000}) {
      for (const long width : {2, 4}) {
        for (const long kv : {1, 2, 8}) {
          const long heads = 8, d = 64;
          const long rows = smallest_block(operations, bytes, width, heads, kv);
          const auto hides = [&](long b) {  // both times, multiplied by both rates
            return 4 * heads * b * b * d * bytes >= 2 * kv * b * d * width * operations;
          };
          const std::string where = fmt::format(
              "{} operations and {} bytes a microsecond, {} bytes a number, {} of {} heads",
              operations, bytes, width, kv, heads);
          check.holds(where + ": at that size the transfer hides", rows > 0 && hides(rows));
          check.holds(where + ": a row less, and it does not", rows <= 1 || !hides(rows - 1));
        }
      }
    }
  }
  return check.finish();
}
