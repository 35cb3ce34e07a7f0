// Reading a case (case_problem.hpp): numbers are converted once, integers get their meaning.
#include "reference/cli/case_problem.hpp"

#include "oracle/case/assemble.hpp"
#include "oracle/case/rows.hpp"

namespace ringproof::reference {
namespace {

/// Copies what a view shows, once per stored element: an axis that repeats is kept repeating.
template <class T>
Loaded<T> load(const oracle::Tensor& tensor) {
  Loaded<T> loaded;
  if (!tensor) return loaded;
  std::array<Index, 4> size{};
  Index count = 1;
  for (std::size_t axis = 4; axis-- > 0;) {
    size[axis] = tensor.stride[axis] == 0 ? 1 : tensor.shape[axis];
    loaded.stride[axis] = size[axis] == 1 ? 0 : count;
    count *= size[axis];
  }
  loaded.numbers.reserve(count);
  for (Index b = 0; b < size[0]; ++b) {
    for (Index h = 0; h < size[1]; ++h) {
      for (Index n = 0; n < size[2]; ++n) {
        for (Index d = 0; d < size[3]; ++d) {
          loaded.numbers.push_back(static_cast<T>(tensor.at(b, h, n, d)));
        }
      }
    }
  }
  return loaded;
}

/// A list with one entry a row, [N] or [B, N], as a view [B, 1, N, 1].
template <class T, class U>
Loaded<T> row_list(const std::vector<U>& entries, Index rows) {
  const bool per_batch = static_cast<Index>(entries.size()) != rows;
  return {std::vector<T>(entries.begin(), entries.end()), {per_batch ? rows : 0, 0, 1, 0}};
}

std::vector<std::int32_t> boundaries(const oracle::StoredTensor& stored) {
  const std::vector<std::int64_t> values = oracle::integers(stored);
  return {values.begin(), values.end()};
}

}  // namespace

CaseInput read_input(const std::string& path, const oracle::CaseOptions& options) {
  CaseInput input{oracle::load_case(path, options), {}};
  input.views = oracle::assemble_case(input.files.problem(), input.files.answer, input.files.spec);
  return input;
}

template <class Real>
CaseProblem<Real>::CaseProblem(const CaseInput& input, Read read) {
  const oracle::Problem& views = input.views.problem;
  const oracle::Spec& spec = input.files.spec;
  plain_.batches = views.batches, plain_.heads = views.heads, plain_.kv_heads = views.kv_heads;
  plain_.queries = views.queries, plain_.keys = views.keys;
  plain_.head_dim = views.head_dim, plain_.value_dim = views.value_dim;
  plain_.scale = spec.scale ? static_cast<Real>(*spec.scale)
                            : Number<Real>::inverse_square_root(views.head_dim);
  plain_.softcap = static_cast<Real>(spec.softcap);
  plain_.causal = spec.causal != oracle::Causal::none;
  plain_.window_left = spec.window_left, plain_.window_right = spec.window_right;
  plain_.empty_row = spec.empty_row == oracle::EmptyRow::nan ? EmptyRow::nan : EmptyRow::zero;

  slopes_ = load<Real>(views.alibi_slopes), sinks_ = load<Real>(views.sinks);
  read_rows(input);
  if (read == Read::everything) read_tensors(input);
}

template <class Real>
void CaseProblem<Real>::read_tensors(const CaseInput& input) {
  const oracle::Problem& views = input.views.problem;
  q_ = load<Real>(views.q), k_ = load<Real>(views.k), v_ = load<Real>(views.v);
  q_scale_ = load<Real>(views.q_scale.tensor), plain_.q_scale.block = views.q_scale.block;
  k_scale_ = load<Real>(views.k_scale.tensor), plain_.k_scale.block = views.k_scale.block;
  v_scale_ = load<Real>(views.v_scale.tensor), plain_.v_scale.block = views.v_scale.block;
  bias_ = load<Real>(views.bias), mask_ = load<std::uint8_t>(views.mask);
  dout_ = load<Real>(input.views.dout), dlse_ = load<Real>(input.views.dlse);
}

/// Positions, documents and lengths from the stored integers.
template <class Real>
void CaseProblem<Real>::read_rows(const CaseInput& input) {
  const oracle::Source& source = input.files.problem();
  const Alignment alignment = input.files.spec.causal == oracle::Causal::bottom_right
                                  ? Alignment::bottom_right
                                  : Alignment::top_left;
  const Index queries = plain_.queries, keys = plain_.keys;
  plain_.offset = query_offset(alignment, queries, keys);
  if (const auto* lengths = source.find("key_lengths")) {
    key_lengths_ = {oracle::integers(*lengths), {1, 0, 0, 0}};
  }
  if (const auto* stored_q = source.find("cu_seqlens_q")) {
    const auto bounds_q = boundaries(*stored_q);
    const auto bounds_k = boundaries(*source.find("cu_seqlens_k"));
    document_q_ = row_list<std::int32_t>(documents_of(bounds_q, queries), queries);
    document_k_ = row_list<std::int32_t>(documents_of(bounds_k, keys), keys);
    position_q_ =
        row_list<Index>(positions_in_documents(bounds_q, bounds_k, alignment, queries), queries);
    position_k_ =
        row_list<Index>(positions_in_documents(bounds_k, bounds_k, alignment, keys), keys);
  }
  if (const auto* stored = source.find("documents_q")) {
    document_q_ = row_list<std::int32_t>(oracle::integers(*stored), queries);
    document_k_ = row_list<std::int32_t>(oracle::integers(*source.find("documents_k")), keys);
  }
  if (const auto* stored = source.find("positions_q")) {
    position_q_ = row_list<Index>(oracle::integers(*stored), queries);
  }
  if (const auto* stored = source.find("positions_k")) {
    position_k_ = row_list<Index>(oracle::integers(*stored), keys);
  }
}

template <class Real>
Problem<Real> CaseProblem<Real>::problem() const {
  Problem<Real> problem = plain_;
  problem.q = q_.view(), problem.k = k_.view(), problem.v = v_.view();
  problem.q_scale.view = q_scale_.view();
  problem.k_scale.view = k_scale_.view();
  problem.v_scale.view = v_scale_.view();
  problem.bias = bias_.view(), problem.mask = mask_.view();
  problem.alibi_slopes = slopes_.view(), problem.sinks = sinks_.view();
  problem.key_lengths = key_lengths_.view();
  problem.position_q = position_q_.view(), problem.position_k = position_k_.view();
  problem.document_q = document_q_.view(), problem.document_k = document_k_.view();
  return problem;
}

template class CaseProblem<float>;
template class CaseProblem<double>;

}  // namespace ringproof::reference
