// The example of the chapter, answers to it, and the parts of the program that judge them.
#pragma once

#include "tutorials/09_how_wrong/one_query.hpp"

namespace ringproof::tutorials {

// [example]
inline const std::vector<double> kScores{1, 2, 3, 0};
inline const std::vector<double> kValues{1, 2, 3, 4};
// [/example]

/// The example as the judge sees it.
const OneQuery& example();
/// Its exact answer, to the nearest binary64 number.
double exact();

/// Attention of the example in binary32, with the weights that meet the values rounded to `p` and
/// the answer to `out`.
double kernel(oracle::DType p, oracle::DType out);

/// An answer, and where it comes from.
struct Candidate {
  std::string name;
  double value;
};
std::vector<Candidate> candidates();

/// The neighbour of a number of the type.
double next_up(oracle::DType, double);
double next_down(oracle::DType, double);

void print_answers();
void print_orders();
void print_verdicts();
void print_edges();
void print_flip();
void print_gain();
void print_undecided();
void print_tolerance();
void print_figure();

}  // namespace ringproof::tutorials
