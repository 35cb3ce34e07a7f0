// The C interface (ringproof.h): views on the caller's memory in, verdicts and messages out. No
// judgement is made here; shapes and types are checked where those of files are
// (case/assemble.hpp).
#include "oracle/ringproof.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <limits>
#include <new>
#include <string>

#include "oracle/case/assemble.hpp"
#include "oracle/case/error.hpp"
#include "oracle/judge/check.hpp"
#include "oracle/judge/gradient_truth.hpp"
#include "oracle/judge/truth_tensors.hpp"
#include "oracle/report/report.hpp"

namespace ringproof::oracle {

namespace {

constexpr std::int64_t kLargestSize = std::int64_t{1} << 40;  // of one axis
constexpr int kMostAxes = 4;

void put_message(const std::string& text, char* message, std::size_t size) {
  if (message == nullptr || size == 0) return;
  const std::size_t length = std::min(text.size(), size - 1);
  std::copy_n(text.data(), length, message);
  message[length] = '\0';
}

/// Runs `body`; what it throws becomes a status and a message.
template <class Body>
int guarded(char* message, std::size_t message_size, const Body& body) noexcept {
  try {
    try {
      body();
      return RINGPROOF_OK;
    } catch (const BadInput& error) {
      put_message(error.what(), message, message_size);
      return RINGPROOF_BAD_INPUT;
    } catch (const std::bad_alloc&) {
      put_message("out of memory", message, message_size);
      return RINGPROOF_OUT_OF_MEMORY;
    } catch (const std::exception& error) {
      put_message(std::string("failure of the judge: ") + error.what(), message, message_size);
    }
  } catch (...) {  // even the message did not fit
  }
  return RINGPROOF_FAILURE;
}

/// Bytes of each struct in the first header of this version of the interface.
template <class Struct>
constexpr std::size_t kFirstSize = sizeof(Struct);
template <>
constexpr std::size_t kFirstSize<ringproof_problem> = offsetof(ringproof_problem, dout);
template <>
constexpr std::size_t kFirstSize<ringproof_answer> = offsetof(ringproof_answer, dq);
template <>
constexpr std::size_t kFirstSize<ringproof_options> = offsetof(ringproof_options, probabilistic);
template <>
constexpr std::size_t kFirstSize<ringproof_result> = offsetof(ringproof_result, dq);

/// Throws BadInput for a struct that is older than the first header or was never initialised.
template <class Struct>
std::size_t require_size(const Struct* given, const char* what) {
  if (given == nullptr) throw BadInput(std::string(what) + ": is a null pointer");
  if (given->struct_size < kFirstSize<Struct>) {
    throw BadInput(std::string(what) + ": struct_size is " + std::to_string(given->struct_size) +
                   ", at least " + std::to_string(kFirstSize<Struct>) +
                   " is needed (was it initialised?)");
  }
  return std::min<std::size_t>(given->struct_size, sizeof(Struct));
}

/// A caller's struct in today's form: what a caller of an earlier header lacks is zero.
template <class Struct>
Struct read_struct(const Struct* given, const char* what) {
  const std::size_t size = require_size(given, what);
  Struct full{};
  std::memcpy(&full, given, size);
  return full;
}

DType dtype_of(const ringproof_dtype& type, const std::string& tensor) {
  struct Entry {
    int type;
    DType dtype;
  };
  constexpr Entry kEntries[] = {
      {RINGPROOF_F64, DType::f64},         {RINGPROOF_F32, DType::f32},
      {RINGPROOF_F16, DType::f16},         {RINGPROOF_BF16, DType::bf16},
      {RINGPROOF_F8_E4M3, DType::f8_e4m3}, {RINGPROOF_F8_E5M2, DType::f8_e5m2},
      {RINGPROOF_BOOL, DType::boolean},    {RINGPROOF_I32, DType::i32},
      {RINGPROOF_I64, DType::i64}};
  for (const Entry& entry : kEntries) {
    if (entry.type == (type.code << 8 | type.bits) && type.lanes == 1) return entry.dtype;
  }
  throw BadInput(tensor + ": DLPack type (code " + std::to_string(type.code) + ", bits " +
                 std::to_string(type.bits) + ", lanes " + std::to_string(type.lanes) +
                 ") is not supported");
}

StoredTensor stored(const ringproof_tensor& tensor, const std::string& name) {
  if (tensor.ndim < 0 || tensor.ndim > kMostAxes || (tensor.ndim > 0 && tensor.shape == nullptr)) {
    throw BadInput(name + ": needs 0 to 4 axes and a shape");
  }
  StoredTensor result;
  result.dtype = dtype_of(tensor.dtype, name);
  std::int64_t elements = 1;
  for (int axis = 0; axis < tensor.ndim; ++axis) {
    const std::int64_t size = tensor.shape[axis];
    if (size < 0 || size > kLargestSize || (size > 0 && elements > kLargestSize / size)) {
      throw BadInput(name + ": axis " + std::to_string(axis) + " has the impossible size " +
                     std::to_string(size));
    }
    elements *= std::max<std::int64_t>(size, 1);
    result.shape.push_back(size);
    if (tensor.strides != nullptr) result.stride.push_back(tensor.strides[axis]);
  }
  result.data = static_cast<const std::byte*>(tensor.data);
  return result;
}

struct NamedView {
  const char* name;
  const ringproof_tensor& tensor;
};

Source source_of(const std::string& path, std::initializer_list<NamedView> views) {
  Source source{path, {}};
  for (const NamedView& view : views) {
    if (view.tensor.data == nullptr) continue;
    source.tensors.emplace(view.name, stored(view.tensor, path + ": tensor \"" + view.name + "\""));
  }
  check_table(source);
  return source;
}

/// value as an index into the words of the spec.
template <class Enum>
Enum choice(std::int32_t value, std::int32_t count, const char* field) {
  if (value < 0 || value >= count) {
    throw BadInput(std::string("problem: ") + field + " is " + std::to_string(value) +
                   ", which is no choice");
  }
  return static_cast<Enum>(value);
}

/// The spec goes through its own text form, so that every rule of parse_spec holds here, too.
Spec spec_of(const ringproof_problem& problem) {
  Spec spec;
  spec.layout = choice<AxisOrder>(problem.layout, 3, "layout");
  if (problem.has_scale != 0) spec.scale = problem.scale;
  spec.causal = choice<Causal>(problem.causal, 3, "causal");
  spec.softcap = problem.softcap;
  spec.window_left = problem.window_left;
  spec.window_right = problem.window_right;
  spec.empty_row = choice<EmptyRow>(problem.empty_row, 3, "empty_row");
  if (problem.lse_base != RINGPROOF_LSE_BASE_DEFAULT) {
    spec.lse_base = choice<LseBase>(problem.lse_base - 1, 2, "lse_base");
  }
  if (problem.ranks != 0) spec.ranks = problem.ranks;
  if (problem.ring_layout != RINGPROOF_RING_UNKNOWN) {
    spec.ring = Ring{choice<RingLayout>(problem.ring_layout - 1, 3, "ring_layout"),
                     choice<RingOrder>(problem.ring_order, 2, "ring_order")};
  }
  return parse_spec(to_json(spec), "problem");
}

Case case_of(const ringproof_problem& p, const ringproof_answer* answer) {
  const Source problem = source_of("problem", {{"q", p.q},
                                               {"k", p.k},
                                               {"v", p.v},
                                               {"bias", p.bias},
                                               {"mask", p.mask},
                                               {"alibi_slopes", p.alibi_slopes},
                                               {"sinks", p.sinks},
                                               {"key_lengths", p.key_lengths},
                                               {"cu_seqlens_q", p.cu_seqlens_q},
                                               {"cu_seqlens_k", p.cu_seqlens_k},
                                               {"positions_q", p.positions_q},
                                               {"positions_k", p.positions_k},
                                               {"documents_q", p.documents_q},
                                               {"documents_k", p.documents_k},
                                               {"q_scale", p.q_scale},
                                               {"k_scale", p.k_scale},
                                               {"v_scale", p.v_scale},
                                               {"dout", p.dout},
                                               {"dlse", p.dlse}});
  Source answers{"answer", {}};
  if (answer != nullptr) {
    const ringproof_answer given = read_struct(answer, "answer");
    answers = source_of("answer", {{"out", given.out},
                                   {"lse", given.lse},
                                   {"dq", given.dq},
                                   {"dk", given.dk},
                                   {"dv", given.dv},
                                   {"dbias", given.dbias},
                                   {"dsinks", given.dsinks}});
  }
  return assemble_case(problem, answers, spec_of(p));
}

CheckOptions options_of(const ringproof_options* given) {
  CheckOptions options;
  if (given == nullptr) return options;
  const ringproof_options from = read_struct(given, "options");
  if (from.threads < 0 || from.threads > 1024)
    throw BadInput("options: threads is not in 0 .. 1024");
  if (from.rows < 0) throw BadInput("options: rows is negative");
  if (!(from.power >= 0)) throw BadInput("options: power is not a number >= 0");
  const bool digits = from.precision >= 64 && from.precision <= 65536;
  if (!digits && from.precision != 0 && from.precision != 1) {
    throw BadInput("options: precision is neither 0, 1 nor in 64 .. 65536");
  }
  if (from.rows > 0) options.rows = from.rows;
  options.seed = from.seed;
  if (from.power > 0) options.power = from.power;
  if (digits) options.bits = static_cast<unsigned>(from.precision);
  options.probabilistic = from.probabilistic != 0;
  options.walk.precision = from.precision == 1 ? Precision::tight : Precision::fast;
  options.walk.threads = from.threads;
  return options;
}

double share(const Vacuity& vacuity) {
  if (vacuity.differ == 0) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(vacuity.pass) / static_cast<double>(vacuity.differ);
}

void fill(const AnswerReport* answer, ringproof_tensor_result& result) {
  result = {};
  if (answer == nullptr) return;
  const TensorTally& tally = answer->tally;
  result.judged = 1;
  result.verdict = exit_code(answer->verdict);
  result.rows = tally.rows;
  result.elements = tally.elements;
  result.refused = tally.failed;
  result.undecided = tally.undecided;
  result.rows_not_applicable = tally.not_applicable;
  if (!tally.worst_element) return;
  const Element& worst = *tally.worst_element;
  result.worst = {worst.row.b,        worst.row.h,         worst.row.i,
                  worst.column,       worst.answer,        worst.exact,
                  worst.accepted.low, worst.accepted.high, worst.error_over_bound};
}

void fill(const Report& report, ringproof_result& result) {
  result.verdict = exit_code(report.verdict);
  const AnswerReport* out = report.find(AnswerKind::out);
  fill(out, result.out);
  fill(report.find(AnswerKind::lse), result.lse);
  result.gain = report.power.gain;
  result.missing_mass_lse = report.power.missing_mass_lse;
  result.missing_mass_out = report.power.missing_mass_out;
  result.missing_block = report.power.missing_block;
  const TensorTally tally = out == nullptr ? TensorTally{} : out->tally;
  result.zeros_pass = share(tally.zeros);
  result.mean_pass = share(tally.mean);
  result.twice_pass = share(tally.twice);
  put_message(report.contract_hash, result.contract_hash, sizeof result.contract_hash);
  const auto gradient = [&](AnswerKind kind, ringproof_tensor_result& tensor, double& gain) {
    const AnswerReport* answer = report.find(kind);
    fill(answer, tensor);
    gain = answer == nullptr ? std::numeric_limits<double>::infinity() : answer->tally.gain;
  };
  gradient(AnswerKind::dq, result.dq, result.dq_gain);
  gradient(AnswerKind::dk, result.dk, result.dk_gain);
  gradient(AnswerKind::dv, result.dv, result.dv_gain);
  gradient(AnswerKind::dbias, result.dbias, result.dbias_gain);
  gradient(AnswerKind::dsinks, result.dsinks, result.dsinks_gain);
}

}  // namespace

}  // namespace ringproof::oracle

