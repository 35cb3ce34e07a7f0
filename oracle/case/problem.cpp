// Which keys a query may see: the paragraph "Visible" of docs/formats.md in three forms. visible()
// is that text; visible_range() and visible_row() are the same for whole rows without a test per
// key.
#include "oracle/case/problem.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace ringproof::oracle {
namespace {

/// Positions a query may look at, inclusive: what causal and window leave of the line.
struct PositionSpan {
  std::int64_t low = std::numeric_limits<std::int64_t>::min();
  std::int64_t high = std::numeric_limits<std::int64_t>::max();
};

/// a + b, held at the ends of the type: a window may be as long as a file likes.
std::int64_t add_saturated(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b > 0 ? std::numeric_limits<std::int64_t>::max()
               : std::numeric_limits<std::int64_t>::min();
}

PositionSpan position_span(const Spec& spec, std::int64_t position) {
  PositionSpan span;
  if (spec.window_left >= 0) span.low = add_saturated(position, -spec.window_left);
  if (spec.window_right >= 0) span.high = add_saturated(position, spec.window_right);
  if (spec.causal != Causal::none) span.high = std::min(span.high, position);
  return span;
}

/// Everything about keys that does not depend on the head: `positions` and `documents` of one
/// batch.
struct Keys {
  const std::int64_t* position;  // [Nk]
  const std::int32_t* document;  // [Nk]
  std::int64_t length;           // keys from here on are invisible
};
Keys keys_of(const Problem& problem, std::int64_t b) {
  const auto at = static_cast<std::size_t>(b * problem.keys);
  return {problem.position_k.data() + at, problem.document_k.data() + at,
          problem.key_length[static_cast<std::size_t>(b)]};
}
std::size_t query_index(const Problem& problem, std::int64_t b, std::int64_t i) {
  return static_cast<std::size_t>(b * problem.queries + i);
}

bool inside(const Keys& keys, const PositionSpan& span, std::int32_t document, std::int64_t j) {
  return keys.document[j] == document && keys.position[j] >= span.low &&
         keys.position[j] <= span.high;
}

/// The part of a run that lies in `span`, by bisection on its rising positions.
KeyRange clip(const Keys& keys, const KeyRun& run, const PositionSpan& span) {
  if (run.position_last < span.low || run.position_first > span.high) return {};
  const std::int64_t* begin = keys.position + run.first;
  const std::int64_t* end = keys.position + std::min(run.last, std::max(run.first, keys.length));
  const auto* first =
      run.position_first >= span.low ? begin : std::lower_bound(begin, end, span.low);
  const auto* last = run.position_last <= span.high ? end : std::upper_bound(first, end, span.high);
  return first < last ? KeyRange{first - keys.position, last - keys.position} : KeyRange{};
}

/// Clears out[n] where the bias of that key is -infinity, by its bit pattern.
template <class Bits>
void hide_bits(const std::byte* bias, std::int64_t stride, Bits minus_infinity, std::int64_t count,
               std::uint8_t* out) {
  for (std::int64_t n = 0; n < count; ++n) {
    Bits bits;
    std::memcpy(&bits, bias + n * stride * static_cast<std::int64_t>(sizeof bits), sizeof bits);
    out[n] = static_cast<std::uint8_t>(out[n] & static_cast<std::uint8_t>(bits != minus_infinity));
  }
}

void hide_minus_infinity(DType type, const std::byte* bias, std::int64_t stride, std::int64_t count,
                         std::uint8_t* out) {
  switch (type) {
    case DType::f64:
      return hide_bits<std::uint64_t>(bias, stride, 0xfffULL << 52, count, out);
    case DType::f32:
      return hide_bits<std::uint32_t>(bias, stride, 0xff800000U, count, out);
    case DType::f16:
      return hide_bits<std::uint16_t>(bias, stride, 0xfc00, count, out);
    case DType::bf16:
      return hide_bits<std::uint16_t>(bias, stride, 0xff80, count, out);
    case DType::f8_e5m2:
      return hide_bits<std::uint8_t>(bias, stride, 0xfc, count, out);
    default:
      return;  // e4m3 has no infinity
  }
}

}  // namespace

