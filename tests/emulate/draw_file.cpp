// A drawn case as a file that `ringproof check` reads.
#include <cstring>

#include "tests/emulate/draw.hpp"

namespace ringproof::emulate {
namespace {

using Shape = std::vector<std::int64_t>;

Shape four(const oracle::Tensor& tensor) { return {tensor.shape.begin(), tensor.shape.end()}; }

}  // namespace

void Draw::write(const std::string& path) const {
  const oracle::Problem& p = owned.problem;
  std::vector<oracle::NamedTensor> tensors;
  const auto add = [&](const std::string& name, const oracle::Tensor& tensor, const Shape& shape) {
    if (tensor) tensors.push_back({name, tensor.dtype, shape, tensor.data});
  };
  add("q", p.q, four(p.q)), add("k", p.k, four(p.k)), add("v", p.v, four(p.v));
  add("q_scale", p.q_scale.tensor, {1, 1, 1, 1}), add("k_scale", p.k_scale.tensor, {1, 1, 1, 1});
  add("v_scale", p.v_scale.tensor, {1, 1, 1, 1});
  for (const Stored& one : stored) {
    const bool by_head = one.name == "sinks" || one.name == "alibi_slopes";
    add(one.name, one.tensor, by_head ? Shape{p.heads} : four(one.tensor));
  }
  add("out", out, four(out));
  add("lse", lse, {p.batches, p.heads, p.queries});
  add("dout", dout, four(dout));
  add("dlse", dlse, {p.batches, p.heads, p.queries});
  add("dq", dq, four(dq)), add("dk", dk, four(dk)), add("dv", dv, four(dv));
  add("dbias", dbias, four(dbias)), add("dsinks", dsinks, {p.heads});

  const auto integers = [&](const std::string& name, const auto& values, oracle::DType dtype,
                            const Shape& shape) {
    tensors.push_back({name, dtype, shape, reinterpret_cast<const std::byte*>(values.data())});
  };
  std::vector<std::int32_t> lengths(p.key_length.begin(), p.key_length.end());
  integers("key_lengths", lengths, oracle::DType::i32, {p.batches});
  if (explicit_rows) {
    integers("positions_q", p.position_q, oracle::DType::i64, {p.batches, p.queries});
    integers("positions_k", p.position_k, oracle::DType::i64, {p.batches, p.keys});
    // Documents are the same in every batch; the file holds them once.
    integers("documents_q", p.document_q, oracle::DType::i32, {p.queries});
    integers("documents_k", p.document_k, oracle::DType::i32, {p.keys});
  }
  oracle::write_case(path, tensors, oracle::to_json(p.spec));
}

}  // namespace ringproof::emulate
