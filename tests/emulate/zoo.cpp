// Presets, variants, and kernels of each (zoo.hpp).
#include "tests/emulate/zoo.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace ringproof::emulate {
namespace {

using oracle::DType;
using oracle::Merge;

struct Preset {
  const char* name;
  DType input, output;
  SmallFloat p_cast;
  bool matrix_units;   // truncating steps are allowed
  bool gpu;            // flush to zero, fast exp2, approximate reciprocal
  bool eager;          // 16-bit stores of scores, normalised P
  bool two_pass_only;  // normalised P
  SmallFloat sixteen;  // the 16-bit type of the preset, if any
};

constexpr Preset kPresets[] = {
    {"fp64", DType::f64, DType::f64, kNone, false, false, false, false, kNone},
    {"fp32", DType::f32, DType::f32, kNone, false, false, false, false, kNone},
    {"fp32-simd", DType::f32, DType::f32, kNone, false, false, false, false, kNone},
    {"fp32-gpu", DType::f32, DType::f32, kNone, false, true, false, false, kNone},
    {"tf32-flash", DType::f32, DType::f32, kTf32ToZero, true, true, false, false, kNone},
    {"fp16-flash", DType::f16, DType::f16, kFp16, true, true, false, false, kFp16},
    {"bf16-flash", DType::bf16, DType::bf16, kBf16, true, true, false, false, kBf16},
    {"fp8-e4m3-flash", DType::f8_e4m3, DType::bf16, kE4m3, true, true, false, false, kNone},
    {"fp16-eager", DType::f16, DType::f16, kFp16, true, true, true, true, kFp16},
    {"bf16-eager", DType::bf16, DType::bf16, kBf16, true, true, true, true, kBf16},
    {"bf16-unfused", DType::bf16, DType::bf16, kBf16, true, true, true, true, kBf16},
    {"bf16-io", DType::bf16, DType::bf16, kNone, false, true, false, false, kBf16},
    {"fp16-io", DType::f16, DType::f16, kNone, false, true, false, false, kFp16},
    {"bf16-p16", DType::bf16, DType::bf16, kBf16, false, true, false, true, kBf16},
};

const Preset& preset_of(const std::string& name) {
  for (const Preset& preset : kPresets)
    if (name == preset.name) return preset;
  throw std::logic_error("no such preset: " + name);
}

template <class T>
T one_of(std::mt19937_64& random, std::initializer_list<T> choices) {
  return choices.begin()[random() % choices.size()];
}

bool chance(std::mt19937_64& random, int in) { return random() % static_cast<unsigned>(in) == 0; }

class Drawer {
 public:
  Drawer(const ZooEntry& entry, std::int64_t ranks, std::mt19937_64& random)
      : entry_(entry), preset_(preset_of(entry.preset)), random_(random) {
    n_.ranks = entry.kind == Kind::none ? 1 : entry.count > 0 ? entry.count : ranks;
  }

  Numerics draw() {
    n_.binary64 = entry_.preset == "fp64";
    n_.input = preset_.input, n_.output = preset_.output;
    // A contract that allows flushing covers a kernel that does not flush, too.
    n_.flush = (preset_.gpu || entry_.has("ftz")) && !n_.binary64 && !chance(random_, 4);
    loads();
    functions();
    sums();
    softmax();
    merges();
    return n_;
  }

 private:
  void loads() {
    if (entry_.preset == "tf32-flash") n_.load = one_of(random_, {kTf32, kTf32ToZero});
    if (entry_.preset == "bf16-unfused") n_.load = kBf16, n_.root_scale = true;
    if (preset_.eager) n_.score_store = preset_.sixteen;
  }

  /// What a declared relative error leaves after the final rounding of the function's value.
  double left(double declared) const { return std::max(0.0, declared - unit()) * (1 - 0x1p-20); }
  double unit() const { return n_.binary64 ? 0x1p-53 : 0x1p-24; }

