// The reference tier as a kernel under the suite: `ringproof suite --so` opens it like anybody's.
#include "tests/suite/reference_candidate.hpp"

using namespace ringproof;

extern "C" RINGPROOF_API int ringproof_candidate_v1(const ringproof_problem* problem,
                                                    ringproof_answer* answer) {
  if (suite::dtype_of(problem->q.dtype) == oracle::DType::f64) {
    suite::Call<double>(*problem).answer(*answer);
  } else {
    suite::Call<float>(*problem).answer(*answer);
  }
  return 0;
}
