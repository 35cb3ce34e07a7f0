// tutorial-09: how wrong may a right answer be? The document's worked example, judged: what each
// number format costs, the bound as a sum of named parts, the number at which the verdict flips,
// and what a bound can no longer refuse.
#include "tutorials/09_how_wrong/parts_of_bound.hpp"
#include "tutorials/09_how_wrong/worked_example.hpp"
#include "tutorials/support/parts.hpp"

int main(int argc, char** argv) {
  using namespace ringproof::tutorials;
  return run_parts(argc, argv,
                   {{"answers", print_answers},
                    {"orders", print_orders},
                    {"formats", print_formats},
                    {"cast", print_cast},
                    {"hand", print_hand},
                    {"parts", print_parts},
                    {"verdicts", print_verdicts},
                    {"edges", print_edges},
                    {"flip", print_flip},
                    {"gain", print_gain},
                    {"undecided", print_undecided},
                    {"tolerance", print_tolerance},
                    {"svg", print_figure}});
}