void index_keys(Problem& problem) {
  problem.key_runs.assign(static_cast<std::size_t>(problem.batches), {});
  const std::int64_t most = 1 + problem.keys / 16;  // beyond that a scan costs no more
  for (std::int64_t b = 0; b < problem.batches; ++b) {
    const Keys keys = keys_of(problem, b);
    auto& runs = problem.key_runs[static_cast<std::size_t>(b)];
    for (std::int64_t j = 0; j < problem.keys; ++j) {
      if (runs.empty() || keys.document[j] != runs.back().document ||
          keys.position[j] < runs.back().position_last) {
        if (static_cast<std::int64_t>(runs.size()) == most) {
          problem.key_runs.clear();
          return;
        }
        runs.push_back({j, j, keys.position[j], keys.position[j], keys.document[j]});
      }
      runs.back().last = j + 1;
      runs.back().position_last = keys.position[j];
    }
  }
}

bool visible(const Problem& problem, std::int64_t b, std::int64_t h, std::int64_t i,
             std::int64_t j) {
  const std::size_t query = query_index(problem, b, i);
  const Keys keys = keys_of(problem, b);
  const std::int32_t document = problem.document_q[query];
  if (document < 0 || j >= keys.length) return false;
  if (!inside(keys, position_span(problem.spec, problem.position_q[query]), document, j))
    return false;
  if (problem.mask && problem.mask.at(b, h, i, j) == 0) return false;
  return !problem.bias || problem.bias.at(b, h, i, j) != -std::numeric_limits<double>::infinity();
}

KeyRange visible_range(const Problem& problem, std::int64_t b, std::int64_t i) {
  const std::size_t query = query_index(problem, b, i);
  const std::int32_t document = problem.document_q[query];
  if (document < 0) return {};
  const Keys keys = keys_of(problem, b);
  const PositionSpan span = position_span(problem.spec, problem.position_q[query]);
  if (problem.key_runs.empty()) {
    KeyRange range{0, keys.length};
    while (range.first < range.last && !inside(keys, span, document, range.first)) ++range.first;
    while (range.first < range.last && !inside(keys, span, document, range.last - 1)) --range.last;
    return range.size() > 0 ? range : KeyRange{};
  }
  KeyRange range;
  for (const KeyRun& run : problem.key_runs[static_cast<std::size_t>(b)]) {
    if (run.document != document) continue;
    const KeyRange part = clip(keys, run, span);
    if (part.size() == 0) continue;
    if (range.size() == 0) range.first = part.first;
    range.last = part.last;
  }
  return range;
}

void visible_row(const Problem& problem, std::int64_t b, std::int64_t h, std::int64_t i,
                 KeyRange range, std::uint8_t* out) {
  const std::size_t query = query_index(problem, b, i);
  const Keys keys = keys_of(problem, b);
  const std::int32_t document = problem.document_q[query];
  const PositionSpan span = position_span(problem.spec, problem.position_q[query]);
  const std::int64_t known =
      document < 0 ? 0 : std::clamp<std::int64_t>(keys.length - range.first, 0, range.size());
  if (known > 0 && !problem.key_runs.empty()) {
    std::fill(out, out + known, std::uint8_t{0});
    for (const KeyRun& run : problem.key_runs[static_cast<std::size_t>(b)]) {
      if (run.document != document) continue;
      const KeyRange part = clip(keys, run, span);
      const std::int64_t first = std::max(part.first, range.first);
      const std::int64_t last = std::min(part.last, range.first + known);
      if (first < last) std::fill(out + (first - range.first), out + (last - range.first), 1);
    }
  } else {
    for (std::int64_t n = 0; n < known; ++n) {
      out[n] = static_cast<std::uint8_t>(inside(keys, span, document, range.first + n));
    }
  }
  std::fill(out + known, out + range.size(), std::uint8_t{0});
  if (known == 0) return;
  if (problem.mask) {
    const std::byte* mask = problem.mask.address(b, h, i, range.first);
    const std::int64_t stride = problem.mask.stride[3];
    for (std::int64_t n = 0; n < known; ++n) {
      out[n] = static_cast<std::uint8_t>(
          out[n] & static_cast<std::uint8_t>(mask[n * stride] != std::byte{0}));
    }
  }
  if (problem.bias) {
    hide_minus_infinity(problem.bias.dtype, problem.bias.address(b, h, i, range.first),
                        problem.bias.stride[3], known, out);
  }
}

}  // namespace ringproof::oracle
