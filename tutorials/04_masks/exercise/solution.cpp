// Exercise 04: deal the rows in a zig-zag. Everything between the marks is yours; the rest counts
// what your layout gives to whom under a causal mask.
#include <algorithm>
#include <vector>

#include "tutorials/support/check.hpp"

using ringproof::tutorials::Check;

/// The rank that owns a row, of `rows` rows on `ranks` ranks; `rows` is a multiple of 2 * ranks.
int owner(int row, int rows, int ranks) {
  // [answer]
  //? // Your turn. This is the contiguous layout, in which the last rank works most.
  //? return row / (rows / ranks);
  const int chunk = row / (rows / (2 * ranks));
  return chunk < ranks ? chunk : 2 * ranks - 1 - chunk;
  // [/answer]
}

int main() {
  Check check("04");
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (const int c : {1, 2, 5}) {  // rows of a chunk
      const int rows = 2 * ranks * c;
      // pairs[r * ranks + s]: visible pairs of rank r's queries and block s
      std::vector<int> pairs(ranks * ranks, 0), owned(ranks, 0);
      bool all_known = true;
      for (int i = 0; i < rows; ++i) {
        const int r = owner(i, rows, ranks);
        all_known = all_known && r >= 0 && r < ranks;
        if (!all_known) break;
        ++owned[r];
        for (int j = 0; j <= i; ++j) ++pairs[r * ranks + owner(j, rows, ranks)];
      }
      const std::string where = fmt::format("{} rows on {} ranks", rows, ranks);
      check.holds(where + ": every row has an owner among them", all_known);
      if (!all_known) continue;
      for (int r = 0; r < ranks; ++r) {
        check.equal(fmt::format("{}: rows of rank {}", where, r), owned[r], 2 * c);
        for (int s = 0; s < ranks; ++s) {
          const int expected = r == s ? 2 * c * c + c : 2 * c * c;  // (19) of docs/math.md
          check.equal(fmt::format("{}: pairs of rank {} with block {}", where, r, s),
                      pairs[r * ranks + s], expected);
        }
      }
    }
  }
  return check.finish();
}