using namespace ringproof::oracle;

const char* ringproof_version(void) { return RINGPROOF_VERSION; }

uint32_t ringproof_abi_version(void) { return RINGPROOF_ABI_VERSION; }

int ringproof_check(const ringproof_problem* problem, const ringproof_answer* answer,
                    const char* contract, const ringproof_options* options,
                    ringproof_result* result, char* message, size_t message_size) {
  return guarded(message, message_size, [&] {
    require_size(answer, "answer");
    const std::size_t result_size =
        require_size(static_cast<const ringproof_result*>(result), "result");
    if (contract == nullptr) throw BadInput("contract: is a null pointer");
    const Case input = case_of(read_struct(problem, "problem"), answer);
    const Contract terms = read_contract(contract, input.problem.spec);
    const Report report = check(input, terms, options_of(options));
    ringproof_result full = read_struct(static_cast<const ringproof_result*>(result), "result");
    fill(report, full);
    std::memcpy(result, &full, result_size);
    put_message(to_text(report, ""), message, message_size);
  });
}

int ringproof_truth(const ringproof_problem* problem, const ringproof_options* options,
                    double* out_lo, double* out_hi, double* lse_lo, double* lse_hi, char* message,
                    size_t message_size) {
  return guarded(message, message_size, [&] {
    const Case input = case_of(read_struct(problem, "problem"), nullptr);
    const CheckOptions terms = options_of(options);
    const LseBase base = input.problem.spec.lse_base.value_or(LseBase::e);
    const TruthTensors truth = truth_tensors(input.problem, base, terms.bits, terms.walk);
    const auto copy = [](const std::vector<double>& from, double* to) {
      if (to != nullptr) std::copy(from.begin(), from.end(), to);
    };
    copy(truth.out.lo, out_lo);
    copy(truth.out.hi, out_hi);
    copy(truth.lse.lo, lse_lo);
    copy(truth.lse.hi, lse_hi);
    put_message("", message, message_size);
  });
}

