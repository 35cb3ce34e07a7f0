// The scalar tier from an installed package: headers alone.
#include "reference/online_softmax.hpp"

int main() { return 0; }
