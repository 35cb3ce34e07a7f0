#include "oracle/generate/suite.hpp"

#include <algorithm>
#include <array>

#include "oracle/case/error.hpp"

namespace ringproof::oracle {
namespace {

constexpr std::array kTypes{DType::bf16, DType::f16,     DType::f32,
                            DType::bf16, DType::f8_e4m3, DType::f64};

/// From here on one long sum in any order leaves no power.
constexpr std::int64_t kLongRow = 8192;

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  return result;
}

/// Sizes around the blocks of kernels, odd ones, and sizes that no number of ranks divides.
constexpr std::array<std::int64_t, 8> kSizes{33, 17, 65, 31, 63, 97, 37, 129};
constexpr std::array<std::int64_t, 5> kWidths{16, 32, 17, 64, 40};

/// A family on a semantics; `turn` goes round the types.
Recipe combine(const InputFamily& family, const Semantics& semantics, std::size_t turn,
               std::int64_t rows, std::int64_t width) {
  Recipe recipe;
  recipe.family = &family;
  recipe.semantics = semantics.name;
  recipe.queries = recipe.keys = rows;
  recipe.head_dim = recipe.value_dim = width;
  recipe.dtype = kTypes[turn % kTypes.size()];
  if (family.scores == Scores::dyadic) recipe.spec.scale = 0x1.62e42fefa39efp-1;  // ln 2
  semantics.apply(recipe);
  // A score of 100000 leaves no digits of a long dot product in binary32, tiny values none in 16
  // bits.
  if (family.scores == Scores::low) recipe.head_dim = std::min<std::int64_t>(16, width);
  if (family.values == Values::tiny) recipe.dtype = DType::f32;
  recipe.name = std::string(family.name) + "." + std::string(semantics.name) + "." +
                lower(name(recipe.dtype));
  return recipe;
}

Recipe combine(const InputFamily& family, const Semantics& semantics, std::size_t turn) {
  return combine(family, semantics, turn, kSizes[turn % kSizes.size()],
                 kWidths[turn % kWidths.size()]);
}

/// True if the two do not belong together: each would undo what the other is for.
bool excluded(const InputFamily& family, const Semantics& semantics) {
  const bool needs_type = family.values == Values::tiny;
  if (semantics.name == "factors") return needs_type || family.scores == Scores::low;
  // The scale is part of the dyadic family.
  return family.scores == Scores::dyadic &&
         (semantics.name == "scale" || semantics.name == "scale-ln2");
}

std::vector<Recipe> quick() {
  std::vector<Recipe> recipes;
  const auto all = input_families();
  for (std::size_t n = 0; n < semantics().size(); ++n) {
    // Neighbours in the table of semantics meet distant families; every family occurs.
    const InputFamily& one = all[7 * n % all.size()];
    if (!excluded(one, semantics()[n])) recipes.push_back(combine(one, semantics()[n], n));
  }
  return recipes;
}

std::vector<Recipe> full() {
  std::vector<Recipe> recipes;
  std::size_t turn = 0;
  for (const Semantics& semantics : oracle::semantics()) {
    for (const InputFamily& family : input_families()) {
      ++turn;
      if (!excluded(family, semantics)) recipes.push_back(combine(family, semantics, turn));
    }
    ++turn;  // so that sizes and types do not go in step with the families
  }
  return recipes;
}

/// Every semantics, and every family without a mask, as small as they can be and still differ.
std::vector<Recipe> vectors() {
  constexpr std::array<std::int64_t, 4> kFew{9, 7, 11, 13};
  constexpr std::array<std::int64_t, 3> kNarrow{8, 4, 5};
  std::vector<Recipe> recipes;
  const auto add = [&](const InputFamily& family, const Semantics& semantics) {
    const std::size_t turn = recipes.size();
    const bool there = std::any_of(recipes.begin(), recipes.end(), [&](const Recipe& recipe) {
      return recipe.family == &family && recipe.semantics == semantics.name;
    });
    if (there || excluded(family, semantics)) return;
    recipes.push_back(
        combine(family, semantics, turn, kFew[turn % kFew.size()], kNarrow[turn % kNarrow.size()]));
  };
  const auto all = input_families();
  for (std::size_t n = 0; n < semantics().size(); ++n) {
    add(all[7 * n % all.size()], semantics()[n]);
  }
  for (const InputFamily& family : all) add(family, semantics("full"));
  return recipes;
}

std::vector<Recipe> long_context() {
  std::vector<Recipe> recipes;
  for (const std::int64_t keys : {8192, 32768, 131072, 524288}) {
    for (const char* name : {"long-equal", "long-dyadic", "long-coded"}) {
      Recipe recipe = combine(input_family(name), semantics("full"), 0);
      recipe.heads = recipe.kv_heads = 1;
      recipe.queries = 2;
      recipe.keys = keys;
      recipe.head_dim = 16;
      recipe.value_dim = 64;
      recipe.gradients = false;
      recipe.name = std::string(name) + "." + std::to_string(keys) + ".bf16";
      recipes.push_back(recipe);
    }
  }
  return recipes;
}

}  // namespace

std::vector<std::string_view> suite_names() { return {"quick", "full", "long", "vectors"}; }

std::vector<Recipe> suite(std::string_view name) {
  if (name == "quick") return quick();
  if (name == "full") return full();
  if (name == "long") return long_context();
  if (name == "vectors") return vectors();
  throw BadInput("no suite is called \"" + std::string(name) + "\" (quick, full, long, vectors)");
}

std::vector<std::string> contracts_of(DType type) {
  switch (type) {
    case DType::f64:
      return {"fp64", "fp64-ring4"};
    case DType::f32:
      return {"fp32", "fp32-ring4"};
    case DType::f16:
      return {"fp16-flash", "fp16-ring4"};
    case DType::f8_e4m3:
      return {"fp8-e4m3-flash"};
    default:
      return {"bf16-flash", "bf16-ring4"};
  }
}

std::vector<std::string> contracts_of(const Recipe& recipe) {
  if (recipe.keys < kLongRow || recipe.dtype != DType::bf16) return contracts_of(recipe.dtype);
  constexpr std::int64_t kRanks = 8;
  const std::string blocks = "+block128+acc128";
  return {"bf16-flash" + blocks, "bf16-ring" + std::to_string(kRanks) + blocks + "+keys" +
                                     std::to_string((recipe.keys + kRanks - 1) / kRanks)};
}

}  // namespace ringproof::oracle