int ringproof_truth_gradients(const ringproof_problem* problem, const ringproof_options* options,
                              const ringproof_gradient_intervals* intervals, char* message,
                              size_t message_size) {
  return guarded(message, message_size, [&] {
    const Case input = case_of(read_struct(problem, "problem"), nullptr);
    const ringproof_gradient_intervals to = read_struct(intervals, "intervals");
    if (!input.dout && !input.dlse) throw BadInput("problem: a gradient needs dout or dlse");
    const CheckOptions terms = options_of(options);
    const GradientTensors truth =
        gradient_tensors(input.problem, {input.dout, input.dlse, {}}, terms.bits, terms.walk);
    const auto copy = [](const IntervalTensor& from, double* lo, double* hi) {
      if (lo != nullptr) std::copy(from.lo.begin(), from.lo.end(), lo);
      if (hi != nullptr) std::copy(from.hi.begin(), from.hi.end(), hi);
    };
    copy(truth.dq, to.dq_lo, to.dq_hi);
    copy(truth.dk, to.dk_lo, to.dk_hi);
    copy(truth.dv, to.dv_lo, to.dv_hi);
    copy(truth.dbias, to.dbias_lo, to.dbias_hi);
    copy(truth.dsinks, to.dsinks_lo, to.dsinks_hi);
    put_message("", message, message_size);
  });
}

int ringproof_contract_hash(const char* contract, char hash[13], char* message,
                            size_t message_size) {
  return guarded(message, message_size, [&] {
    if (contract == nullptr || hash == nullptr) throw BadInput("contract: is a null pointer");
    put_message(contract_hash(contract), hash, 13);
    put_message("", message, message_size);
  });
}
