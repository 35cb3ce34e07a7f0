#include "tests/vectors/second_truth.hpp"

#include <cmath>
#include <cstdlib>
#include <stdexcept>

namespace ringproof::second_truth {
namespace {

using Index = std::int64_t;

/// Reads one problem: sizes, axis orders, rows and what they see.
class Reader {
 public:
  explicit Reader(const Input& input) : input_(input), layout_(input.spec.value("layout", "bhnd")) {
    const Array& q = array("q");
    const Array& k = array("k");
    batches = size(q, 'b'), heads = size(q, 'h'), queries = size(q, 'n'), head_dim = size(q, 'd');
    kv_heads = size(k, 'h'), keys = size(k, 'n'), value_dim = size(array("v"), 'd');
    causal_ = input.spec.value("causal", "none");
    if (input.spec.contains("window")) {
      left_ = input.spec["window"][0], right_ = input.spec["window"][1];
    }
    read_rows();
  }

  Index batches, heads, kv_heads, queries, keys, head_dim, value_dim;

  bool has(const std::string& name) const { return input_.tensors.count(name) != 0; }
  const Array& array(const std::string& name) const { return input_.tensors.at(name); }

  /// Element of a tensor in the axis order of the spec.
  double feature(const std::string& name, Index b, Index h, Index n, Index d) const {
    const Array& a = array(name);
    return a.values[static_cast<std::size_t>(place(a, b, h, n, d))];
  }
  /// The stored number times its dequantisation factor.
  Real scaled(const std::string& name, Index b, Index h, Index n, Index d) const {
    const Real value = feature(name, b, h, n, d);
    if (!has(name + "_scale")) return value;
    const Array& factors = array(name + "_scale");
    const Array& stored = array(name);
    const auto shared = [&](char axis, Index index) {
      return index / (size(stored, axis) / size(factors, axis));
    };
    const Index at = place(factors, shared('b', b), shared('h', h), shared('n', n), shared('d', d));
    return value * Real(factors.values[static_cast<std::size_t>(at)]);
  }

  /// Element of a tensor that broadcasts to [B, H, Nq, Nk], aligned at the last axis.
  double broadcast(const std::string& name, Index b, Index h, Index i, Index j) const {
    const Array& a = array(name);
    const std::array<Index, 4> index{b, h, i, j};
    Index at = 0;
    for (std::size_t axis = 0; axis < a.shape.size(); ++axis) {
      const Index wanted = index[4 - a.shape.size() + axis];
      at = at * a.shape[axis] + (a.shape[axis] == 1 ? 0 : wanted);
    }
    return a.values[static_cast<std::size_t>(at)];
  }

  Index position_q(Index b, Index i) const { return position(b, i, "q", queries); }
  Index position_k(Index b, Index j) const { return position(b, j, "k", keys); }

  bool visible(Index b, Index h, Index i, Index j) const {
    const Index document = document_of("q", i);
    if (document < 0 || document != document_of("k", j)) return false;
    if (has("key_lengths") && j >= array("key_lengths").integers[static_cast<std::size_t>(b)])
      return false;
    if (has("mask") && broadcast("mask", b, h, i, j) == 0) return false;
    if (has("bias") && broadcast("bias", b, h, i, j) == -HUGE_VAL) return false;
    const Index distance = position_q(b, i) - position_k(b, j);  // how far behind the key lies
    if (causal_ != "none" && distance < 0) return false;
    if (left_ >= 0 && distance > left_) return false;
    return right_ < 0 || -distance <= right_;
  }

  /// A number of the spec: as JSON has it, or hexadecimal.
  Real number(const char* key, const Real& otherwise) const {
    if (!input_.spec.contains(key)) return otherwise;
    const nlohmann::json& value = input_.spec[key];
    if (value.is_string()) return Real(std::strtod(value.get<std::string>().c_str(), nullptr));
    return Real(value.get<double>());
  }

 private:
  /// Which stored axis a canonical axis is; -1: the tensor has none.
  int axis_of(const Array& a, char axis) const {
    const std::string order = layout_ == "nhd" ? "nhd" : layout_ == "bnhd" ? "bnhd" : "bhnd";
    if (order.size() != a.shape.size()) throw std::runtime_error("second truth: axes");
    const std::size_t at = order.find(axis);
    return at == std::string::npos ? -1 : static_cast<int>(at);
  }
  Index size(const Array& a, char axis) const {
    const int at = axis_of(a, axis);
    return at < 0 ? 1 : a.shape[static_cast<std::size_t>(at)];
  }
  Index place(const Array& a, Index b, Index h, Index n, Index d) const {
    if (layout_ == "nhd") return (n * a.shape[1] + h) * a.shape[2] + d;
    const Index second = layout_ == "bnhd" ? n : h, third = layout_ == "bnhd" ? h : n;
    return ((b * a.shape[1] + second) * a.shape[2] + third) * a.shape[3] + d;
  }

