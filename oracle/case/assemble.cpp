// Shapes and cross-conditions (assemble.hpp), tensor by tensor in the order of the table.
#include "oracle/case/assemble.hpp"

#include <array>
#include <utility>

#include "oracle/case/rows.hpp"
#include "oracle/case/stored_view.hpp"

namespace ringproof::oracle {
namespace {

constexpr std::array<Axis, 1> kOneHeadAxis{kHead};
constexpr std::array<Axis, 2> kBatchHeadAxes{kBatch, kHead};

class Assembler {
 public:
  Assembler(const Source& problem, const Source& answers, const Spec& spec)
      : source_(problem),
        answers_(answers),
        features_(feature_axes(spec.layout)),
        rows_(row_axes(spec.layout)) {
    problem_.spec = spec;
    result_.name = answers.path;
  }

  Case assemble() {
    read_features();
    read_score_terms();
    resolve_rows(source_, problem_);
    read_upstream();
    read_answers();
    result_.problem = std::move(problem_);
    return std::move(result_);
  }

 private:
  const StoredTensor& need(std::string_view name) const {
    const StoredTensor* tensor = source_.find(name);
    if (tensor == nullptr) refuse_tensor(source_, name, "is missing");
    return *tensor;
  }

  /// View with exactly these sizes.
  Tensor exact(const Source& source, std::string_view name, const StoredTensor& stored,
               AxisList axes, const Sizes& sizes) const {
    const Tensor tensor = view(source, name, stored, axes);
    expect_sizes(source, name, stored, axes, sizes);
    return tensor;
  }

  void read_features() {
    Problem& p = problem_;
    p.q = view(source_, "q", need("q"), features_);
    p.k = view(source_, "k", need("k"), features_);
    p.v = view(source_, "v", need("v"), features_);
    p.batches = p.q.shape[kBatch];
    p.heads = p.q.shape[kHead];
    p.queries = p.q.shape[kRow];
    p.head_dim = p.q.shape[kColumn];
    p.kv_heads = p.k.shape[kHead];
    p.keys = p.k.shape[kRow];
    p.value_dim = p.v.shape[kColumn];
    // Rows may be absent (a rank without any); the other axes not, and then bytes stand behind
    // every row.
    if (p.batches < 1 || p.heads < 1 || p.head_dim < 1) {
      refuse_tensor(source_, "q",
                    "shape " + text_of(need("q").shape) + " needs B, H, D of at least 1");
    }
    if (p.kv_heads < 1 || p.heads % p.kv_heads != 0) {
      refuse_tensor(source_, "k",
                    "shape " + text_of(need("k").shape) + ": its heads must divide the " +
                        std::to_string(p.heads) + " of q");
    }
    expect_sizes(source_, "k", need("k"), features_, {p.batches, p.kv_heads, p.keys, p.head_dim});
    if (p.value_dim < 1)
      refuse_tensor(source_, "v", "shape " + text_of(need("v").shape) + " needs Dv of at least 1");
    expect_sizes(source_, "v", need("v"), features_, {p.batches, p.kv_heads, p.keys, p.value_dim});
    read_factors("q_scale", p.q, p.q_scale);
    read_factors("k_scale", p.k, p.k_scale);
    read_factors("v_scale", p.v, p.v_scale);
  }

  /// Dequantisation factors: each axis 1, full, or a divisor, so that blocks of equal length share
  /// one.
  void read_factors(std::string_view name, const Tensor& scaled, Factors& factors) const {
    const StoredTensor* stored = source_.find(name);
    if (stored == nullptr) return;
    Tensor tensor = view(source_, name, *stored, features_);
    for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
      const std::int64_t full = scaled.shape[axis];
      const std::int64_t size = tensor.shape[axis];
      if (size == full || size == 1) {
        factors.block[axis] = size == full ? 1 : full;
      } else if (size > 0 && full % size == 0) {
        factors.block[axis] = full / size;
      } else {
        refuse_tensor(source_, name,
                      "shape " + text_of(stored->shape) +
                          ": each axis must be 1, full or a divisor of the full size");
      }
    }
    factors.tensor = tensor;
  }

