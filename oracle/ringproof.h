/* The judge as a C library: one header, C99, no allocation handed over, no exception crosses it.
 *
 *   ringproof_problem problem;
 *   ringproof_answer answer;
 *   ringproof_result result;
 *   char message[4096];
 *   const int64_t shape[4] = {1, 2, 64, 16};
 *   ringproof_problem_init(&problem);
 *   ringproof_answer_init(&answer);
 *   ringproof_result_init(&result);
 *   problem.q = ringproof_view(q, RINGPROOF_F32, 4, shape);    likewise k and v
 *   problem.causal = RINGPROOF_CAUSAL_TOP_LEFT;
 *   answer.out = ringproof_view(out, RINGPROOF_F32, 4, shape);
 *   status = ringproof_check(&problem, &answer, "fp32", NULL, &result, message, sizeof message);
 *   if (status == RINGPROOF_OK) puts(message);    the report, as `ringproof check` prints it
 *
 * Names, shapes, types and meanings are those of case files (docs/formats.md). Every function may
 * be called from several threads at once; memory stays the caller's and is only read, results
 * excepted. */
#ifndef RINGPROOF_H
#define RINGPROOF_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(_WIN32)
#define RINGPROOF_API
#else
#define RINGPROOF_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Grows only when a struct changes other than by fields at its end. A caller compiled against an
 * earlier header of the same version passes shorter structs, and what they lack counts as absent.
 * Added within version 1: upstream gradients and gradients, in problem, answer and result; the
 * probabilistic level; ringproof_truth_gradients(). */
#define RINGPROOF_ABI_VERSION 1u

/* ---- Status of a call ---- */
enum {
  RINGPROOF_OK = 0,
  RINGPROOF_BAD_INPUT = 2, /* what and where: in the message */
  RINGPROOF_OUT_OF_MEMORY = 69,
  RINGPROOF_FAILURE = 70 /* of the judge itself, never of the kernel under test */
};

/* ---- Verdicts, with the exit codes of the program ---- */
enum {
  RINGPROOF_PASS = 0,
  RINGPROOF_FAIL = 1,
  RINGPROOF_UNDECIDED = 3,
  RINGPROOF_SUSPECT = 4,
  RINGPROOF_SKIPPED = 77
};

/* ---- Tensors: DLPack's type codes, strides in elements ---- */
/* Codes: kDLInt 0, kDLFloat 2, kDLBfloat 4, kDLBool 6, kDLFloat8_e4m3fn 10, kDLFloat8_e5m2 12. */
typedef struct ringproof_dtype {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes; /* 1 */
} ringproof_dtype;

enum {
  RINGPROOF_F64 = 0x0240,
  RINGPROOF_F32 = 0x0220,
  RINGPROOF_F16 = 0x0210,
  RINGPROOF_BF16 = 0x0410,
  RINGPROOF_F8_E4M3 = 0x0a08,
  RINGPROOF_F8_E5M2 = 0x0c08,
  RINGPROOF_BOOL = 0x0608,
  RINGPROOF_I32 = 0x0020,
  RINGPROOF_I64 = 0x0040
};

typedef struct ringproof_tensor {
  void* data; /* NULL: the tensor is absent */
  ringproof_dtype dtype;
  int32_t ndim;
  const int64_t* shape;   /* [ndim] */
  const int64_t* strides; /* [ndim], in elements; NULL: C order, the last axis fastest */
} ringproof_tensor;

/* ---- The problem ---- */
enum { RINGPROOF_BHND = 0, RINGPROOF_BNHD = 1, RINGPROOF_NHD = 2 };
enum {
  RINGPROOF_CAUSAL_NONE = 0,
  RINGPROOF_CAUSAL_TOP_LEFT = 1,
  RINGPROOF_CAUSAL_BOTTOM_RIGHT = 2
};
enum { RINGPROOF_EMPTY_ZERO = 0, RINGPROOF_EMPTY_NAN = 1, RINGPROOF_EMPTY_ANY = 2 };
enum { RINGPROOF_LSE_BASE_DEFAULT = 0, RINGPROOF_LSE_BASE_E = 1, RINGPROOF_LSE_BASE_2 = 2 };
enum {
  RINGPROOF_RING_UNKNOWN = 0,
  RINGPROOF_RING_CONTIGUOUS = 1,
  RINGPROOF_RING_ZIGZAG = 2,
  RINGPROOF_RING_STRIPED = 3
};
enum { RINGPROOF_RING_DOWN = 0, RINGPROOF_RING_UP = 1 };

