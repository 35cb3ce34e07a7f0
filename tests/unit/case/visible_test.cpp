// Visibility as a property over every feature at once: random cases, and beside the implementation
// a slow transcription of docs/formats.md ("Positions", "Visible") that starts from the stored
// tensors.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <random>

#include "oracle/case/problem.hpp"
#include "tests/support/property.hpp"
#include "tests/unit/case/case_builder.hpp"

namespace ringproof::test {
namespace {

using oracle::DType;
using List = std::vector<std::int64_t>;
constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

/// A random case, its tensors kept as plain numbers for the transcription.
struct RandomCase {
  std::mt19937_64 random;
  std::int64_t batches, heads, kv_heads, queries, keys;
  std::string causal = "none";
  std::int64_t left = -1, right = -1;
  std::optional<List> key_lengths, cu_q, cu_k, documents_q, documents_k;
  std::optional<List> positions_q, positions_k;  // [B, N] or [N]
  std::optional<OwnedTensor> mask, bias;

  explicit RandomCase(std::uint64_t seed) : random(seed) {
    batches = below(3) + 1;
    kv_heads = below(2) + 1;
    heads = kv_heads * (below(2) + 1);
    queries = below(12);
    // From 16 keys a run on, index_keys finds runs worth a bisection.
    keys = below(3) == 0 ? queries : below(4) == 0 ? 64 + below(30) : below(14);
    causal = std::vector<std::string>{"none", "top_left",
                                      "bottom_right"}[static_cast<std::size_t>(below(3))];
    if (chance()) left = below(6) - 1;
    if (chance()) right = below(6) - 1;
    if (chance()) key_lengths = list(batches, [&](std::int64_t) { return below(keys + 1); });
    choose_documents();
    if (chance()) positions_q = positions(queries);
    if (chance()) positions_k = positions(keys);
    if (chance()) mask = score_tensor(DType::boolean);
    if (chance())
      bias = score_tensor(chance() ? DType::f32 : chance() ? DType::bf16 : DType::f8_e5m2);
  }

  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  }
  bool chance() { return below(2) == 0; }

  template <class Value>
  List list(std::int64_t count, Value&& value) {
    List result;
    for (std::int64_t n = 0; n < count; ++n) result.push_back(value(n));
    return result;
  }

  List boundaries(std::int64_t documents, std::int64_t rows) {
    List cuts = list(documents + 1, [&](std::int64_t) { return below(rows + 1); });
    cuts.front() = 0;
    cuts.back() = rows;
    std::sort(cuts.begin(), cuts.end());
    return cuts;
  }

  void choose_documents() {
    if (chance()) return;
    if (chance()) {
      const std::int64_t most = below(4) + 1;
      documents_q = list(queries, [&](std::int64_t) { return below(most + 1) - 1; });
      documents_k = list(keys, [&](std::int64_t) { return below(most + 1) - 1; });
    } else {
      batches = 1;
      if (key_lengths) key_lengths->resize(1);
      const std::int64_t documents = below(4) + 1;
      cu_q = boundaries(documents, queries);
      cu_k = boundaries(documents, keys);
    }
  }

  List positions(std::int64_t rows) {
    const bool rising = chance();
    const bool per_batch = chance();
    List all = list(per_batch ? batches * rows : rows, [&](std::int64_t) { return below(25) - 5; });
    if (rising && rows > 0) {
      for (auto row = all.begin(); row != all.end(); row += rows) std::sort(row, row + rows);
    }
    return all;
  }

  OwnedTensor score_tensor(DType type) {
    List shape{batches, heads, queries, keys};
    shape.erase(shape.begin(), shape.begin() + below(4));
    for (auto& size : shape) {
      if (below(3) == 0) size = 1;
    }
    return make_tensor(type, shape, [&](std::int64_t) {
      return type == DType::boolean ? static_cast<double>(below(2))
             : below(4) == 0        ? kMinusInfinity
                                    : 1.0;
    });
  }

  CaseBuilder builder() const {
    CaseBuilder result = small_case(batches, heads, kv_heads, queries, keys);
    result.spec = R"({"version": 1, "causal": ")" + causal + R"(", "window": [)" +
                  std::to_string(left) + ", " + std::to_string(right) + "]}";
    const auto set = [&](const char* name, DType type, const std::optional<List>& values) {
      if (values) result.set(name, make_list(type, *values));
    };
    set("key_lengths", DType::i32, key_lengths);
    set("cu_seqlens_q", DType::i32, cu_q);
    set("cu_seqlens_k", DType::i32, cu_k);
    set("documents_q", DType::i32, documents_q);
    set("documents_k", DType::i32, documents_k);
    const auto set_positions = [&](const char* name, const std::optional<List>& values,
                                   std::int64_t rows) {
      if (!values) return;
      OwnedTensor tensor = make_list(DType::i64, *values);
      const bool per_batch = static_cast<std::int64_t>(values->size()) == batches * rows;
      if (per_batch) tensor.shape = {batches, rows};
      result.set(name, std::move(tensor));
    };
    set_positions("positions_q", positions_q, queries);
    set_positions("positions_k", positions_k, keys);
    if (mask) result.set("mask", *mask);
    if (bias) result.set("bias", *bias);
    return result;
  }
};

/// A seed that does not start small, as arbitrary integers of RapidCheck do.
std::uint64_t any_seed() {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::arbitrary<std::uint64_t>());
}

