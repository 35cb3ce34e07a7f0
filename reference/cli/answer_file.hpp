// From an Answer to a file that `ringproof check` judges without a flag: the way out of every tier.
// Here a tier says what it did, and nothing better: the type it computed in, the number of ranks
// whose partial results were merged, the roundings its loading of scaled inputs costs.
#pragma once

#include <string>
#include <vector>

#include "oracle/case/stored_view.hpp"
#include "reference/cli/case_problem.hpp"
#include "reference/gradients.hpp"
#include "reference/ring.hpp"

namespace ringproof::reference {

/// What is computed: the answer, or the answer and the gradients.
enum class Pass { forward, backward };

/// The type in which a case is computed: fp64 if any number that the pass reads needs it, or fp32.
enum class Arithmetic { fp32, fp64 };
Arithmetic arithmetic_for(const CaseInput& input, Pass pass = Pass::forward);

/// Storage type of `out` and of the gradients: the 16-bit type of q where all of q, k, v (and dout)
/// have it (or 8 bits) and nothing is rescaled; otherwise the type computed in. lse and dsinks are
/// always stored in the type computed in.
oracle::DType output_type(const CaseInput& input, Pass pass = Pass::forward);

/// The numeric contract of this tier on this input: a name, or a JSON object where a name says too
/// little. `base`: the preset of the arithmetic, where it is not the scalar tier's own.
std::string contract_for(const CaseInput& input, Index ranks, Pass pass = Pass::forward,
                         const std::string& base = {});

/// A tensor of an answer: how its numbers [B, H, N, D] lie in the file.
struct AnswerTensor {
  std::string name;
  oracle::DType type;
  oracle::Sizes size;                 // [B, H, N, D]; lse and dsinks have unused axes of size 1
  std::array<Index, 4> stride{};      // in elements
  std::vector<std::int64_t> shape{};  // as stored

  /// Bytes from the beginning of the tensor to an element.
  std::size_t offset(Index b, Index h, Index n, Index d) const;
  /// Rounds to the tensor's type and stores.
  void encode(double number, std::byte* place) const;
};

/// out, lse and, backward, dq, dk, dv, dbias and dsinks, the last two where the problem has them.
std::vector<AnswerTensor> answer_tensors(const CaseInput& input, Pass pass);

/// What else the answer's file at `path` holds: its spec, which names the problem's file where that
/// serves, and the problem's tensors where it does not.
struct AnswerHead {
  oracle::Spec spec;
  std::vector<oracle::NamedTensor> carried;
};
AnswerHead answer_head(const CaseInput& input, const RingPlan& plan, Pass pass,
                       const std::string& path, const std::string& base = {});

/// Writes out and lse, and the gradients if there are any, to `path`, complete or not at all. The
/// file names the problem beside it; where the problem file cannot serve as one (another folder, or
/// answers of its own) it carries the problem.
template <class Real>
void write_answer(const CaseInput& input, const RingPlan& plan, const Answer<Real>& answer,
                  const std::string& path, const Gradients<Real>* gradients = nullptr,
                  const std::string& base = {});

extern template void write_answer(const CaseInput&, const RingPlan&, const Answer<float>&,
                                  const std::string&, const Gradients<float>*, const std::string&);
extern template void write_answer(const CaseInput&, const RingPlan&, const Answer<double>&,
                                  const std::string&, const Gradients<double>*, const std::string&);

}  // namespace ringproof::reference