typedef struct ringproof_problem {
  uint32_t struct_size;
  int32_t layout;              /* axis order of q, k, v, out and the factors: RINGPROOF_BHND ... */
  ringproof_tensor q, k, v;    /* [B, H, Nq, D], [B, Hkv, Nk, D], [B, Hkv, Nk, Dv] */
  ringproof_tensor bias, mask; /* broadcastable to [B, H, Nq, Nk] */
  ringproof_tensor alibi_slopes, sinks;        /* [H] or [B, H]; [H] */
  ringproof_tensor key_lengths;                /* [B] */
  ringproof_tensor cu_seqlens_q, cu_seqlens_k; /* [S + 1] */
  ringproof_tensor positions_q, positions_k;   /* [Nq], [Nk] or [B, N] */
  ringproof_tensor documents_q, documents_k;   /* [Nq], [Nk] */
  ringproof_tensor q_scale, k_scale, v_scale;  /* each axis 1, full, or a divisor */
  int32_t has_scale;                           /* 0: the scale is the real number 1 / sqrt(D) */
  int32_t causal;                              /* RINGPROOF_CAUSAL_... */
  double scale;
  double softcap;                    /* 0: off */
  int64_t window_left, window_right; /* -1: unbounded */
  int32_t empty_row;                 /* RINGPROOF_EMPTY_... */
  int32_t lse_base;                  /* RINGPROOF_LSE_BASE_... */
  int64_t ranks;                     /* partial results merged by the kernel; 0: not stated */
  int32_t ring_layout, ring_order;   /* known partition, or RINGPROOF_RING_UNKNOWN */
  ringproof_tensor dout, dlse;       /* upstream gradients, as out and lse; absent: no gradients */
} ringproof_problem;

typedef struct ringproof_answer {
  uint32_t struct_size;
  uint32_t reserved;                          /* 0 */
  ringproof_tensor out;                       /* [B, H, Nq, Dv] in the problem's layout */
  ringproof_tensor lse;                       /* [B, H, Nq]; [H, N] with RINGPROOF_NHD */
  ringproof_tensor dq, dk, dv, dbias, dsinks; /* gradients, each as its input */
} ringproof_answer;

typedef struct ringproof_options {
  uint32_t struct_size;
  int32_t threads; /* 0: as many as the machine has */
  int64_t rows;    /* sampled query rows (keys, for dk and dv); 0: all */
  uint64_t seed;
  double power;          /* a gain error of this size must be detectable; 0: no demand */
  int32_t precision;     /* 0 fast, 1 tight, 64 to 65536: digits of interval arithmetic */
  int32_t reserved;      /* 0 */
  int32_t probabilistic; /* not 0: also the level that can say RINGPROOF_SUSPECT */
  int32_t reserved_too;  /* 0 */
} ringproof_options;

/* ---- A kernel under the property suite ---- */
/* What a shared object exports for `ringproof suite --so`: fills every answer whose data is not
 * NULL, and nothing else. Anything but 0 means that the problem is not supported.
 *   int ringproof_candidate_v1(const ringproof_problem* problem, ringproof_answer* answer); */
typedef int (*ringproof_candidate)(const ringproof_problem*, ringproof_answer*);
#define RINGPROOF_CANDIDATE_V1 "ringproof_candidate_v1"

/* ---- The result ---- */
/* Of dk and dv, h is the KV head and i the key; of dbias, c is the key. */
typedef struct ringproof_element {
  int64_t b, h, i, c; /* c is 0 for the LSE */
  double answer, exact;
  double low, high; /* accepted */
  double error_over_bound;
} ringproof_element;

typedef struct ringproof_tensor_result {
  int32_t judged; /* 0: absent, and nothing below holds */
  int32_t verdict;
  int64_t rows, elements, refused, undecided;
  int64_t rows_not_applicable; /* rows on which the contract's assumptions fail: never passed */
  ringproof_element worst;
} ringproof_tensor_result;

typedef struct ringproof_result {
  uint32_t struct_size;
  int32_t verdict; /* RINGPROOF_PASS ... */
  ringproof_tensor_result out, lse;
  double gain; /* smallest gain error refused; infinity: none */
  double missing_mass_lse,
      missing_mass_out;  /* smallest probability mass whose loss is refused; 1: none */
  int64_t missing_block; /* keys a block behind missing_mass_out; 0: none */
  double zeros_pass, mean_pass,
      twice_pass;         /* share of elements of out where it would pass; NaN: no such element */
  char contract_hash[16]; /* 12 hex digits and NUL */
  ringproof_tensor_result dq, dk, dv, dbias, dsinks;
  double dq_gain, dk_gain, dv_gain, dbias_gain, dsinks_gain; /* as gain, of out */
} ringproof_result;

/* ---- Functions ---- */

