// Numbers of a problem (draw.hpp).
#include "tests/suite/draw.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace ringproof::suite {
namespace {

using oracle::DType;

class Drawing {
 public:
  Drawing(const Description& d, const Sizes& sizes, const Types& types)
      : d_(d), types_(types), random_(d.seed) {
    draft_.batches = d.batches, draft_.kv_heads = d.kv_heads;
    draft_.heads = d.kv_heads * d.group;
    draft_.queries = d.queries, draft_.keys = d.keys;
    draft_.head_dim = sizes.head_dims[static_cast<std::size_t>(d.head_dim)];
    draft_.value_dim = sizes.head_dims[static_cast<std::size_t>(d.value_dim)];
    draft_.stride_gap = d.gap;
  }

  Draft make() {
    spec();
    features();
    scores();
    rows();
    masks();
    return std::move(draft_);
  }

 private:
  double uniform() {  // in (0, 1)
    return (static_cast<double>(random_() >> 11) + 0.5) * 0x1p-53;
  }
  double gauss() {
    return std::sqrt(-2 * std::log(uniform())) * std::cos(6.283185307179586 * uniform());
  }
  Index pick(Index count) {
    return static_cast<Index>(random_() % static_cast<std::uint64_t>(count));
  }
  double number() {
    return d_.values == small_integers ? static_cast<double>(pick(5) - 2) : gauss();
  }

  void spec() {
    oracle::Spec& spec = draft_.spec;
    spec.layout = static_cast<oracle::AxisOrder>(d_.axes);
    spec.causal = static_cast<oracle::Causal>(d_.causal);
    spec.window_left = d_.window_left, spec.window_right = d_.window_right;
    if (d_.empty > 0) spec.empty_row = oracle::EmptyRow::nan;
    if (d_.scale > 0) spec.scale = d_.scale == 1 ? 0.25 : 0.3125;
    if (d_.softcap > 0) spec.softcap = d_.softcap == 1 ? 2 : 0.75;
    if (d_.ranks > 1) {
      spec.ranks = d_.ranks;
      if (d_.ring > 0) {
        spec.ring = oracle::Ring{static_cast<oracle::RingLayout>(d_.ring - 1),
                                 static_cast<oracle::RingOrder>(d_.order)};
      }
    }
  }

  void put(const char* name, DType dtype, std::vector<Index> shape,
           const std::function<double(Index)>& value) {
    Index count = 1;
    for (const Index size : shape) count *= size;
    std::vector<double> values;
    for (Index n = 0; n < count; ++n) values.push_back(value(n));
    draft_.put(name, dtype, std::move(shape), std::move(values));
  }

  void features() {
    const Draft& p = draft_;
    const double sharper = d_.values == sharp ? 8 : 1;
    const double larger = d_.values == large_values ? 1000 : 1;
    put("q", types_.input, {p.batches, p.heads, p.queries, p.head_dim},
        [&](Index) { return sharper * number(); });
    put("k", types_.input, {p.batches, p.kv_heads, p.keys, p.head_dim},
        [&](Index) { return number(); });
    put("v", types_.input, {p.batches, p.kv_heads, p.keys, p.value_dim},
        [&](Index) { return larger * number(); });
    const auto steps = [&](double of_key) { return std::ldexp(std::floor(8 * of_key), -2); };
    if (d_.values == ascending_scores) {
      prescribe_scores(draft_, [&](Index j) { return steps(static_cast<double>(j)); });
    } else if (d_.values == descending_scores) {
      prescribe_scores(draft_, [&](Index j) { return steps(static_cast<double>(p.keys - j)); });
    } else if (d_.values == far_apart) {
      prescribe_scores(draft_, [&](Index j) {
        return static_cast<double>(j / 3 % 2 == 0 ? -100 : 96) + static_cast<double>(pick(5));
      });
    }
  }

  /// Shapes that broadcast to [B, H, Nq, Nk]: kScoreShapes of them.
  std::vector<Index> score_shape(int kind) const {
    const Draft& p = draft_;
    if (kind == 1) return {1, 1, 1, p.keys};
    if (kind == 2) return {1, 1, p.queries, p.keys};
    if (kind == 3) return {1, p.heads, 1, p.keys};
    if (kind == 5) return {p.queries, p.keys};
    return {p.batches, p.heads, p.queries, p.keys};
  }

  void scores() {
    if (d_.bias > 0) {
      put("bias", types_.addition, score_shape(d_.bias),
          [&](Index) { return pick(8) == 0 ? -INFINITY : 2 * number(); });
    }
    if (d_.alibi > 0) {
      put("alibi_slopes", DType::f32, {draft_.heads},
          [&](Index h) { return std::ldexp(1.0, static_cast<int>(-1 - h % 8)); });
    }
    if (d_.sinks > 0) {
      put("sinks", types_.addition, {draft_.heads}, [&](Index) { return 2 * number(); });
    }
  }

