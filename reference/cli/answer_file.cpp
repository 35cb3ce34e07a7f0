// Contract and file of an answer (answer_file.hpp).
#include "reference/cli/answer_file.hpp"

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

/// One tensor to write, in the axis order of the case.
struct Stored {
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;
};

/// Canonical numbers [B, H, N, D] in the axes `axes`, rounded to `type`.
template <class Real>
Stored store(Numbers<Real> numbers, const oracle::Sizes& size, oracle::AxisList axes, DType type) {
  Stored stored;
  std::array<Index, 4> stride{};
  Index count = 1;
  for (std::size_t n = axes.size(); n-- > 0;) {
    stride[axes[n]] = count;
    count *= size[axes[n]];
  }
  for (const oracle::Axis axis : axes) stored.shape.push_back(size[axis]);
  stored.bytes.resize(numbers.size() * oracle::size_of(type));
  std::size_t next = 0;
  for (Index b = 0; b < size[0]; ++b) {
    for (Index h = 0; h < size[1]; ++h) {
      for (Index n = 0; n < size[2]; ++n) {
        for (Index d = 0; d < size[3]; ++d, ++next) {
          const Index at = b * stride[0] + h * stride[1] + n * stride[2] + d * stride[3];
          oracle::encode(type, oracle::round_nearest(type, static_cast<double>(numbers[next])),
                         stored.bytes.data() + at * static_cast<Index>(oracle::size_of(type)));
        }
      }
    }
  }
  return stored;
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

}  // namespace

Arithmetic arithmetic_for(const CaseInput& input) {
  const oracle::Problem& problem = input.views.problem;
  const bool fp64 = needs_fp64(problem.q) || needs_fp64(problem.k) || needs_fp64(problem.v) ||
                    needs_fp64(problem.bias) || needs_fp64(problem.sinks) ||
                    !fits_fp32(problem.spec.scale.value_or(1)) || !fits_fp32(problem.spec.softcap);
  return fp64 ? Arithmetic::fp64 : Arithmetic::fp32;
}

oracle::DType output_type(const CaseInput& input) {
  const oracle::Problem& problem = input.views.problem;
  if (arithmetic_for(input) == Arithmetic::fp64) return DType::f64;
  const DType type = problem.q.dtype;
  const bool half = type == DType::bf16 || type == DType::f16;
  const auto fits = [&](const oracle::Tensor& tensor) {
    return tensor.dtype == type || oracle::size_of(tensor.dtype) == 1;
  };
  const bool same = half && fits(problem.k) && fits(problem.v) && !is_scaled(problem);
  return same ? type : DType::f32;
}

std::string contract_for(const CaseInput& input, Index ranks) {
  const oracle::Problem& problem = input.views.problem;
  const DType type = output_type(input);
  std::string name = type == DType::f64    ? "fp64"
                     : type == DType::bf16 ? "bf16-io"
                     : type == DType::f16  ? "fp16-io"
                                           : "fp32";
  if (ranks > 1) name += "-ring";

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
  if (object.is_null()) return name;
  object["base"] = name;
  return object.dump();
}

template <class Real>
void write_answer(const CaseInput& input, const RingPlan& plan, const Answer<Real>& answer,
                  const std::string& path) {
  const oracle::Problem& problem = input.views.problem;
  const oracle::Source& source = input.files.problem();
  const DType wide = std::same_as<Real, double> ? DType::f64 : DType::f32;
  const oracle::Sizes size{problem.batches, problem.heads, problem.queries, problem.value_dim};
  const DType type = output_type(input);
  const Stored out = store<Real>(answer.out, size, oracle::feature_axes(problem.spec.layout), type);
  const Stored lse = store<Real>(answer.lse, {size[0], size[1], size[2], 1},
                                 oracle::row_axes(problem.spec.layout), wide);

  oracle::Spec spec = problem.spec;
  spec.contract = contract_for(input, plan.ranks);
  spec.lse_base.reset();
  spec.ranks.reset();
  spec.ring.reset();
  spec.problem.clear();
  spec.problem_sha256.clear();
  if (plan.ranks > 1) {
    spec.ranks = plan.ranks;
    if (rows_are_positions(input)) spec.ring = ring_of(plan);
  }

  std::vector<oracle::NamedTensor> tensors{{"out", type, out.shape, out.bytes.data()},
                                           {"lse", wide, lse.shape, lse.bytes.data()}};
  if (can_refer(input, path)) {
    spec.problem = std::filesystem::path(source.path).filename().string();
    spec.problem_sha256 = oracle::sha256_hex(oracle::MappedFile(source.path).bytes());
  } else {
    for (const auto& [name, stored] : source.tensors) {
      if (oracle::role_of(name) != oracle::TensorRole::problem) continue;
      tensors.push_back({name, stored.dtype, stored.shape, stored.data});
    }
  }
  oracle::write_case(path, tensors, oracle::to_json(spec));
}

template void write_answer(const CaseInput&, const RingPlan&, const Answer<float>&,
                           const std::string&);
template void write_answer(const CaseInput&, const RingPlan&, const Answer<double>&,
                           const std::string&);

}  // namespace ringproof::reference