/* "0.1.0". */
RINGPROOF_API const char* ringproof_version(void);
/* RINGPROOF_ABI_VERSION of the library. */
RINGPROOF_API uint32_t ringproof_abi_version(void);

/* Judges the answer. `contract`: a name or the JSON text of an object. `options` may be NULL.
 * `message` (may be NULL) receives the report, or what is wrong; it is cut to `message_size` and
 * ends in NUL. */
RINGPROOF_API int ringproof_check(const ringproof_problem* problem, const ringproof_answer* answer,
                                  const char* contract, const ringproof_options* options,
                                  ringproof_result* result, char* message, size_t message_size);

/* Certified intervals of the exact answer, C order: out [B, H, Nq, Dv], lse [B, H, Nq] in the
 * problem's base. Each pointer may be NULL. Of the options, threads and precision are used. */
RINGPROOF_API int ringproof_truth(const ringproof_problem* problem,
                                  const ringproof_options* options, double* out_lo, double* out_hi,
                                  double* lse_lo, double* lse_hi, char* message,
                                  size_t message_size);

/* The same for the gradients: dq, dk, dv as their inputs; dbias [b, h, q, k] with 1 where the bias
 * is broadcast; dsinks [H]. */
typedef struct ringproof_gradient_intervals {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  double *dq_lo, *dq_hi, *dk_lo, *dk_hi, *dv_lo, *dv_hi, *dbias_lo, *dbias_hi, *dsinks_lo,
      *dsinks_hi; /* each may be NULL */
} ringproof_gradient_intervals;
RINGPROOF_API int ringproof_truth_gradients(const ringproof_problem* problem,
                                            const ringproof_options* options,
                                            const ringproof_gradient_intervals* intervals,
                                            char* message, size_t message_size);

/* The 12 hex digits that name a contract, and NUL. */
RINGPROOF_API int ringproof_contract_hash(const char* contract, char hash[13], char* message,
                                          size_t message_size);

/* ---- Initialisers: every struct starts with one of these ---- */

static inline ringproof_tensor ringproof_view(void* data, int type, int32_t ndim,
                                              const int64_t* shape) {
  ringproof_tensor tensor;
  tensor.data = data;
  tensor.dtype.code = (uint8_t)(type >> 8);
  tensor.dtype.bits = (uint8_t)(type & 0xff);
  tensor.dtype.lanes = 1;
  tensor.ndim = ndim;
  tensor.shape = shape;
  tensor.strides = NULL;
  return tensor;
}

static inline void ringproof_problem_init(ringproof_problem* problem) {
  memset(problem, 0, sizeof *problem);
  problem->struct_size = (uint32_t)sizeof *problem;
  problem->window_left = problem->window_right = -1;
}

/* For kernels under the suite: nothing but q, k and v, [B, H, N, D] in C order; no mask, no
 * addition, the default scale, no gradients, and at least one key. */
static inline int ringproof_is_plain(const ringproof_problem* problem, int type) {
  const ringproof_problem* p = problem;
  const int extra = p->bias.data || p->mask.data || p->alibi_slopes.data || p->sinks.data ||
                    p->key_lengths.data || p->cu_seqlens_q.data || p->cu_seqlens_k.data ||
                    p->positions_q.data || p->positions_k.data || p->documents_q.data ||
                    p->documents_k.data || p->q_scale.data || p->k_scale.data || p->v_scale.data ||
                    p->dout.data || p->dlse.data;
  const int rule = p->has_scale || p->softcap != 0 || p->causal != RINGPROOF_CAUSAL_NONE ||
                   p->window_left >= 0 || p->window_right >= 0 || p->layout != RINGPROOF_BHND ||
                   p->ranks > 1;
  const int order = p->q.strides || p->k.strides || p->v.strides;
  return !extra && !rule && !order && (p->q.dtype.code << 8 | p->q.dtype.bits) == type &&
         p->k.shape[2] > 0;
}

static inline void ringproof_answer_init(ringproof_answer* answer) {
  memset(answer, 0, sizeof *answer);
  answer->struct_size = (uint32_t)sizeof *answer;
}

static inline void ringproof_options_init(ringproof_options* options) {
  memset(options, 0, sizeof *options);
  options->struct_size = (uint32_t)sizeof *options;
}

static inline void ringproof_gradient_intervals_init(ringproof_gradient_intervals* intervals) {
  memset(intervals, 0, sizeof *intervals);
  intervals->struct_size = (uint32_t)sizeof *intervals;
}

static inline void ringproof_result_init(ringproof_result* result) {
  memset(result, 0, sizeof *result);
  result->struct_size = (uint32_t)sizeof *result;
}

#ifdef __cplusplus
}
#endif

#endif
