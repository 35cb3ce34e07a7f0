// From a case file to a Problem: the way into every tier.
// The judge's reader opens files, checks them and says how a tensor lies in memory. What the
// tensors mean (positions, documents, alignment, lengths) is decided here a second time and from
// the stored integers, so that a misreading by the judge cannot hide behind the same misreading by
// the judged.
#pragma once

#include <string>

#include "oracle/case/load.hpp"
#include "reference/gradients.hpp"

namespace ringproof::reference {

/// A case that the reader has accepted: its tensors as stored, and as views.
struct CaseInput {
  oracle::LoadedCase files;
  oracle::Case views;
};

/// Throws oracle::BadInput "FILE: what is wrong (where)".
CaseInput read_input(const std::string& path, const oracle::CaseOptions& options = {});

/// Numbers of a stored tensor, and the view of them in the axes [B, H, N, D].
template <class T>
struct Loaded {
  std::vector<T> numbers;
  std::array<Index, 4> stride{};

  View<T> view() const { return {numbers, stride}; }
};

/// Read everything, or what every rank of a ring must know: not q, k, v, bias, mask, dout, dlse.
enum class Read { everything, description };

/// Owns the numbers of one problem. Keep it as long as problem() is used.
template <class Real>
class CaseProblem {
 public:
  explicit CaseProblem(const CaseInput& input, Read read = Read::everything);

  /// The problem as views into this object.
  Problem<Real> problem() const;
  /// The upstream gradients as views into this object; absent ones are zero.
  Upstream<Real> upstream() const { return {dout_.view(), dlse_.view()}; }

 private:
  void read_tensors(const CaseInput& input);
  void read_rows(const CaseInput& input);

  Problem<Real> plain_;  // sizes and switches; the tensors are set by problem()
  Loaded<Real> q_, k_, v_, q_scale_, k_scale_, v_scale_, bias_, slopes_, sinks_, dout_, dlse_;
  Loaded<std::uint8_t> mask_;
  Loaded<Index> key_lengths_, position_q_, position_k_;
  Loaded<std::int32_t> document_q_, document_k_;
};

extern template class CaseProblem<float>;
extern template class CaseProblem<double>;

}  // namespace ringproof::reference
