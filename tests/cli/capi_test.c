/* The C interface from C99, compiled with -pedantic -Werror: a problem whose answer is known by
 * hand. Scores are all 0, so the answer is the mean of V and the LSE is ln(number of keys). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "oracle/ringproof.h"

enum { KEYS = 4, QUERIES = 2, DIM = 2 };

static int failures = 0;

static void expect(int condition, const char* what, const char* message) {
  if (condition) return;
  ++failures;
  printf("failed: %s: %s\n", what, message);
}

/* The tensors of one head; values are stored with a stride of two floats to exercise strides. */
struct fixture {
  float q[QUERIES * DIM], k[KEYS * DIM], v[KEYS * DIM * 2], out[QUERIES * DIM], lse[QUERIES];
  int64_t q_shape[4], k_shape[4], v_strides[4], lse_shape[3];
  ringproof_problem problem;
  ringproof_answer answer;
};

static void set_up(struct fixture* f) {
  int j, c, i;
  memset(f, 0, sizeof *f);
  f->q_shape[0] = f->q_shape[1] = f->k_shape[0] = f->k_shape[1] = 1;
  f->q_shape[2] = QUERIES;
  f->k_shape[2] = KEYS;
  f->q_shape[3] = f->k_shape[3] = DIM;
  f->v_strides[0] = f->v_strides[1] = KEYS * DIM * 2;
  f->v_strides[2] = DIM * 2;
  f->v_strides[3] = 2;
  f->lse_shape[0] = f->lse_shape[1] = 1;
  f->lse_shape[2] = QUERIES;
  for (j = 0; j < KEYS; ++j)
    for (c = 0; c < DIM; ++c) f->v[(j * DIM + c) * 2] = (float)(j + 1 + 10 * c);
  for (i = 0; i < QUERIES; ++i) {
    f->out[i * DIM] = 2.5f;
    f->out[i * DIM + 1] = 12.5f;
    f->lse[i] = (float)log(4.0);
  }
  ringproof_problem_init(&f->problem);
  f->problem.q = ringproof_view(f->q, RINGPROOF_F32, 4, f->q_shape);
  f->problem.k = ringproof_view(f->k, RINGPROOF_F32, 4, f->k_shape);
  f->problem.v = ringproof_view(f->v, RINGPROOF_F32, 4, f->k_shape);
  f->problem.v.strides = f->v_strides;
  ringproof_answer_init(&f->answer);
  f->answer.out = ringproof_view(f->out, RINGPROOF_F32, 4, f->q_shape);
  f->answer.lse = ringproof_view(f->lse, RINGPROOF_F32, 3, f->lse_shape);
}

static void check_verdicts(void) {
  struct fixture f;
  ringproof_result result;
  ringproof_options options;
  char message[4096];
  int status;
  set_up(&f);
  ringproof_result_init(&result);
  status = ringproof_check(&f.problem, &f.answer, "fp32", NULL, &result, message, sizeof message);
  expect(status == RINGPROOF_OK, "a right answer is judged", message);
  expect(result.verdict == RINGPROOF_PASS, "a right answer passes", message);
  expect(strncmp(message, "PASS", 4) == 0, "the message is the report", message);
  expect(result.out.judged && result.out.elements == QUERIES * DIM, "elements of out are counted",
         message);
  expect(result.lse.judged && result.lse.elements == QUERIES, "elements of lse are counted",
         message);
  expect(result.gain > 0 && result.gain < 1, "a gain error is detectable", message);
  expect(strcmp(result.contract_hash, "52648d2fd019") == 0, "the contract is named", message);

  f.out[3] = 12.6f;
  ringproof_options_init(&options);
  options.threads = 2;
  options.precision = 200;
  status =
      ringproof_check(&f.problem, &f.answer, "fp32", &options, &result, message, sizeof message);
  expect(status == RINGPROOF_OK && result.verdict == RINGPROOF_FAIL, "a wrong answer fails",
         message);
  expect(result.out.refused == 1 && result.lse.refused == 0, "one element is refused", message);
  expect(result.out.worst.i == 1 && result.out.worst.c == 1, "the worst element is found", message);
  expect(result.out.worst.exact == 12.5, "its exact value is given", message);

  f.answer.out.data = NULL;
  status = ringproof_check(&f.problem, &f.answer, "fp32", NULL, &result, message, sizeof message);
  expect(status == RINGPROOF_OK && result.verdict == RINGPROOF_PASS && !result.out.judged,
         "an absent answer is not judged", message);
  f.answer.lse.data = NULL;
  status = ringproof_check(&f.problem, &f.answer, "fp32", NULL, &result, message, sizeof message);
  expect(status == RINGPROOF_OK && result.verdict == RINGPROOF_SKIPPED, "no answer is skipped",
         message);
}

