// The document's worked example: one query, four keys that arrive as two blocks, the larger score
// in the second. The reference computes it twice, in binary64 and on intervals; a figure of the
// document counts as certified if every number of the interval rounds to it.
#pragma once

#include <string>
#include <vector>

namespace ringproof::demo {

/// One figure that the document prints.
struct Figure {
  std::string step;     // where the document prints it
  std::string what;     // which quantity it is
  std::string printed;  // its digits there
  double computed = 0;  // by reference/ in binary64
  std::string exact;    // by reference/ on intervals: 24 digits to which both ends round
  bool certified = false;
};

std::vector<Figure> worked_example();

}  // namespace ringproof::demo