/// Document of row i under boundaries `cu`, and its first row.
std::pair<std::int64_t, std::int64_t> packed_document(const List& cu, std::int64_t i) {
  std::int64_t s = 0;
  while (!(cu[static_cast<std::size_t>(s)] <= i && i < cu[static_cast<std::size_t>(s) + 1])) ++s;
  return {s, cu[static_cast<std::size_t>(s)]};
}

std::int64_t at(const List& values, std::int64_t b, std::int64_t rows, std::int64_t n) {
  const bool once = static_cast<std::int64_t>(values.size()) == rows;
  return values[static_cast<std::size_t>(once ? n : b * rows + n)];
}

/// Element [b, h, i, j] of a tensor that broadcasts, by numpy's rule on the stored shape.
double score_at(const OwnedTensor& tensor, std::array<std::int64_t, 4> index) {
  std::int64_t offset = 0;
  const std::size_t axes = tensor.shape.size();
  for (std::size_t axis = 0; axis < axes; ++axis) {
    const std::int64_t size = tensor.shape[axis];
    offset = offset * size + (size == 1 ? 0 : index[4 - axes + axis]);
  }
  return oracle::decode(tensor.dtype, tensor.bytes.data() + static_cast<std::size_t>(offset) *
                                                                oracle::size_of(tensor.dtype));
}

bool slow_visible(const RandomCase& c, std::int64_t b, std::int64_t h, std::int64_t i,
                  std::int64_t j) {
  // Same document.
  std::int64_t first_q = 0, first_k = 0, length_q = c.queries, length_k = c.keys;
  if (c.documents_q) {
    const auto document = (*c.documents_q)[static_cast<std::size_t>(i)];
    if (document == -1 || document != (*c.documents_k)[static_cast<std::size_t>(j)]) return false;
  }
  if (c.cu_q) {
    const auto [document_q, begin_q] = packed_document(*c.cu_q, i);
    const auto [document_k, begin_k] = packed_document(*c.cu_k, j);
    if (document_q != document_k) return false;
    first_q = begin_q;
    first_k = begin_k;
    length_q = (*c.cu_q)[static_cast<std::size_t>(document_q) + 1] - begin_q;
    length_k = (*c.cu_k)[static_cast<std::size_t>(document_q) + 1] - begin_k;
  }
  // j < key length; mask true; a bias of -infinity counts as not visible.
  if (c.key_lengths && j >= (*c.key_lengths)[static_cast<std::size_t>(b)]) return false;
  if (c.mask && score_at(*c.mask, {b, h, i, j}) == 0) return false;
  if (c.bias && score_at(*c.bias, {b, h, i, j}) == kMinusInfinity) return false;
  // Positions.
  const std::int64_t offset = c.causal == "bottom_right" ? length_k - length_q : 0;
  const std::int64_t q = c.positions_q ? at(*c.positions_q, b, c.queries, i) : i - first_q + offset;
  const std::int64_t k = c.positions_k ? at(*c.positions_k, b, c.keys, j) : j - first_k;
  if (c.causal != "none" && !(k <= q)) return false;
  if (c.left >= 0 && !(q - c.left <= k)) return false;
  return c.right < 0 || k <= q + c.right;
}

void check_query(const RandomCase& raw, const oracle::Problem& p, std::int64_t b, std::int64_t h,
                 std::int64_t i) {
  const oracle::KeyRange range = visible_range(p, b, i);
  RC_ASSERT(0 <= range.first && range.first <= range.last && range.last <= raw.keys);
  std::vector<std::uint8_t> row(static_cast<std::size_t>(raw.keys), 7);
  visible_row(p, b, h, i, {0, raw.keys}, row.data());
  for (std::int64_t j = 0; j < raw.keys; ++j) {
    const bool expected = slow_visible(raw, b, h, i, j);
    RC_ASSERT(visible(p, b, h, i, j) == expected);
    RC_ASSERT(row[static_cast<std::size_t>(j)] == static_cast<std::uint8_t>(expected));
    RC_ASSERT(!expected || (range.first <= j && j < range.last));
  }
  std::vector<std::uint8_t> part(static_cast<std::size_t>(range.size()), 7);
  visible_row(p, b, h, i, range, part.data());
  RC_ASSERT(std::equal(part.begin(), part.end(), row.begin() + range.first));
}