static void check_bad_input(void) {
  struct fixture f;
  ringproof_result result;
  char message[4096];
  char tiny[8];
  set_up(&f);
  ringproof_result_init(&result);
  expect(ringproof_check(&f.problem, &f.answer, "fp33", NULL, &result, message, sizeof message) ==
                 RINGPROOF_BAD_INPUT &&
             strstr(message, "fp33") != NULL,
         "an unknown contract is named", message);
  expect(ringproof_check(NULL, &f.answer, "fp32", NULL, &result, NULL, 0) == RINGPROOF_BAD_INPUT,
         "a null problem is refused without a message buffer", "");
  expect(ringproof_check(&f.problem, &f.answer, NULL, NULL, &result, tiny, sizeof tiny) ==
                 RINGPROOF_BAD_INPUT &&
             strlen(tiny) == sizeof tiny - 1,
         "a message is cut to its buffer", tiny);
  f.k_shape[3] = DIM + 1;
  expect(ringproof_check(&f.problem, &f.answer, "fp32", NULL, &result, message, sizeof message) ==
                 RINGPROOF_BAD_INPUT &&
             strstr(message, "\"k\"") != NULL,
         "a wrong shape names its tensor", message);
  set_up(&f);
  f.problem.q.dtype.lanes = 4;
  expect(ringproof_check(&f.problem, &f.answer, "fp32", NULL, &result, message, sizeof message) ==
                 RINGPROOF_BAD_INPUT &&
             strstr(message, "lanes 4") != NULL,
         "a vector type is refused", message);
  set_up(&f);
  f.problem.causal = 7;
  expect(ringproof_check(&f.problem, &f.answer, "fp32", NULL, &result, message, sizeof message) ==
             RINGPROOF_BAD_INPUT,
         "an unknown choice is refused", message);
  set_up(&f);
  f.problem.has_scale = 1;
  f.problem.scale = HUGE_VAL;
  expect(ringproof_check(&f.problem, &f.answer, "fp32", NULL, &result, message, sizeof message) ==
             RINGPROOF_BAD_INPUT,
         "an infinite scale is refused", message);
  set_up(&f);
  f.problem.struct_size = 0;
  expect(ringproof_check(&f.problem, &f.answer, "fp32", NULL, &result, message, sizeof message) ==
                 RINGPROOF_BAD_INPUT &&
             strstr(message, "struct_size") != NULL,
         "a struct that was not initialised is refused", message);
}

static void check_truth(void) {
  struct fixture f;
  double lo[QUERIES * DIM], hi[QUERIES * DIM], lse_lo[QUERIES], lse_hi[QUERIES];
  char message[256], hash[13];
  set_up(&f);
  f.problem.lse_base = RINGPROOF_LSE_BASE_2;
  expect(ringproof_truth(&f.problem, NULL, lo, hi, lse_lo, lse_hi, message, sizeof message) ==
             RINGPROOF_OK,
         "the truth is computed", message);
  expect(lo[1] <= 12.5 && 12.5 <= hi[1] && hi[1] <= nextafter(nextafter(lo[1], 13), 13),
         "its interval holds the mean", message);
  expect(lse_lo[0] <= 2.0 && 2.0 <= lse_hi[0], "the LSE of 4 equal keys is 2 in base 2", message);
  expect(ringproof_truth(&f.problem, NULL, NULL, hi, NULL, NULL, message, sizeof message) ==
             RINGPROOF_OK,
         "parts of it may be left out", message);
  expect(ringproof_contract_hash("bf16-flash", hash, message, sizeof message) == RINGPROOF_OK &&
             strcmp(hash, "1fa1df457384") == 0,
         "a contract is named by its hash", message);
  expect(ringproof_contract_hash("bf17", hash, message, sizeof message) == RINGPROOF_BAD_INPUT,
         "an unknown contract has none", message);
  expect(ringproof_abi_version() == RINGPROOF_ABI_VERSION, "library and header agree",
         ringproof_version());
}

