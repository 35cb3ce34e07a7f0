// The spec of a case (docs/formats.md): the JSON object that says what the tensors mean.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace ringproof::oracle {

enum class AxisOrder { bhnd, bnhd, nhd };
enum class Causal { none, top_left, bottom_right };
enum class EmptyRow { zero, nan, any };
enum class LseBase { e, two };
enum class RingLayout { contiguous, zigzag, striped };
enum class RingOrder { down, up };  // at step t rank r holds shard (r - t) mod P, or (r + t) mod P

struct Ring {
  RingLayout layout = RingLayout::contiguous;
  RingOrder order = RingOrder::down;
  bool operator==(const Ring&) const = default;
};

/// Plain values, defaults as documented. `present` facts that matter are optionals.
struct Spec {
  AxisOrder layout = AxisOrder::bhnd;
  std::optional<double> scale;  // absent: the real number 1/sqrt(D)
  Causal causal = Causal::none;
  std::int64_t window_left = -1, window_right = -1;  // inclusive; -1 unbounded
  double softcap = 0;                                // 0: off
  EmptyRow empty_row = EmptyRow::zero;
  std::optional<LseBase> lse_base;    // absent: e
  std::string contract;               // a name, or the JSON text of an object; empty: none given
  std::optional<std::int64_t> ranks;  // absent: 1
  std::optional<Ring> ring;
  std::string problem;  // plain file name beside the answer; empty: none
  std::string problem_sha256;
  /// The scale of scores in binary64; where none is named it may be one rounding off 1/sqrt(D).
  double scale_of(std::int64_t head_dim) const {
    return scale.value_or(1 / std::sqrt(static_cast<double>(head_dim)));
  }
  bool operator==(const Spec&) const = default;
};

/// Names of the keys a spec text holds.
using SpecKeys = std::set<std::string>;

/// Parses the JSON text of a spec. Errors (BadInput) start with `origin` and name the key.
Spec parse_spec(const std::string& json, const std::string& origin, SpecKeys* keys = nullptr);
/// The spec of an answer whose problem is another file: contract, ranks, ring, lse_base, problem
/// and problem_sha256 are the answer's; every other key comes from the file that has it, and where
/// both have it the values must be equal. Throws BadInput naming the key.
Spec join_specs(const Spec& answer, const SpecKeys& answer_keys, const std::string& answer_origin,
                const Spec& problem, const SpecKeys& problem_keys,
                const std::string& problem_origin);
/// The spec as JSON text, keys sorted; parse_spec(to_json(s)) == s.
std::string to_json(const Spec&);

}  // namespace ringproof::oracle
