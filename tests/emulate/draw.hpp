// Drawing a whole case: a contract of the zoo, a problem (sizes, mask, additions, input family),
// and the
// answer of a conforming kernel. One seed is one case, on every machine with the same standard
// library.
//
//   Draw draw = draw_case(17);
//   oracle::Report report = oracle::check(draw.as_case(), draw.contract(), {});   // must not be
// FAIL
#pragma once

#include <cstdint>
#include <string>

#include "oracle/case/case_file.hpp"
#include "oracle/contract/contract.hpp"
#include "tests/emulate/numerics.hpp"
#include "tests/emulate/owned_problem.hpp"
#include "tests/emulate/zoo.hpp"

namespace ringproof::emulate {

enum class InputFamily {
  randn,
  flat,
  sharp,
  offset_values,
  constant_values,
  subnormal_values,
  large_maximum,
  near_one_values,
  ties,
  one_dominant,
  cancelling_dots,
  ascending,
  descending,
  dyadic,
  equal_scores,
  huge_alternating,
  tiny_scores,
  weightless_quarter,
  count,
};
std::string_view name(InputFamily);

struct Draw {
  std::uint64_t seed = 0;
  ZooEntry entry;
  InputFamily family = InputFamily::randn;
  std::string mask;  // the mask in words
  Numerics numerics;
  OwnedProblem owned;  // problem.spec names the contract
  oracle::Tensor out, lse;
  // Upstream gradients and the answers of a backward pass; absent in a forward case.
  oracle::Tensor dout, dlse, dq, dk, dv, dbias, dsinks;

  bool explicit_rows = false;  // positions and documents do not follow from the spec
  struct Stored {
    std::string name;
    oracle::Tensor tensor;  // before broadcasting
  };
  std::vector<Stored> stored;  // mask, bias, slopes, sinks: those present

  /// The contract as the judge reads it, with the spec's values.
  oracle::Contract contract() const;
  /// The case as if read from a file; its tensors live in this object.
  oracle::Case as_case() const;
  /// One line: what was drawn, and the command that draws it again.
  std::string description() const;
  /// A case file with the answers inside.
  void write(const std::string& path) const;
};

/// Adds upstream gradients and a conforming backward pass to a drawn case; false if none is drawn
/// for cases of this kind (scaled fp8 inputs, large ones, some forms of the stored LSE).
bool draw_gradients(Draw&);

/// Case number `seed`; the zoo entry goes round with the seed, so that size(zoo()) seeds meet all
/// of it.
Draw draw_case(std::uint64_t seed);
/// The same for one entry.
Draw draw_case(std::uint64_t seed, const ZooEntry&);

}  // namespace ringproof::emulate