  void read_score_terms() {
    Problem& p = problem_;
    const Sizes scores{p.batches, p.heads, p.queries, p.keys};
    if (const auto* bias = source_.find("bias"))
      p.bias = broadcast_view(source_, "bias", *bias, scores);
    if (const auto* mask = source_.find("mask"))
      p.mask = broadcast_view(source_, "mask", *mask, scores);
    if (const auto* slopes = source_.find("alibi_slopes")) {
      const bool per_batch = slopes->shape.size() == 2;
      const AxisList axes = per_batch ? AxisList(kBatchHeadAxes) : AxisList(kOneHeadAxis);
      p.alibi_slopes = exact(source_, "alibi_slopes", *slopes, axes, {p.batches, p.heads, 1, 1});
      p.alibi_slopes.shape[kBatch] = p.batches;  // stride 0 where the file has one row for all
    }
    if (const auto* sinks = source_.find("sinks")) {
      p.sinks = exact(source_, "sinks", *sinks, kOneHeadAxis, {1, p.heads, 1, 1});
    }
  }

  Sizes out_sizes() const {
    return {problem_.batches, problem_.heads, problem_.queries, problem_.value_dim};
  }

  /// Upstream gradients may lie beside the problem or beside the answers, but once.
  Tensor read_upstream(std::string_view name, AxisList axes, const Sizes& sizes) const {
    const bool two = &source_ != &answers_;
    if (two && source_.find(name) != nullptr && answers_.find(name) != nullptr) {
      refuse_tensor(answers_, name, "is in the problem file (" + source_.path + "), too");
    }
    const Source& source = source_.find(name) != nullptr ? source_ : answers_;
    const StoredTensor* stored = source.find(name);
    return stored == nullptr ? Tensor{} : exact(source, name, *stored, axes, sizes);
  }

  void read_upstream() {
    result_.dout = read_upstream("dout", features_, out_sizes());
    result_.dlse = read_upstream("dlse", rows_, out_sizes());
  }

  void read_answer(AnswerKind kind, AxisList axes, const Sizes& sizes) {
    const StoredTensor* stored = answers_.find(name(kind));
    if (stored == nullptr) return;
    result_.answers.push_back({kind, exact(answers_, name(kind), *stored, axes, sizes)});
  }

  void read_answers() {
    const Problem& p = problem_;
    read_answer(AnswerKind::out, features_, out_sizes());
    read_answer(AnswerKind::lse, rows_, out_sizes());
    const std::size_t forward = result_.answers.size();
    read_answer(AnswerKind::dq, features_, p.q.shape);
    read_answer(AnswerKind::dk, features_, p.k.shape);
    read_answer(AnswerKind::dv, features_, p.v.shape);
    read_bias_gradient();
    if (answers_.find("dsinks") != nullptr && !p.sinks) {
      refuse_tensor(answers_, "dsinks", "there are no sinks");
    }
    read_answer(AnswerKind::dsinks, kOneHeadAxis, {1, p.heads, 1, 1});
    if (result_.answers.size() > forward && !result_.dout && !result_.dlse) {
      refuse_tensor(answers_, name(result_.answers[forward].kind),
                    "a gradient needs dout or dlse, the gradients it starts from");
    }
  }

  /// dbias has the stored shape of bias: it is a sum over the axes that broadcast.
  void read_bias_gradient() {
    const StoredTensor* stored = answers_.find("dbias");
    if (stored == nullptr) return;
    const StoredTensor* bias = source_.find("bias");
    if (bias == nullptr) refuse_tensor(answers_, "dbias", "there is no bias");
    if (stored->shape != bias->shape) {
      refuse_tensor(
          answers_, "dbias",
          "shape " + text_of(stored->shape) + " must be that of bias, " + text_of(bias->shape));
    }
    const AxisList all = feature_axes(AxisOrder::bhnd);
    const Tensor tensor = view(answers_, "dbias", *stored, all.last(stored->shape.size()));
    result_.answers.push_back({AnswerKind::dbias, tensor});
  }

  const Source& source_;
  const Source& answers_;
  AxisList features_, rows_;
  Problem problem_;
  Case result_;
};

}  // namespace

Case assemble_case(const Source& problem, const Source& answers, const Spec& spec) {
  return Assembler(problem, answers, spec).assemble();
}

std::string_view name(AnswerKind kind) {
  constexpr std::array<std::string_view, 7> kNames{"out", "lse",   "dq",    "dk",
                                                   "dv",  "dbias", "dsinks"};
  return kNames[static_cast<std::size_t>(kind)];
}

const Answer* Case::find(AnswerKind kind) const {
  for (const Answer& answer : answers) {
    if (answer.kind == kind) return &answer;
  }
  return nullptr;
}

}  // namespace ringproof::oracle