  /// Boundaries of documents: 0, ..., rows.
  std::vector<Index> boundaries(Index documents, Index rows) {
    std::vector<Index> bounds{0, rows};
    while (static_cast<Index>(bounds.size()) <= documents) bounds.push_back(pick(rows + 1));
    std::sort(bounds.begin(), bounds.end());
    return bounds;
  }

  void rows() {
    const Index documents = 2 + pick(2);
    for (const auto& [suffix, count] :
         {std::pair{"q", draft_.queries}, std::pair{"k", draft_.keys}}) {
      if (d_.rows == 1) {
        const std::vector<Index> bounds = boundaries(documents, count);
        put((std::string("cu_seqlens_") + suffix).c_str(), DType::i32, {documents + 1},
            [&](Index n) { return static_cast<double>(bounds[static_cast<std::size_t>(n)]); });
      } else if (d_.rows == 2) {
        put((std::string("documents_") + suffix).c_str(), DType::i32, {count},
            [&](Index) { return static_cast<double>(pick(4) - 1); });
      } else if (d_.rows == 3) {
        std::vector<Index> order = ascending(count);
        for (std::size_t n = order.size(); n > 1; --n) {
          std::swap(order[n - 1], order[static_cast<std::size_t>(pick(static_cast<Index>(n)))]);
        }
        const Index offset = pick(5);
        put((std::string("positions_") + suffix).c_str(), DType::i64, {count}, [&](Index n) {
          return static_cast<double>(order[static_cast<std::size_t>(n)] + offset);
        });
      }
    }
  }

  void masks() {
    if (d_.mask > 0) {
      put("mask", DType::boolean, score_shape(d_.mask), [&](Index) { return pick(3) != 0; });
    }
    if (d_.lengths > 0) {
      put("key_lengths", DType::i32, {draft_.batches},
          [&](Index) { return static_cast<double>(pick(draft_.keys + 1)); });
    }
  }

  const Description& d_;
  const Types& types_;
  std::mt19937_64 random_;
  Draft draft_;
};

}  // namespace

Draft draw(const Description& description, const Sizes& sizes, const Types& types) {
  return Drawing(description, sizes, types).make();
}

void prescribe_scores(Draft& draft, const std::function<double(Index)>& score) {
  Table& q = draft.table("q");
  std::fill(q.values.begin(), q.values.end(), 0.0);
  for (std::size_t n = 0; n < q.values.size(); n += static_cast<std::size_t>(draft.head_dim)) {
    q.values[n] = 1;
  }
  Table& k = draft.table("k");
  const double largest = oracle::format_of(k.dtype).largest;  // narrow types hold no huge score
  std::fill(k.values.begin(), k.values.end(), 0.0);
  for (Index b = 0; b < draft.batches; ++b) {
    for (Index h = 0; h < draft.kv_heads; ++h) {
      for (Index j = 0; j < draft.keys; ++j) {
        const double wanted = std::clamp(score(j) / draft.scale(), -largest, largest);
        draft.k(b, h, j, 0) = oracle::round_nearest(k.dtype, wanted);
      }
    }
  }
}

void prescribe_values(Draft& draft,
                      const std::function<double(Index, Index, Index, Index)>& value) {
  for (Index b = 0; b < draft.batches; ++b) {
    for (Index h = 0; h < draft.kv_heads; ++h) {
      for (Index j = 0; j < draft.keys; ++j) {
        for (Index c = 0; c < draft.value_dim; ++c) {
          draft.v(b, h, j, c) = oracle::round_nearest(draft.table("v").dtype, value(b, h, j, c));
        }
      }
    }
  }
}

void ask_for_gradients(Draft& draft, const Types& types, std::uint32_t seed, bool with_lse) {
  std::mt19937_64 random(seed + 77u);
  const auto numbers = [&](Index count) {
    std::vector<double> values;
    for (Index n = 0; n < count; ++n) {
      values.push_back(std::ldexp(static_cast<double>(static_cast<Index>(random() % 65) - 32), -4));
    }
    return values;
  };
  const Index rows = draft.batches * draft.heads * draft.queries;
  draft.put("dout", types.input, {draft.batches, draft.heads, draft.queries, draft.value_dim},
            numbers(rows * draft.value_dim));
  if (with_lse) {
    draft.put("dlse", types.addition, {draft.batches, draft.heads, draft.queries, 1},
              numbers(rows));
  }
  draft.gradients = true;
}

void hide_keys(Draft& draft, const std::function<bool(Index)>& visible) {
  if (!draft.has("mask")) {
    draft.put("mask", DType::boolean, {1, 1, 1, draft.keys},
              std::vector<double>(static_cast<std::size_t>(draft.keys), 1));
  }
  Table& mask = draft.table("mask");
  for (std::size_t n = 0; n < mask.values.size(); ++n) {
    if (!visible(static_cast<Index>(n) % draft.keys)) mask.values[n] = 0;
  }
}

}  // namespace ringproof::suite