  /// Document of a row and its place in it, from the running sums of packed documents.
  struct Packed {
    std::vector<Index> document, place, length;
  };
  Packed unpack(const std::string& name, Index rows) const {
    const auto& start = array(name).integers;
    Packed packed;
    for (Index row = 0; row < rows; ++row) {
      for (std::size_t s = 0; s + 1 < start.size(); ++s) {
        if (start[s] <= row && row < start[s + 1]) {
          packed.document.push_back(static_cast<Index>(s));
          packed.place.push_back(row - start[s]);
        }
      }
    }
    for (std::size_t s = 0; s + 1 < start.size(); ++s) {
      packed.length.push_back(start[s + 1] - start[s]);
    }
    return packed;
  }

  void read_rows() {
    if (!has("cu_seqlens_q")) return;
    packed_q_ = unpack("cu_seqlens_q", queries);
    packed_k_ = unpack("cu_seqlens_k", keys);
  }

  Index document_of(const std::string& side, Index row) const {
    const auto n = static_cast<std::size_t>(row);
    if (has("documents_" + side)) return array("documents_" + side).integers[n];
    if (has("cu_seqlens_q")) return side == "q" ? packed_q_.document[n] : packed_k_.document[n];
    return 0;
  }

  Index position(Index b, Index row, const std::string& side, Index rows) const {
    const auto n = static_cast<std::size_t>(row);
    if (has("positions_" + side)) {
      const Array& a = array("positions_" + side);
      return a.integers[a.shape.size() == 2 ? static_cast<std::size_t>(b * rows) + n : n];
    }
    const bool aligned_right = side == "q" && causal_ == "bottom_right";
    if (has("cu_seqlens_q")) {
      if (side == "k") return packed_k_.place[n];
      const auto document = static_cast<std::size_t>(packed_q_.document[n]);
      const Index offset = packed_k_.length[document] - packed_q_.length[document];
      return packed_q_.place[n] + (aligned_right ? offset : 0);
    }
    return row + (aligned_right ? keys - queries : 0);
  }

  const Input& input_;
  std::string layout_, causal_;
  Index left_ = -1, right_ = -1;
  Packed packed_q_, packed_k_;
};

bool is_finite(const Real& x) { return boost::multiprecision::isfinite(x); }

/// Forward and backward pass, row by row, from the definitions.
class Solver {
 public:
  explicit Solver(const Input& input) : in_(input) {
    softcap_ = in_.number("softcap", 0);
    scale_ = in_.number("scale", 1 / sqrt(Real(in_.head_dim)));
    answers_.out.resize(count(in_.batches * in_.heads * in_.queries * in_.value_dim));
    answers_.lse.resize(count(in_.batches * in_.heads * in_.queries));
    if (!has_upstream()) return;
    answers_.dq.resize(count(in_.batches * in_.heads * in_.queries * in_.head_dim));
    answers_.dk.resize(count(in_.batches * in_.kv_heads * in_.keys * in_.head_dim));
    answers_.dv.resize(count(in_.batches * in_.kv_heads * in_.keys * in_.value_dim));
    answers_.dbias.resize(count(in_.batches * in_.heads * in_.queries * in_.keys));
    answers_.dsinks.resize(count(in_.heads));
  }

  Answers solve() {
    for (Index b = 0; b < in_.batches; ++b) {
      for (Index h = 0; h < in_.heads; ++h) {
        for (Index i = 0; i < in_.queries; ++i) row(b, h, i);
      }
    }
    return std::move(answers_);
  }

 private:
  static std::size_t count(Index n) { return static_cast<std::size_t>(n); }
  bool has_upstream() const { return in_.has("dout") || in_.has("dlse"); }

  /// A visible key: its score, and what the chain rule needs.
  struct Key {
    Index j;
    Real score, slope;  // d score / d (scale q.k)
    Real weight;        // exp(score - LSE)
  };

