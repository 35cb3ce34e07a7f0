/* The C interface from an installed package: the truth of one key is its value. */
#include <ringproof.h>
#include <stdio.h>

int main(void) {
  const float q[2] = {1, 2}, k[2] = {3, 4}, v[2] = {5, 6}, out[2] = {5, 6};
  const int64_t shape[4] = {1, 1, 1, 2};
  ringproof_problem problem;
  ringproof_answer answer;
  ringproof_result result;
  char message[4096];
  int status;
  ringproof_problem_init(&problem);
  ringproof_answer_init(&answer);
  ringproof_result_init(&result);
  problem.q = ringproof_view(q, RINGPROOF_F32, 4, shape);
  problem.k = ringproof_view(k, RINGPROOF_F32, 4, shape);
  problem.v = ringproof_view(v, RINGPROOF_F32, 4, shape);
  answer.out = ringproof_view(out, RINGPROOF_F32, 4, shape);
  status = ringproof_check(&problem, &answer, "fp32", NULL, &result, message, sizeof message);
  puts(message);
  return status == RINGPROOF_OK ? 0 : 1;
}
