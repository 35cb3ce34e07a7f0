// Drawing and writing random cases (case_description.hpp).
#include "tests/tiers/case_description.hpp"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "oracle/case/case_file.hpp"

namespace ringproof::test {
namespace {

using oracle::DType;
using Shape = std::vector<std::int64_t>;

constexpr DType kQueryTypes[] = {DType::f64, DType::f32, DType::bf16, DType::f16, DType::f8_e4m3};
constexpr DType kOtherTypes[] = {DType::f32, DType::f8_e4m3, DType::f8_e5m2};

/// Collects tensors, and draws their numbers.
class CaseWriter {
 public:
  explicit CaseWriter(const CaseDescription& d) : d_(d), random_(d.seed) {}

  void write(const std::string& path) {
    draw_features();
    draw_score_terms();
    draw_rows();
    draw_factors();
    draw_upstream();
    std::vector<oracle::NamedTensor> named;
    for (const Stored& one : stored_) {
      named.push_back({one.name, one.dtype, one.shape, one.bytes.data()});
    }
    oracle::write_case(path, named, spec());
  }

 private:
  struct Stored {
    std::string name;
    DType dtype;
    Shape shape;
    std::vector<std::byte> bytes;
  };

  std::int64_t integer(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  double normal() { return std::normal_distribution<double>()(random_); }
  std::int64_t heads() const { return d_.kv_heads * d_.group; }

  static std::int64_t count(const Shape& shape) {
    std::int64_t product = 1;
    for (const std::int64_t size : shape) product *= size;
    return product;
  }

  /// A tensor whose element n is value(n).
  void add(const std::string& name, DType dtype, const Shape& shape, const auto& value) {
    Stored one{name, dtype, shape, {}};
    const auto width = static_cast<std::int64_t>(oracle::size_of(dtype));
    one.bytes.resize(static_cast<std::size_t>(count(shape) * width) + 8);
    for (std::int64_t n = 0; n < count(shape); ++n) {
      std::byte* place = one.bytes.data() + n * width;
      if (oracle::is_float(dtype)) {
        oracle::encode(dtype, oracle::round_nearest(dtype, value(n)), place);
      } else {
        const auto number = static_cast<std::int64_t>(value(n));
        for (std::int64_t byte = 0; byte < width; ++byte) {
          place[byte] = static_cast<std::byte>(number >> (8 * byte));
        }
      }
    }
    stored_.push_back(std::move(one));
  }

  /// [B, H, N, D] in the axis order of the case.
  Shape features(std::int64_t head_count, std::int64_t rows, std::int64_t columns) const {
    if (d_.layout == 1) return {d_.batches, rows, head_count, columns};
    if (d_.layout == 2) return {rows, head_count, columns};
    return {d_.batches, head_count, rows, columns};
  }

  /// Row and batch of element n of such a tensor.
  std::int64_t row_of(const Shape& shape, std::int64_t n) const {
    if (d_.layout == 2) return n / (shape[1] * shape[2]);
    if (d_.layout == 1) return n / (shape[2] * shape[3]) % shape[1];
    return n / shape[3] % shape[2];
  }
  std::int64_t batch_of(const Shape& shape, std::int64_t n) const {
    return d_.layout == 2 ? 0 : n / (count(shape) / shape[0]);
  }

  void draw_features() {
    for (std::int64_t b = 0; b < d_.batches; ++b) lengths_.push_back(integer(0, d_.keys));
    const DType q_type = kQueryTypes[d_.q_type];
    const DType k_type = d_.kv_type == 0 ? q_type : kOtherTypes[d_.kv_type - 1];
    add("q", q_type, features(heads(), d_.queries, d_.head_dim), [&](auto) { return normal(); });
    for (const auto& [name, width] : {std::pair{"k", d_.head_dim}, std::pair{"v", d_.value_dim}}) {
      const Shape shape = features(d_.kv_heads, d_.keys, width);
      add(name, k_type, shape, [&](std::int64_t n) {
        const bool padding = d_.key_lengths && row_of(shape, n) >= lengths_[batch_of(shape, n)];
        return padding ? std::numeric_limits<double>::quiet_NaN() : normal();
      });
    }
  }

  Shape score_shape(int kind) const {
    if (kind == 1) return {d_.keys};
    if (kind == 2) return {d_.queries, d_.keys};
    if (kind == 3) return {heads(), 1, d_.keys};
    return {d_.batches, heads(), d_.queries, d_.keys};
  }

  void draw_score_terms() {
    if (d_.bias > 0) {
      const DType types[] = {DType::f32, DType::bf16, DType::f64};
      add("bias", types[integer(0, 2)], score_shape(d_.bias), [&](auto) {
        return integer(0, 9) == 0 ? -std::numeric_limits<double>::infinity() : normal();
      });
    }
    if (d_.mask > 0) {
      add("mask", DType::boolean, score_shape(d_.mask), [&](auto) { return integer(0, 3) != 0; });
    }
    if (d_.alibi > 0) {
      const Shape shape = d_.alibi == 1 ? Shape{heads()} : Shape{d_.batches, heads()};
      add("alibi_slopes", DType::f32, shape, [&](auto) { return 0.1 * normal(); });
    }
    if (d_.sinks) add("sinks", DType::f32, {heads()}, [&](auto) { return normal(); });
  }

  void draw_rows() {
    if (d_.key_lengths) {
      add("key_lengths", DType::i32, {d_.batches},
          [&](std::int64_t n) { return lengths_[static_cast<std::size_t>(n)]; });
    }
    if (d_.rows == 1) {
      const std::int64_t documents = integer(1, 3);
      for (const auto& [name, rows] :
           {std::pair{"cu_seqlens_q", d_.queries}, std::pair{"cu_seqlens_k", d_.keys}}) {
        std::vector<std::int64_t> bounds{0};
        for (std::int64_t s = 1; s < documents; ++s) bounds.push_back(integer(bounds.back(), rows));
        bounds.push_back(rows);
        add(name, DType::i32, {documents + 1},
            [&](std::int64_t n) { return bounds[static_cast<std::size_t>(n)]; });
      }
    }
    if (d_.rows >= 2) {
      const bool documents = d_.rows == 2 || integer(0, 2) == 0;
      for (const auto& [name, rows] : {std::pair{"q", d_.queries}, std::pair{"k", d_.keys}}) {
        if (documents) {
          add(std::string("documents_") + name, DType::i32, {rows},
              [&](auto) { return integer(-1, 1); });
        }
        if (d_.rows >= 3) {
          const Shape shape = d_.rows == 3 ? Shape{rows} : Shape{d_.batches, rows};
          add(std::string("positions_") + name, DType::i64, shape,
              [&](auto) { return integer(-3, 30); });
        }
      }
    }
  }

  /// One factor for all, one a row, or one for each block of a divisor.
  Shape factor_shape(std::int64_t head_count, std::int64_t rows, std::int64_t columns) {
    if (d_.factors == 1) return d_.layout == 2 ? Shape{1, 1, 1} : Shape{1, 1, 1, 1};
    Shape shape = features(head_count, rows, columns);
    for (std::int64_t& size : shape) {
      std::vector<std::int64_t> divisors{1};
      for (std::int64_t divisor = 2; divisor <= size; ++divisor) {
        if (size % divisor == 0) divisors.push_back(divisor);
      }
      if (size > 0) size = divisors[integer(0, static_cast<std::int64_t>(divisors.size()) - 1)];
    }
    return shape;
  }

  void draw_factors() {
    if (d_.factors == 0) return;
    const auto factor = [&](auto) { return std::exp(normal()); };
    add("q_scale", DType::f32, factor_shape(heads(), d_.queries, d_.head_dim), factor);
    if (d_.factors == 1) return;
    add("k_scale", DType::f32, factor_shape(d_.kv_heads, d_.keys, d_.head_dim), factor);
    add("v_scale", DType::f32, factor_shape(d_.kv_heads, d_.keys, d_.value_dim), factor);
  }

  /// In q's type, or a wider one where q has 8 bits.
  void draw_upstream() {
    const DType type = kQueryTypes[std::min(d_.q_type, 3)];
    const Shape out = features(heads(), d_.queries, d_.value_dim);
    const Shape lse =
        d_.layout == 2 ? Shape{heads(), d_.queries} : Shape{d_.batches, heads(), d_.queries};
    if (d_.upstream & 1) add("dout", type, out, [&](auto) { return normal(); });
    if (d_.upstream & 2) add("dlse", type, lse, [&](auto) { return normal(); });
  }

  std::string spec() const {
    const char* layouts[] = {"bhnd", "bnhd", "nhd"};
    const char* causals[] = {"none", "top_left", "bottom_right"};
    const char* empty_rows[] = {"zero", "nan", "any"};
    nlohmann::json spec{{"version", 1},
                        {"layout", layouts[d_.layout]},
                        {"causal", causals[d_.causal]},
                        {"window", {d_.window_left, d_.window_right}},
                        {"empty_row", empty_rows[d_.empty_row]}};
    if (d_.scale > 0) spec["scale"] = d_.scale == 1 ? 0.25 : 0.3;
    if (d_.softcap > 0) spec["softcap"] = d_.softcap == 1 ? 2.0 : 1.7;
    return spec.dump();
  }

  const CaseDescription& d_;
  std::mt19937_64 random_;
  std::vector<std::int64_t> lengths_;
  std::vector<Stored> stored_;
};

}  // namespace

std::ostream& operator<<(std::ostream& stream, const CaseDescription& d) {
  return stream << "B " << d.batches << " Hkv " << d.kv_heads << " group " << d.group << " Nq "
                << d.queries << " Nk " << d.keys << " D " << d.head_dim << " Dv " << d.value_dim
                << " q_type " << d.q_type << " kv_type " << d.kv_type << " layout " << d.layout
                << " causal " << d.causal << " window " << d.window_left << "," << d.window_right
                << " scale " << d.scale << " softcap " << d.softcap << " bias " << d.bias
                << " mask " << d.mask << " alibi " << d.alibi << " sinks " << d.sinks
                << " key_lengths " << d.key_lengths << " rows " << d.rows << " factors "
                << d.factors << " empty_row " << d.empty_row << " upstream " << d.upstream
                << " seed " << d.seed;
}

void write_case_file(const CaseDescription& description, const std::string& path) {
  CaseWriter(description).write(path);
}

}  // namespace ringproof::test

rc::Gen<ringproof::test::CaseDescription>
rc::Arbitrary<ringproof::test::CaseDescription>::arbitrary() {
  using D = ringproof::test::CaseDescription;
  const auto size = [](std::int64_t low, std::int64_t high) {
    return gen::inRange<std::int64_t>(low, high + 1);
  };
  const auto choice = [](int count) { return gen::inRange(0, count); };
  const auto drawn = gen::build<D>(
      gen::set(&D::batches, size(1, 2)), gen::set(&D::kv_heads, size(1, 2)),
      gen::set(&D::group, size(1, 3)), gen::set(&D::queries, size(1, 12)),
      gen::set(&D::keys, size(1, 12)), gen::set(&D::head_dim, size(1, 8)),
      gen::set(&D::value_dim, size(1, 6)), gen::set(&D::q_type, choice(5)),
      gen::set(&D::kv_type, choice(4)), gen::set(&D::layout, choice(3)),
      gen::set(&D::causal, choice(3)), gen::set(&D::window_left, gen::inRange(-1, 9)),
      gen::set(&D::window_right, gen::inRange(-1, 9)), gen::set(&D::scale, choice(3)),
      gen::set(&D::softcap, choice(3)), gen::set(&D::bias, choice(5)),
      gen::set(&D::mask, choice(5)), gen::set(&D::alibi, choice(3)), gen::set(&D::sinks),
      gen::set(&D::key_lengths), gen::set(&D::rows, choice(5)), gen::set(&D::factors, choice(4)),
      gen::set(&D::empty_row, choice(3)), gen::set(&D::seed));
  return gen::map(drawn, [](D description) {
    // Packed rows and the axis order without a batch axis are for one batch.
    if (description.layout == 2 || description.rows == 1) description.batches = 1;
    return description;
  });
}