  void functions() {
    n_.noise = one_of(random_, {Noise::none, Noise::random, Noise::random, Noise::up, Noise::down});
    const bool simd = entry_.preset == "fp32-simd";
    double exponential = n_.binary64 ? 0x1p-52 : preset_.gpu ? 0x1p-21 : simd ? 0x1p-22 : 0x1p-23;
    if (entry_.has("exp13")) exponential = 0x1p-13, n_.exp_zero_noisy = true;
    n_.exp_error = left(exponential);
    n_.log_error = left(n_.binary64 ? 0x1p-51 : 0x1p-22);
    n_.log_absolute = n_.binary64 ? 0x1p-51 : 0x1p-22;
    n_.tanh_error = left(entry_.has("softcap") ? 0x1p-10 : n_.binary64 ? 0x1p-51 : 0x1p-22);
    n_.sigmoid_error = left(n_.binary64 ? 0x1p-51 : preset_.gpu ? 0x1p-20 : 0x1p-22);
    n_.divide_error = preset_.gpu ? left(0x1p-23) : 0;
    n_.reciprocal = chance(random_, 2);
  }

  void sums() {
    const auto order = [&] {
      const bool truncates = preset_.matrix_units && !chance(random_, 3);
      return truncates ? Sum::truncating
                       : one_of(random_, {Sum::sequential, Sum::fused, Sum::reversed, Sum::pairwise,
                                          Sum::lanes});
    };
    n_.score_sum = order(), n_.l_sum = order(), n_.pv_sum = order();
    n_.step = entry_.preset == "tf32-flash" ? one_of(random_, {4, 8}) : one_of(random_, {16, 32});
  }

  void softmax() {
    // The presets with a fast exp2 declare the fused form, which covers the others
    // (docs/contract.md, presets).
    const bool fused = preset_.gpu || entry_.preset == "fp32-simd";
    n_.argument =
        fused && !preset_.eager
            ? one_of(random_, {Argument::fused, Argument::fused, Argument::sub, Argument::sub_log2})
            : Argument::sub;
    if (entry_.preset == "bf16-p16")
      n_.argument = one_of(random_, {Argument::fused, Argument::sub});
    n_.p_cast = preset_.p_cast;
    if (entry_.preset == "fp8-e4m3-flash") n_.p_scale = 256;
    const bool may_normalize = !preset_.p_cast && entry_.kind != Kind::split &&
                               !entry_.has("exp13") && !entry_.has("asc") && !entry_.has("desc") &&
                               !entry_.has("acc");
    n_.two_pass = preset_.two_pass_only || (may_normalize && chance(random_, 4));
    n_.sum_from_cast = entry_.has("sumcast");
    const std::int64_t smallest =
        entry_.number("block", preset_.matrix_units && !preset_.eager ? 16 : 1);
    n_.leaf = entry_.number("acc", 0);
    const std::int64_t unit = std::max(smallest, n_.leaf);
    n_.block = unit > 1 ? unit * one_of(random_, {1, 1, 2, 4})
                        : one_of<std::int64_t>(random_, {1, 7, 16, 17, 64});
    const bool truncates = n_.l_sum == Sum::truncating || n_.pv_sum == Sum::truncating;
    if (truncates && n_.block % n_.step != 0) n_.block = (n_.block / n_.step + 1) * n_.step;
    n_.order = entry_.has("asc") ? Order::ascending
               : entry_.has("desc")
                   ? Order::descending
                   : one_of(random_, {Order::ascending, Order::descending, Order::shuffled});
    if (entry_.fields.find("lazy") != std::string::npos) n_.lazy_log2 = 8;
  }

  void merges() {
    switch (entry_.kind) {
      case Kind::none:
        return;
      case Kind::split:
        n_.merge = Merge::unnormalized;
        break;
      case Kind::decode:
        n_.merge = Merge::lse_once;
        break;
      case Kind::ring:
        n_.merge = entry_.has("sigmoid") ? Merge::lse_sigmoid
                   : n_.two_pass         ? Merge::lse_sequential
                                 : one_of(random_, {Merge::unnormalized, Merge::lse_sequential});
    }
    n_.contiguous = entry_.kind != Kind::ring;
    n_.longest_partial = entry_.number("keys", 0);
    n_.carried = entry_.kind == Kind::ring && n_.merge == Merge::unnormalized && chance(random_, 2);
    n_.layout = static_cast<oracle::RingLayout>(random_() % 3);
    n_.ring_order = one_of(random_, {oracle::RingOrder::down, oracle::RingOrder::up});
    if (entry_.lowp) {
      n_.partial_store = n_.running_store = preset_.sixteen;
      if (entry_.has("run32")) n_.running_store = kNone;
    }
  }

