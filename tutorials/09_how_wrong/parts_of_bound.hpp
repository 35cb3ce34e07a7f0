// From unit roundoff to bound: the parts of the program that compute, and nothing is judged yet.
#pragma once

namespace ringproof::tutorials {

void print_formats();
void print_cast();
void print_hand();
void print_parts();

}  // namespace ringproof::tutorials
