// Contract and file of an answer (answer_file.hpp).
#include "reference/cli/answer_file.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "oracle/case/error.hpp"
#include "oracle/case/mapped_file.hpp"
#include "oracle/case/sha256.hpp"
#include "oracle/case/stored_view.hpp"
#include "oracle/case/words.hpp"

namespace ringproof::reference {
namespace {

using oracle::DType;

bool needs_fp64(const oracle::Tensor& tensor) { return tensor && tensor.dtype == DType::f64; }

/// Is the number zero or a normal number of binary32, so that converting it errs by one rounding?
bool fits_fp32(double number) {
  const oracle::Format& format = oracle::format_of(DType::f32);
  const double size = std::abs(number);
  return size == 0 || (size >= std::ldexp(1.0, format.min_exponent) && size <= format.largest);
}

/// Is the scale a number of the type computed in, or does it cost a rounding of its own?
bool scale_is_exact(const oracle::Problem& problem, bool fp64) {
  const auto exact = [&](double number) {
    return fp64 || number == static_cast<double>(static_cast<float>(number));
  };
  if (problem.spec.scale) return exact(*problem.spec.scale);
  // 1/sqrt(D) is a number of either type for the powers of four.
  const auto root = static_cast<Index>(std::lround(std::sqrt(problem.head_dim)));
  return root * root == problem.head_dim && (root & (root - 1)) == 0;
}

bool is_scaled(const oracle::Problem& problem) {
  return problem.q_scale.tensor || problem.k_scale.tensor || problem.v_scale.tensor;
}

/// The farthest any query can be from any key, where ALiBi multiplies it.
double farthest(const oracle::Problem& problem) {
  double low = 0, high = 0;
  for (const auto* positions : {&problem.position_q, &problem.position_k}) {
    for (const std::int64_t position : *positions) {
      low = std::min(low, static_cast<double>(position));
      high = std::max(high, static_cast<double>(position));
    }
  }
  return high - low;
}

/// Canonical numbers [B, H, N, D] as they lie in the file, rounded to the tensor's type.
template <class Real>
std::vector<std::byte> store(Numbers<Real> numbers, const AnswerTensor& tensor) {
  std::vector<std::byte> bytes(numbers.size() * oracle::size_of(tensor.type));
  const auto& [B, H, N, D] = tensor.size;
  std::size_t next = 0;
  for (Index b = 0; b < B; ++b) {
    for (Index h = 0; h < H; ++h) {
      for (Index n = 0; n < N; ++n) {
        for (Index d = 0; d < D; ++d, ++next) {
          tensor.encode(static_cast<double>(numbers[next]),
                        bytes.data() + tensor.offset(b, h, n, d));
        }
      }
    }
  }
  return bytes;
}

/// Can an answer at `path` name the problem's file as its problem?
bool can_refer(const CaseInput& input, const std::string& path) {
  namespace fs = std::filesystem;
  const oracle::Source& problem = input.files.problem();
  std::error_code ignored;
  const fs::path here = fs::weakly_canonical(fs::absolute(path).parent_path(), ignored);
  const fs::path there = fs::weakly_canonical(fs::absolute(problem.path).parent_path(), ignored);
  if (here != there) return false;
  if (input.files.elsewhere) return true;  // it already is the problem of an answer
  if (!input.files.spec.contract.empty()) return false;
  for (const auto& [name, tensor] : problem.tensors) {
    if (oracle::role_of(name) == oracle::TensorRole::answer) return false;
  }
  return true;
}

/// Do the rows lie where the layouts count them, so that the spec's `ring` tells which rank owned
/// what?
bool rows_are_positions(const CaseInput& input) {
  const oracle::Source& source = input.files.problem();
  return input.views.problem.queries == input.views.problem.keys &&
         source.find("positions_q") == nullptr && source.find("positions_k") == nullptr &&
         source.find("cu_seqlens_q") == nullptr;
}

oracle::Ring ring_of(const RingPlan& plan) {
  const auto layout = plan.layout == Layout::contiguous ? oracle::RingLayout::contiguous
                      : plan.layout == Layout::zigzag   ? oracle::RingLayout::zigzag
                                                        : oracle::RingLayout::striped;
  const auto order =
      plan.direction == Direction::down ? oracle::RingOrder::down : oracle::RingOrder::up;
  return {layout, order};
}

/// Does any number that the pass begins with need binary64?
bool upstream_needs_fp64(const CaseInput& input, Pass pass) {
  return pass == Pass::backward && (needs_fp64(input.views.dout) || needs_fp64(input.views.dlse));
}

}  // namespace

Arithmetic arithmetic_for(const CaseInput& input, Pass pass) {
  const oracle::Problem& problem = input.views.problem;
  const bool fp64 = needs_fp64(problem.q) || needs_fp64(problem.k) || needs_fp64(problem.v) ||
                    needs_fp64(problem.bias) || needs_fp64(problem.sinks) ||
                    !fits_fp32(problem.spec.scale.value_or(1)) ||
                    !fits_fp32(problem.spec.softcap) || upstream_needs_fp64(input, pass);
  return fp64 ? Arithmetic::fp64 : Arithmetic::fp32;
}

oracle::DType output_type(const CaseInput& input, Pass pass) {
  const oracle::Problem& problem = input.views.problem;
  const oracle::Tensor& dout = input.views.dout;
  if (arithmetic_for(input, pass) == Arithmetic::fp64) return DType::f64;
  const DType type = problem.q.dtype;
  const bool half = type == DType::bf16 || type == DType::f16;
  const auto fits = [&](const oracle::Tensor& tensor) {
    return tensor.dtype == type || oracle::size_of(tensor.dtype) == 1;
  };
  const bool same = half && fits(problem.k) && fits(problem.v) && !is_scaled(problem) &&
                    (pass == Pass::forward || !dout || fits(dout));
  return same ? type : DType::f32;
}

std::string contract_for(const CaseInput& input, Index ranks, Pass pass, const std::string& base) {
  const oracle::Problem& problem = input.views.problem;
  const DType type = output_type(input, pass);
  std::string name = type == DType::f64    ? "fp64"
                     : type == DType::bf16 ? "bf16-io"
                     : type == DType::f16  ? "fp16-io"
                                           : "fp32";
  if (!base.empty()) name = base;
  // "-ring" stands between the preset and its variants: fp32-simd-ring+ftz.
  if (ranks > 1) name.insert(std::min(name.find('+'), name.size()), "-ring");

  // A factor is multiplied in when an element is loaded: one rounding, or an underflow to a
  // subnormal number, which then meets a whole component of the other vector.
  const bool fp64 = type == DType::f64;
  const char* unit = fp64 ? "0x1p-53" : "0x1p-24";
  const char* smallest_normal = fp64 ? "0x1p-1022" : "0x1p-126";
  nlohmann::json object;
  if (problem.q_scale.tensor || problem.k_scale.tensor) {
    object["inputs"]["load_u"] = unit;
    object["score"]["eta"] = smallest_normal;
  }
  if (problem.v_scale.tensor) object["inputs"]["load_u_v"] = unit;
  if (!fp64) {
    // A cap that is no binary32 number is rounded, which the division sees like a rounding of its
    // own.
    const double cap = problem.spec.softcap;
    if (cap != static_cast<double>(static_cast<float>(cap))) {
      object["score"]["softcap"]["roundings"] = 2;
    }
    // Distances beyond 2^24 are rounded before the slope multiplies them.
    if (problem.alibi_slopes && farthest(problem) > 0x1p24) object["score"]["bias_roundings"] = 2;
  }
  // The presets count the product with the scale, not a scale that is rounded itself.
  if (pass == Pass::backward && !scale_is_exact(problem, fp64)) {
    object["backward"]["grad_scale_roundings"] = 2;
  }
  if (object.is_null()) return name;
  object["base"] = name;
  return object.dump();
}

std::size_t AnswerTensor::offset(Index b, Index h, Index n, Index d) const {
  const Index element = b * stride[0] + h * stride[1] + n * stride[2] + d * stride[3];
  return static_cast<std::size_t>(element) * oracle::size_of(type);
}

void AnswerTensor::encode(double number, std::byte* place) const {
  oracle::encode(type, oracle::round_nearest(type, number), place);
}

std::vector<AnswerTensor> answer_tensors(const CaseInput& input, Pass pass) {
  const oracle::Problem& p = input.views.problem;
  const oracle::Source& source = input.files.problem();
  const DType type = output_type(input, pass);
  const DType wide = arithmetic_for(input, pass) == Arithmetic::fp64 ? DType::f64 : DType::f32;
  std::vector<AnswerTensor> tensors;
  const auto add = [&](const char* name, DType stored, const oracle::Sizes& size,
                       oracle::AxisList axes) {
    AnswerTensor tensor{name, stored, size, {}, {}};
    Index step = 1;
    for (std::size_t n = axes.size(); n-- > 0;) {
      tensor.stride[axes[n]] = step;
      step *= size[axes[n]];
    }
    for (const oracle::Axis axis : axes) tensor.shape.push_back(size[axis]);
    tensors.push_back(std::move(tensor));
  };
  const auto features = oracle::feature_axes(p.spec.layout);
  constexpr oracle::Axis kInOrder[] = {oracle::kBatch, oracle::kHead, oracle::kRow,
                                       oracle::kColumn};
  add("out", type, {p.batches, p.heads, p.queries, p.value_dim}, features);
  add("lse", wide, {p.batches, p.heads, p.queries, 1}, oracle::row_axes(p.spec.layout));
  if (pass == Pass::forward) return tensors;
  add("dq", type, {p.batches, p.heads, p.queries, p.head_dim}, features);
  add("dk", type, {p.batches, p.kv_heads, p.keys, p.head_dim}, features);
  add("dv", type, {p.batches, p.kv_heads, p.keys, p.value_dim}, features);
  if (p.bias) {
    oracle::Sizes size = p.bias.shape;
    for (std::size_t axis = 0; axis < 4; ++axis) {
      if (p.bias.stride[axis] == 0) size[axis] = 1;
    }
    add("dbias", type, size, kInOrder);
    tensors.back().shape = source.find("bias")->shape;
  }
  if (p.sinks) {
    add("dsinks", wide, {1, p.heads, 1, 1}, kInOrder);
    tensors.back().shape = source.find("sinks")->shape;
  }
  return tensors;
}

AnswerHead answer_head(const CaseInput& input, const RingPlan& plan, Pass pass,
                       const std::string& path, const std::string& base) {
  AnswerHead head{input.views.problem.spec, {}};
  oracle::Spec& spec = head.spec;
  spec.contract = contract_for(input, plan.ranks, pass, base);
  spec.lse_base.reset();
  spec.ranks.reset();
  spec.ring.reset();
  spec.problem.clear();
  spec.problem_sha256.clear();
  if (plan.ranks > 1) {
    spec.ranks = plan.ranks;
    if (rows_are_positions(input)) spec.ring = ring_of(plan);
  }
  const oracle::Source& source = input.files.problem();
  const bool refer = can_refer(input, path);
  if (refer) {
    spec.problem = std::filesystem::path(source.path).filename().string();
    spec.problem_sha256 = oracle::sha256_hex(oracle::MappedFile(source.path).bytes());
  }
  for (const oracle::Source* one : {&source, &input.files.answer}) {
    if (one == &source && refer) continue;
    for (const auto& [name, stored] : one->tensors) {
      const oracle::TensorRole role = oracle::role_of(name);
      const bool problem = one == &source && role == oracle::TensorRole::problem;
      const bool upstream = pass == Pass::backward && role == oracle::TensorRole::upstream;
      if (!problem && !upstream) continue;
      head.carried.push_back({name, stored.dtype, stored.shape, stored.data});
    }
    if (!input.files.elsewhere) break;  // they are the same file
  }
  return head;
}

template <class Real>
void write_answer(const CaseInput& input, const RingPlan& plan, const Answer<Real>& answer,
                  const std::string& path, const Gradients<Real>* gradients,
                  const std::string& base) {
  const Pass pass = gradients ? Pass::backward : Pass::forward;
  const std::vector<AnswerTensor> tensors = answer_tensors(input, pass);
  std::vector<Numbers<Real>> numbers{answer.out, answer.lse};
  if (gradients) {
    numbers.insert(numbers.end(), {gradients->dq, gradients->dk, gradients->dv});
    if (input.views.problem.bias) numbers.push_back(gradients->dbias.data);
    if (input.views.problem.sinks) numbers.push_back(gradients->dsinks);
  }
  std::vector<std::vector<std::byte>> bytes;
  AnswerHead head = answer_head(input, plan, pass, path, base);
  for (std::size_t n = 0; n < tensors.size(); ++n) {
    bytes.push_back(store<Real>(numbers[n], tensors[n]));
    head.carried.push_back({tensors[n].name, tensors[n].type, tensors[n].shape, bytes[n].data()});
  }
  oracle::write_case(path, head.carried, oracle::to_json(head.spec));
}

template void write_answer(const CaseInput&, const RingPlan&, const Answer<float>&,
                           const std::string&, const Gradients<float>*, const std::string&);
template void write_answer(const CaseInput&, const RingPlan&, const Answer<double>&,
                           const std::string&, const Gradients<double>*, const std::string&);

}  // namespace ringproof::reference
