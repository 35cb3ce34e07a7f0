// The table of docs/formats.md as data (tensor_table.hpp).
#include "oracle/case/tensor_table.hpp"

#include <algorithm>
#include <array>

#include "oracle/case/error.hpp"
#include "oracle/case/words.hpp"

namespace ringproof::oracle {
namespace {

/// A set of types, one bit each.
using Types = unsigned;
constexpr Types only(DType type) { return 1U << static_cast<unsigned>(type); }
constexpr Types kWide = only(DType::f64) | only(DType::f32);
constexpr Types kLse = kWide | only(DType::f16) | only(DType::bf16);
constexpr Types kFloat = kLse | only(DType::f8_e4m3) | only(DType::f8_e5m2);

struct Rule {
  std::string_view name;
  Types types;
  TensorRole role = TensorRole::problem;
};

constexpr std::array<Rule, 26> kRules{{
    {"q", kFloat},
    {"k", kFloat},
    {"v", kFloat},
    {"bias", kFloat},
    {"mask", only(DType::boolean)},
    {"alibi_slopes", only(DType::f32)},
    {"sinks", kWide},
    {"key_lengths", only(DType::i32)},
    {"cu_seqlens_q", only(DType::i32)},
    {"cu_seqlens_k", only(DType::i32)},
    {"positions_q", only(DType::i64)},
    {"positions_k", only(DType::i64)},
    {"documents_q", only(DType::i32)},
    {"documents_k", only(DType::i32)},
    {"q_scale", only(DType::f32)},
    {"k_scale", only(DType::f32)},
    {"v_scale", only(DType::f32)},
    {"dout", kFloat, TensorRole::upstream},
    {"dlse", kFloat, TensorRole::upstream},
    {"out", kFloat, TensorRole::answer},
    {"lse", kLse, TensorRole::answer},
    {"dq", kFloat, TensorRole::answer},
    {"dk", kFloat, TensorRole::answer},
    {"dv", kFloat, TensorRole::answer},
    {"dbias", kFloat, TensorRole::answer},
    {"dsinks", kFloat, TensorRole::answer},
}};

constexpr std::array<std::string_view, 7> kReserved{
    "k_pages", "v_pages", "block_table", "key_indices", "mask_bits", "block_mask", "dropout_mask"};

const Rule* find_rule(std::string_view name) {
  const auto* rule =
      std::find_if(kRules.begin(), kRules.end(), [&](const Rule& r) { return r.name == name; });
  return rule == kRules.end() ? nullptr : rule;
}

std::string list_of(Types types) {
  std::string list;
  for (unsigned n = 0; n <= static_cast<unsigned>(DType::i64); ++n) {
    const auto type = static_cast<DType>(n);
    if ((types & only(type)) == 0) continue;
    if (!list.empty()) list += ' ';
    list += name(type);
  }
  return list;
}

}  // namespace

void refuse_tensor(const Source& source, std::string_view name, const std::string& what) {
  throw BadInput(source.path + ": tensor " + in_quotes(name) + ": " + what);
}

TensorRole role_of(std::string_view name) { return find_rule(name)->role; }

void check_table(const Source& source) {
  for (const auto& [name, tensor] : source.tensors) {
    if (std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end()) {
      refuse_tensor(source, name, "reserved, not supported yet");
    }
    const Rule* rule = find_rule(name);
    if (rule == nullptr) {
      std::array<std::string_view, kRules.size()> names;
      std::transform(kRules.begin(), kRules.end(), names.begin(),
                     [](const Rule& r) { return r.name; });
      refuse_tensor(source, name,
                    "unknown name (nearest: " + in_quotes(nearest(name, names)) + ")");
    }
    if ((rule->types & only(tensor.dtype)) == 0) {
      refuse_tensor(source, name,
                    "type " + std::string(ringproof::oracle::name(tensor.dtype)) +
                        " is not one of " + list_of(rule->types));
    }
  }
}

}  // namespace ringproof::oracle