void check_agreement(const RandomCase& raw) {
  const CaseBuilder builder = raw.builder();
  const oracle::Case assembled = builder.assemble();
  oracle::Problem scanning = assembled.problem;
  scanning.key_runs.clear();
  for (std::int64_t b = 0; b < raw.batches; ++b) {
    for (std::int64_t h = 0; h < raw.heads; ++h) {
      for (std::int64_t i = 0; i < raw.queries; ++i) {
        check_query(raw, assembled.problem, b, h, i);
        check_query(raw, scanning, b, h, i);
      }
    }
  }
}

void check_tightness(RandomCase raw) {
  raw.mask.reset();
  raw.bias.reset();
  const CaseBuilder builder = raw.builder();
  const oracle::Case assembled = builder.assemble();
  for (std::int64_t b = 0; b < raw.batches; ++b) {
    for (std::int64_t i = 0; i < raw.queries; ++i) {
      const oracle::KeyRange range = visible_range(assembled.problem, b, i);
      if (range.size() == 0) continue;
      RC_ASSERT(slow_visible(raw, b, 0, i, range.first));
      RC_ASSERT(slow_visible(raw, b, 0, i, range.last - 1));
    }
  }
}

}  // namespace

TEST_CASE("visible, visible_range and visible_row are the documented text on every feature") {
  property("all three agree with the transcription", [] {
    const std::uint64_t seed = any_seed();
    for (std::uint64_t n = 0; n < 8; ++n) check_agreement(RandomCase(seed + n));
  });
}

TEST_CASE("the range ends at visible keys where neither mask nor bias hides any") {
  property("first and last key of the range are visible", [] {
    const std::uint64_t seed = any_seed();
    for (std::uint64_t n = 0; n < 8; ++n) check_tightness(RandomCase(seed + n));
  });
}

TEST_CASE("keys in long rising runs are found by bisection, and in any other order too") {
  CaseBuilder builder = small_case(1, 1, 1, 64, 64);
  builder.spec = R"({"version": 1, "causal": "top_left", "window": [9, -1]})";
  const oracle::Case plain = builder.assemble();
  REQUIRE(plain.problem.key_runs.size() == 1);
  CHECK(plain.problem.key_runs[0].size() == 1);
  List falling(64);
  for (std::size_t n = 0; n < 64; ++n) falling[n] = 63 - static_cast<std::int64_t>(n);
  builder.set("positions_k", make_list(DType::i64, falling));
  const oracle::Case reversed = builder.assemble();
  CHECK(reversed.problem.key_runs.empty());
  for (std::int64_t i = 0; i < 64; ++i) {
    const oracle::KeyRange forward = visible_range(plain.problem, 0, i);
    CHECK(forward.first == std::max<std::int64_t>(0, i - 9));
    CHECK(forward.last == i + 1);
    const oracle::KeyRange backward = visible_range(reversed.problem, 0, i);
    CHECK(backward.first == 64 - forward.last);
    CHECK(backward.last == 64 - forward.first);
  }
}

TEST_CASE("windows as wide as the integers and positions at their limit do not overflow") {
  CaseBuilder builder = small_case(1, 1, 1, 1, 2);
  builder.spec = R"({"version": 1, "window": [9223372036854775807, 9223372036854775807]})";
  const std::int64_t farthest = std::int64_t{1} << 52;
  for (const std::int64_t q : {-farthest, farthest}) {
    OwnedTensor position{DType::i64, {1}, std::vector<std::byte>(8)};
    std::memcpy(position.bytes.data(), &q, 8);
    builder.set("positions_q", std::move(position));
    const oracle::Case assembled = builder.assemble();
    CHECK(visible(assembled.problem, 0, 0, 0, 0));
    CHECK(visible(assembled.problem, 0, 0, 0, 1));
    CHECK(visible_range(assembled.problem, 0, 0).size() == 2);
  }
}

TEST_CASE("a bias that is not a number, or plus infinity, hides nothing") {
  CaseBuilder builder = small_case(1, 1, 1, 1, 4);
  const double values[] = {std::nan(""), -kMinusInfinity, kMinusInfinity, -1e30};
  builder.set("bias", make_tensor(DType::f64, {4}, [&](std::int64_t n) { return values[n]; }));
  const oracle::Case assembled = builder.assemble();
  std::uint8_t row[4];
  visible_row(assembled.problem, 0, 0, 0, {0, 4}, row);
  CHECK(row[0] == 1);
  CHECK(row[1] == 1);
  CHECK(row[2] == 0);
  CHECK(row[3] == 1);
}

}  // namespace ringproof::test