  void row(Index b, Index h, Index i) {
    const Index kv = h / (in_.heads / in_.kv_heads);
    std::vector<Key> keys;
    bool finite = true;
    for (Index j = 0; j < in_.keys; ++j) {
      if (!in_.visible(b, h, i, j)) continue;
      Real dot = 0;
      for (Index t = 0; t < in_.head_dim; ++t) {
        dot += in_.scaled("q", b, h, i, t) * in_.scaled("k", b, kv, j, t);
      }
      for (Index c = 0; c < in_.value_dim; ++c) {
        finite = finite && is_finite(in_.scaled("v", b, kv, j, c));
      }
      keys.push_back(scored(b, h, i, j, scale_ * dot));
      finite = finite && is_finite(keys.back().score);
    }
    const bool has_sink = in_.has("sinks");
    answers_.rows.push_back(!finite                     ? RowKind::not_a_number
                            : keys.empty() && !has_sink ? RowKind::empty
                                                        : RowKind::ordinary);
    if (answers_.rows.back() != RowKind::ordinary) return;
    const Real sink = has_sink ? Real(in_.array("sinks").values[count(h)]) : Real(0);
    Real largest = has_sink ? sink : keys.front().score;
    for (const Key& key : keys) largest = key.score > largest ? key.score : largest;
    Real sum = has_sink ? Real(exp(sink - largest)) : Real(0);
    for (Key& key : keys) sum += key.weight = exp(key.score - largest);
    const Index n = (b * in_.heads + h) * in_.queries + i;
    answers_.lse[count(n)] = largest + log(sum);
    for (Index c = 0; c < in_.value_dim; ++c) {
      Real& out = answers_.out[count(n * in_.value_dim + c)];
      for (const Key& key : keys) out += key.weight * in_.scaled("v", b, kv, key.j, c);
      out /= sum;  // last, so that a sum that vanishes exactly stays zero
    }
    for (Key& key : keys) key.weight /= sum;
    if (has_upstream())
      gradients(b, h, i, keys, has_sink ? Real(exp(sink - largest) / sum) : Real(0));
  }

  Key scored(Index b, Index h, Index i, Index j, const Real& scaled_dot) const {
    Key key{j, scaled_dot, 1, 0};
    if (softcap_ > 0) {
      const Real t = tanh(scaled_dot / softcap_);
      key.score = softcap_ * t;
      key.slope = 1 - t * t;
    }
    if (in_.has("bias")) key.score += Real(in_.broadcast("bias", b, h, i, j));
    if (in_.has("alibi_slopes")) {
      const Array& slopes = in_.array("alibi_slopes");
      const Index at = slopes.shape.size() == 2 ? b * in_.heads + h : h;
      const Index distance = std::abs(in_.position_q(b, i) - in_.position_k(b, j));
      key.score -= Real(slopes.values[count(at)]) * Real(distance);
    }
    return key;
  }

  /// d(out . dout + lse dlse): through weight w_j it is w_j (dout . v_j - dout . out + dlse).
  void gradients(Index b, Index h, Index i, const std::vector<Key>& keys, const Real& sink_weight) {
    const Index kv = h / (in_.heads / in_.kv_heads), n = (b * in_.heads + h) * in_.queries + i;
    const auto dout = [&](Index c) {
      return in_.has("dout") ? Real(in_.feature("dout", b, h, i, c)) : Real(0);
    };
    const Real dlse = in_.has("dlse") ? Real(in_.array("dlse").values[count(n)]) : Real(0);
    Real delta = 0;
    for (Index c = 0; c < in_.value_dim; ++c) {
      delta += dout(c) * answers_.out[count(n * in_.value_dim + c)];
    }
    for (const Key& key : keys) {
      Real upstream = 0;
      for (Index c = 0; c < in_.value_dim; ++c) {
        upstream += dout(c) * in_.scaled("v", b, kv, key.j, c);
        const Index at = ((b * in_.kv_heads + kv) * in_.keys + key.j) * in_.value_dim + c;
        answers_.dv[count(at)] += key.weight * dout(c);
      }
      const Real score_gradient = key.weight * (upstream - delta + dlse);
      answers_.dbias[count(n * in_.keys + key.j)] = score_gradient;
      const Real dot_gradient = scale_ * key.slope * score_gradient;
      for (Index t = 0; t < in_.head_dim; ++t) {
        const Index at = ((b * in_.kv_heads + kv) * in_.keys + key.j) * in_.head_dim + t;
        answers_.dk[count(at)] += dot_gradient * in_.scaled("q", b, h, i, t);
        answers_.dq[count(n * in_.head_dim + t)] += dot_gradient * in_.scaled("k", b, kv, key.j, t);
      }
    }
    if (in_.has("sinks")) answers_.dsinks[count(h)] += sink_weight * (dlse - delta);
  }

  Reader in_;
  Real softcap_, scale_;
  Answers answers_;
};

}  // namespace

Answers answer(const Input& input) { return Solver(input).solve(); }

}  // namespace ringproof::second_truth
