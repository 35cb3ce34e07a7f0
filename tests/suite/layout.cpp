// Drafts in memory (layout.hpp): one bump through the memory, guards around every answer.
#include "tests/suite/layout.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "oracle/case/stored_view.hpp"

namespace ringproof::suite {
namespace {

using oracle::DType;

constexpr std::size_t kAlignment = 64, kGuard = 192;
constexpr std::byte kGuardByte{0x5a};
constexpr double kLarge = 0x1p100;  // what Fill::large leaves where no kernel wrote

struct ProblemField {
  const char* name;
  ringproof_tensor ringproof_problem::*tensor;
};
constexpr ProblemField kProblemFields[] = {{"q", &ringproof_problem::q},
                                           {"k", &ringproof_problem::k},
                                           {"v", &ringproof_problem::v},
                                           {"bias", &ringproof_problem::bias},
                                           {"mask", &ringproof_problem::mask},
                                           {"alibi_slopes", &ringproof_problem::alibi_slopes},
                                           {"sinks", &ringproof_problem::sinks},
                                           {"key_lengths", &ringproof_problem::key_lengths},
                                           {"cu_seqlens_q", &ringproof_problem::cu_seqlens_q},
                                           {"cu_seqlens_k", &ringproof_problem::cu_seqlens_k},
                                           {"positions_q", &ringproof_problem::positions_q},
                                           {"positions_k", &ringproof_problem::positions_k},
                                           {"documents_q", &ringproof_problem::documents_q},
                                           {"documents_k", &ringproof_problem::documents_k},
                                           {"q_scale", &ringproof_problem::q_scale},
                                           {"k_scale", &ringproof_problem::k_scale},
                                           {"v_scale", &ringproof_problem::v_scale},
                                           {"dout", &ringproof_problem::dout},
                                           {"dlse", &ringproof_problem::dlse}};

struct AnswerField {
  const char* name;
  ringproof_tensor ringproof_answer::*tensor;
};
constexpr AnswerField kAnswerFields[] = {
    {"out", &ringproof_answer::out},      {"lse", &ringproof_answer::lse},
    {"dq", &ringproof_answer::dq},        {"dk", &ringproof_answer::dk},
    {"dv", &ringproof_answer::dv},        {"dbias", &ringproof_answer::dbias},
    {"dsinks", &ringproof_answer::dsinks}};

struct TypeCode {
  DType dtype;
  int code;
};
constexpr TypeCode kTypes[] = {
    {DType::f64, RINGPROOF_F64},         {DType::f32, RINGPROOF_F32},
    {DType::f16, RINGPROOF_F16},         {DType::bf16, RINGPROOF_BF16},
    {DType::f8_e4m3, RINGPROOF_F8_E4M3}, {DType::f8_e5m2, RINGPROOF_F8_E5M2},
    {DType::boolean, RINGPROOF_BOOL},    {DType::i32, RINGPROOF_I32},
    {DType::i64, RINGPROOF_I64}};

int code_of(DType dtype) {
  const auto* entry = std::find_if(std::begin(kTypes), std::end(kTypes),
                                   [&](const TypeCode& type) { return type.dtype == dtype; });
  return entry->code;
}

DType dtype_of(const ringproof_dtype& type) {
  const auto* entry = std::find_if(
      std::begin(kTypes), std::end(kTypes),
      [&](const TypeCode& known) { return known.code == (type.code << 8 | type.bits); });
  return entry->dtype;
}

bool has_feature_axes(const std::string& name) {
  constexpr std::string_view kNames[] = {"q",  "k",  "v",  "q_scale", "k_scale", "v_scale",
                                         "dq", "dk", "dv", "out",     "dout"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}
bool has_row_axes(const std::string& name) { return name == "lse" || name == "dlse"; }

/// The canonical axes that are stored, outermost first; empty: the shape is stored as it is.
oracle::AxisList axes_of(const std::string& name, oracle::AxisOrder order) {
  if (has_feature_axes(name)) return oracle::feature_axes(order);
  if (has_row_axes(name)) return oracle::row_axes(order);
  return {};
}

void store(DType dtype, double value, std::byte* place) {
  if (oracle::is_float(dtype)) {
    oracle::encode(dtype, value, place);
    return;
  }
  const auto number = static_cast<std::int64_t>(value);
  std::memcpy(place, &number, oracle::size_of(dtype));  // the low bytes come first
}

std::vector<std::byte> fill_bytes(DType dtype, Fill fill) {
  std::vector<std::byte> bytes(oracle::size_of(dtype));
  const double value = fill == Fill::nan ? std::numeric_limits<double>::quiet_NaN()
                                         : std::min(kLarge, oracle::format_of(dtype).largest);
  oracle::encode(dtype, oracle::round_to_zero(dtype, value), bytes.data());
  return bytes;
}

oracle::StoredTensor stored(const ringproof_tensor& tensor) {
  oracle::StoredTensor result;
  result.dtype = dtype_of(tensor.dtype);
  result.shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  if (tensor.strides != nullptr) {
    result.stride.assign(tensor.strides, tensor.strides + tensor.ndim);
  }
  result.data = static_cast<const std::byte*>(tensor.data);
  return result;
}

}  // namespace

Laid::Laid(const Draft& draft, const Wanted& wanted, Fill fill, std::span<std::byte> memory) {
  memory_ = memory;
  fill_ = fill;
  if (memory_.empty()) {
    std::size_t bytes = std::size_t{1} << 20;
    for (const auto& [name, table] : draft.tables) bytes += 40 * table.values.size();
    const Index rows = draft.batches * draft.heads * draft.queries;
    bytes += static_cast<std::size_t>(16 * rows * (draft.value_dim + 1));
    own_ = std::make_unique<std::byte[]>(bytes);
    memory_ = {own_.get(), bytes};
  }
  problem_ = reinterpret_cast<ringproof_problem*>(take(sizeof(ringproof_problem)));
  answer_ = reinterpret_cast<ringproof_answer*>(take(sizeof(ringproof_answer)));
  ringproof_problem_init(problem_);
  ringproof_answer_init(answer_);
  fill_spec(draft);
  for (const ProblemField& field : kProblemFields) {
    if (!draft.has(field.name)) continue;
    const bool gap = field.name == std::string("q") || field.name == std::string("k") ||
                     field.name == std::string("v");
    problem_->*field.tensor =
        place(field.name, draft.table(field.name), draft.spec, gap ? draft.stride_gap : 0);
  }
  for (const Placed& input : inputs_) {
    before_.emplace_back(input.data, input.data + input.bytes);
  }
  place_answers(draft, wanted);
}

std::byte* Laid::take(std::size_t bytes) {
  const auto start = reinterpret_cast<std::uintptr_t>(memory_.data()) + used_;
  const std::size_t first = used_ + (kAlignment - start % kAlignment) % kAlignment;
  if (first + bytes > memory_.size()) throw std::length_error("the problem exceeds the memory");
  used_ = first + bytes;
  return memory_.data() + first;
}

/// Lays a table down in the axis order of the spec; `gap` elements stand between its rows.
ringproof_tensor Laid::place(const std::string& name, const Table& table, const oracle::Spec& spec,
                             Index gap) {
  const oracle::AxisList axes = axes_of(name, spec.layout);
  std::vector<Index> shape;
  if (axes.empty()) {
    shape = table.shape;
  } else {
    for (const oracle::Axis axis : axes) shape.push_back(table.shape[axis]);
  }
  auto* sizes = reinterpret_cast<std::int64_t*>(take(2 * shape.size() * sizeof(std::int64_t) + 8));
  std::int64_t* strides = sizes + shape.size();
  Index stride = 1;
  for (std::size_t n = shape.size(); n-- > 0;) {
    sizes[n] = shape[n];
    strides[n] = stride;
    stride *= shape[n];
    if (n + 1 == shape.size()) stride += gap;
  }
  const std::size_t width = oracle::size_of(table.dtype);
  const std::size_t bytes = static_cast<std::size_t>(stride) * width;
  std::byte* data = take(bytes + kAlignment);
  std::memset(data, 0, bytes);
  for (std::size_t n = 0; n < table.values.size(); ++n) {
    Index at = static_cast<Index>(n);
    if (!axes.empty() || gap > 0) {
      Index rest = static_cast<Index>(n);
      at = 0;
      for (std::size_t axis = table.shape.size(); axis-- > 0;) {
        const Index index = rest % table.shape[axis];
        rest /= table.shape[axis];
        for (std::size_t place = 0; place < axes.size(); ++place) {
          if (axes[place] == static_cast<oracle::Axis>(axis)) at += index * strides[place];
        }
      }
    }
    store(table.dtype, table.values[n], data + static_cast<std::size_t>(at) * width);
  }
  inputs_.push_back({name, data, bytes, table.dtype});
  ringproof_tensor tensor =
      ringproof_view(data, code_of(table.dtype), static_cast<int32_t>(shape.size()), sizes);
  if (gap > 0) tensor.strides = strides;
  return tensor;
}

ringproof_tensor Laid::place_answer(const std::string& name, DType dtype,
                                    std::vector<Index> shape) {
  auto* sizes = reinterpret_cast<std::int64_t*>(take(shape.size() * sizeof(std::int64_t) + 8));
  Index elements = 1;
  for (std::size_t n = 0; n < shape.size(); ++n) {
    sizes[n] = shape[n];
    elements *= shape[n];
  }
  const std::size_t width = oracle::size_of(dtype);
  const std::size_t bytes = static_cast<std::size_t>(elements) * width;
  std::byte* data = take(bytes + 2 * kGuard) + kGuard;
  std::memset(data - kGuard, static_cast<int>(kGuardByte), bytes + 2 * kGuard);
  const std::vector<std::byte> fill = fill_bytes(dtype, fill_);
  for (std::size_t n = 0; n < bytes; ++n) data[n] = fill[n % width];
  outputs_.push_back({name, data, bytes, dtype});
  return ringproof_view(data, code_of(dtype), static_cast<int32_t>(shape.size()), sizes);
}

void Laid::place_answers(const Draft& draft, const Wanted& wanted) {
  const auto in_axes = [&](const std::string& name, std::array<Index, 4> sizes) {
    std::vector<Index> shape;
    for (const oracle::Axis axis : axes_of(name, draft.spec.layout)) shape.push_back(sizes[axis]);
    return shape;
  };
  const std::array<Index, 4> out{draft.batches, draft.heads, draft.queries, draft.value_dim};
  answer_->out = place_answer("out", wanted.out, in_axes("out", out));
  if (wanted.with_lse) answer_->lse = place_answer("lse", wanted.lse, in_axes("lse", out));
  if (!wanted.with_gradients || !draft.gradients) return;
  const auto like = [&](const char* name, const char* input) {
    const Table& table = draft.table(input);
    return place_answer(name, wanted.gradient,
                        has_feature_axes(name) ? in_axes(name, {table.shape[0], table.shape[1],
                                                                table.shape[2], table.shape[3]})
                                               : table.shape);
  };
  answer_->dq = like("dq", "q");
  answer_->dk = like("dk", "k");
  answer_->dv = like("dv", "v");
  if (draft.has("bias")) answer_->dbias = like("dbias", "bias");
  if (draft.has("sinks")) answer_->dsinks = like("dsinks", "sinks");
}

void Laid::fill_spec(const Draft& draft) {
  const oracle::Spec& spec = draft.spec;
  problem_->layout = static_cast<int32_t>(spec.layout);
  problem_->has_scale = spec.scale ? 1 : 0;
  problem_->scale = spec.scale.value_or(0);
  problem_->causal = static_cast<int32_t>(spec.causal);
  problem_->softcap = spec.softcap;
  problem_->window_left = spec.window_left;
  problem_->window_right = spec.window_right;
  problem_->empty_row = static_cast<int32_t>(spec.empty_row);
  problem_->ranks = spec.ranks.value_or(0);
  if (spec.ring) {
    problem_->ring_layout = static_cast<int32_t>(spec.ring->layout) + 1;
    problem_->ring_order = static_cast<int32_t>(spec.ring->order);
  }
}

std::optional<std::string> Laid::modified_input() const {
  for (std::size_t n = 0; n < inputs_.size(); ++n) {
    if (inputs_[n].bytes > 0 &&
        std::memcmp(inputs_[n].data, before_[n].data(), inputs_[n].bytes) != 0) {
      return inputs_[n].name;
    }
  }
  return std::nullopt;
}

std::optional<std::string> Laid::written_guard() const {
  for (const Placed& output : outputs_) {
    for (std::size_t n = 0; n < kGuard; ++n) {
      if (output.data[output.bytes + n] != kGuardByte) return output.name;
      if (output.data[n - kGuard] != kGuardByte) return output.name;
    }
  }
  return std::nullopt;
}

bool Laid::untouched(const std::string& name) const {
  for (const Placed& output : outputs_) {
    if (output.name != name) continue;
    const std::vector<std::byte> fill = fill_bytes(output.dtype, fill_);
    for (std::size_t n = 0; n < output.bytes; ++n) {
      if (output.data[n] != fill[n % fill.size()]) return false;
    }
  }
  return true;
}

std::vector<std::byte> Laid::bytes_of(const std::string& name) const {
  for (const Placed& output : outputs_) {
    if (output.name == name) return {output.data, output.data + output.bytes};
  }
  return {};
}

std::vector<std::string> Laid::answers() const {
  std::vector<std::string> names;
  for (const Placed& output : outputs_) names.push_back(output.name);
  return names;
}

oracle::Source problem_source(const ringproof_problem& problem) {
  oracle::Source source{"problem", {}};
  for (const ProblemField& field : kProblemFields) {
    if ((problem.*field.tensor).data == nullptr) continue;
    source.tensors.emplace(field.name, stored(problem.*field.tensor));
  }
  return source;
}

oracle::Source answer_source(const ringproof_answer& answer) {
  oracle::Source source{"answer", {}};
  for (const AnswerField& field : kAnswerFields) {
    if ((answer.*field.tensor).data == nullptr) continue;
    source.tensors.emplace(field.name, stored(answer.*field.tensor));
  }
  return source;
}

oracle::Spec problem_spec(const ringproof_problem& problem) {
  oracle::Spec spec;
  spec.layout = static_cast<oracle::AxisOrder>(problem.layout);
  if (problem.has_scale != 0) spec.scale = problem.scale;
  spec.causal = static_cast<oracle::Causal>(problem.causal);
  spec.softcap = problem.softcap;
  spec.window_left = problem.window_left, spec.window_right = problem.window_right;
  spec.empty_row = static_cast<oracle::EmptyRow>(problem.empty_row);
  if (problem.ranks != 0) spec.ranks = problem.ranks;
  if (problem.ring_layout != RINGPROOF_RING_UNKNOWN) {
    spec.ring = oracle::Ring{static_cast<oracle::RingLayout>(problem.ring_layout - 1),
                             static_cast<oracle::RingOrder>(problem.ring_order)};
  }
  return spec;
}

}  // namespace ringproof::suite