  const ZooEntry& entry_;
  const Preset& preset_;
  std::mt19937_64& random_;
  Numerics n_;
};

constexpr const char* kLazy = R"("softmax":{"rescale":"lazy","lazy_log2":8})";

void add_variants(const Preset& preset, std::vector<ZooEntry>& entries) {
  const auto add = [&](ZooEntry entry) {
    entry.preset = preset.name;
    entries.push_back(std::move(entry));
  };
  add({});
  add({.kind = Kind::decode, .count = 4});
  add({.kind = Kind::decode, .count = 3, .variants = {"keys150"}});
  add({.kind = Kind::ring, .count = 0});
  add({.kind = Kind::ring, .count = 3, .variants = {"sigmoid"}});
  add({.kind = Kind::ring, .count = 5, .variants = {"bias", "softcap"}});
  add({.variants = {"block32"}});
  add({.variants = {"ftz"}});
  add({.variants = {"softcap"}});
  add({.variants = {"bias"}});
  add({.variants = {"isolated"}});
  if (preset.sixteen) {
    add({.variants = {"biasstore"}});
    add({.variants = {"gacc32"}});
    if (preset.sixteen.digits == kBf16.digits) {
      add({.kind = Kind::ring, .count = 4, .lowp = true});
      add({.kind = Kind::ring, .count = 4, .lowp = true, .variants = {"run32"}});
      add({.kind = Kind::ring, .count = 3, .lowp = true, .variants = {"sigmoid", "run32"}});
    }
  }
  if (preset.two_pass_only) return;
  add({.kind = Kind::split, .count = 3});
  add({.kind = Kind::ring, .count = 4, .variants = {"block32", "acc32"}});
  add({.variants = {"block64", "acc64"}});
  add({.variants = {"asc"}});
  add({.variants = {"desc"}});
  add({.variants = {"exp13"}});
  if (preset.p_cast) {
    add({.variants = {"sumcast"}});
    if (preset.input != DType::f8_e4m3) add({.variants = {"sumcast"}, .fields = kLazy});
  }
  // 2^8 times the scale of P overflows e4m3 (H1).
  if (preset.input != DType::f8_e4m3) add({.fields = kLazy});
}

}  // namespace

bool ZooEntry::has(const std::string& variant) const {
  return std::any_of(variants.begin(), variants.end(), [&](const std::string& one) {
    return one == variant || (one.starts_with(variant) && number(variant, -1) >= 0);
  });
}

std::int64_t ZooEntry::number(const std::string& variant, std::int64_t fallback) const {
  for (const std::string& one : variants) {
    const std::string rest = one.starts_with(variant) ? one.substr(variant.size()) : "";
    if (!rest.empty() &&
        std::all_of(rest.begin(), rest.end(), [](char c) { return c >= '0' && c <= '9'; }))
      return std::stoll(rest);
  }
  return fallback;
}

std::string ZooEntry::name() const {
  std::string text = preset;
  const char* suffix[] = {"", "-split", "-decode", "-ring"};
  text += suffix[static_cast<int>(kind)];
  if (count > 0 && kind != Kind::none) text += std::to_string(count);
  if (lowp) text += "-lowp";
  for (const std::string& variant : variants) text += "+" + variant;
  return text;
}

std::string ZooEntry::contract() const {
  return fields.empty() ? name() : R"({"base":")" + name() + "\"," + fields + "}";
}

std::vector<ZooEntry> zoo() {
  std::vector<ZooEntry> entries;
  for (const Preset& preset : kPresets) add_variants(preset, entries);
  return entries;
}

std::vector<std::string> zoo_presets() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

std::vector<std::string> zoo_variants() {
  return {"-split",   "-decode", "-ring",      "-lowp",     "+block", "+acc",   "+keys",
          "+asc",     "+desc",   "+sigmoid",   "+run32",    "+ftz",   "+exp13", "+sumcast",
          "+softcap", "+bias",   "+biasstore", "+isolated", "+gacc"};
}

Numerics draw_numerics(const ZooEntry& entry, std::int64_t ranks, std::mt19937_64& random) {
  return Drawer(entry, ranks, random).draw();
}

}  // namespace ringproof::emulate