/* All weights are 1/4, so dv of every key is the mean over the queries of dout, times QUERIES / 4;
 * q and k are zero, so dq and dk are. */
static void check_gradients(void) {
  struct fixture f;
  ringproof_result result;
  ringproof_gradient_intervals intervals;
  float dout[QUERIES * DIM], dq[QUERIES * DIM], dv[KEYS * DIM];
  double lo[KEYS * DIM], hi[KEYS * DIM];
  char message[4096];
  int i;
  set_up(&f);
  for (i = 0; i < QUERIES * DIM; ++i) {
    dout[i] = (float)(i + 1);
    dq[i] = 0;
  }
  for (i = 0; i < KEYS * DIM; ++i) dv[i] = i % DIM == 0 ? 1.0f : 1.5f;
  f.problem.dout = ringproof_view(dout, RINGPROOF_F32, 4, f.q_shape);
  f.answer.dq = ringproof_view(dq, RINGPROOF_F32, 4, f.q_shape);
  f.answer.dv = ringproof_view(dv, RINGPROOF_F32, 4, f.k_shape);
  ringproof_result_init(&result);
  expect(ringproof_check(&f.problem, &f.answer, "fp32", NULL, &result, message, sizeof message) ==
                 RINGPROOF_OK &&
             result.verdict == RINGPROOF_PASS,
         "right gradients pass", message);
  expect(result.dv.judged && result.dv.elements == KEYS * DIM && !result.dk.judged,
         "elements of dv are counted", message);
  expect(result.dv_gain > 0 && result.dv_gain < 1, "a gain error of dv is detectable", message);
  dv[5] = 1.6f;
  expect(ringproof_check(&f.problem, &f.answer, "fp32", NULL, &result, message, sizeof message) ==
                 RINGPROOF_OK &&
             result.dv.verdict == RINGPROOF_FAIL && result.dv.refused == 1,
         "a wrong gradient fails", message);
  expect(result.dv.worst.i == 2 && result.dv.worst.c == 1, "the key is named", message);
  ringproof_gradient_intervals_init(&intervals);
  intervals.dv_lo = lo;
  intervals.dv_hi = hi;
  expect(ringproof_truth_gradients(&f.problem, NULL, &intervals, message, sizeof message) ==
                 RINGPROOF_OK &&
             lo[1] <= 1.5 && 1.5 <= hi[1],
         "the interval of dv holds it", message);
  f.problem.dout.data = NULL;
  expect(ringproof_truth_gradients(&f.problem, NULL, &intervals, message, sizeof message) ==
             RINGPROOF_BAD_INPUT,
         "gradients need an upstream gradient", message);
}

/* A caller compiled against the first header passes shorter structs. */
static void check_earlier_callers(void) {
  struct fixture f;
  ringproof_result result;
  char message[4096];
  set_up(&f);
  f.problem.struct_size = (uint32_t)offsetof(ringproof_problem, dout);
  f.answer.struct_size = (uint32_t)offsetof(ringproof_answer, dq);
  ringproof_result_init(&result);
  result.struct_size = (uint32_t)offsetof(ringproof_result, dq);
  result.dq.judged = 77;
  expect(ringproof_check(&f.problem, &f.answer, "fp32", NULL, &result, message, sizeof message) ==
                 RINGPROOF_OK &&
             result.verdict == RINGPROOF_PASS,
         "shorter structs are understood", message);
  expect(result.dq.judged == 77, "nothing is written behind a shorter struct", message);
}

int main(void) {
  check_verdicts();
  check_gradients();
  check_earlier_callers();
  check_bad_input();
  check_truth();
  if (failures == 0) puts("all checks of the C interface hold");
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
