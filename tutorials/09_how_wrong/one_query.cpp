#include "tutorials/09_how_wrong/one_query.hpp"

namespace ringproof::tutorials {
namespace {

using Shape = std::vector<std::int64_t>;

oracle::StoredTensor stored(oracle::DType dtype, Shape shape, const std::byte* bytes) {
  return {dtype, std::move(shape), {}, bytes};
}

oracle::StoredTensor binary64(Shape shape, const std::vector<double>& numbers) {
  return stored(oracle::DType::f64, std::move(shape),
                reinterpret_cast<const std::byte*>(numbers.data()));
}

}  // namespace

OneQuery::OneQuery(std::vector<double> scores, std::vector<double> values)
    : OneQuery({1}, std::move(scores), std::move(values), 1) {}

OneQuery::OneQuery(std::vector<double> q, std::vector<double> k, std::vector<double> v,
                   double scale)
    : q_(std::move(q)), k_(std::move(k)), v_(std::move(v)) {
  spec_.scale = scale;
  problem_ = assembled(tensors()).problem;
  const oracle::HeadTruth head(problem_, 0, 0, oracle::Precision::tight);
  const oracle::HeadTruth::RowId first{0, 0};
  head.rows({&first, 1}, &truth_);
}

oracle::Source OneQuery::tensors() const {
  const auto N = std::int64_t(keys()), D = std::int64_t(q_.size()), Dv = std::int64_t(columns());
  oracle::Source source{"one query", {}};
  source.tensors["q"] = binary64({1, 1, 1, D}, q_);
  source.tensors["k"] = binary64({1, 1, N, D}, k_);
  source.tensors["v"] = binary64({1, 1, N, Dv}, v_);
  return source;
}

oracle::Case OneQuery::assembled(const oracle::Source& source) const {
  oracle::check_table(source);
  return oracle::assemble_case(source, source, spec_);
}

oracle::Contract OneQuery::contract(const std::string& name) const {
  return oracle::read_contract(name, problem_.spec);
}

oracle::RowBound OneQuery::bound(const oracle::Contract& contract) const {
  oracle::RowBound bound;
  oracle::bound_row(contract, problem_, truth_, v_.data(), std::int64_t(columns()), false, bound);
  return bound;
}

oracle::Report OneQuery::judge(const std::vector<double>& out,
                               const std::string& contract_name) const {
  const oracle::Contract declared = contract(contract_name);
  const std::size_t bytes = oracle::size_of(declared.out.dtype);
  std::vector<std::byte> answer(out.size() * bytes);
  for (std::size_t c = 0; c < out.size(); ++c) {
    oracle::encode(declared.out.dtype, out[c], answer.data() + c * bytes);
  }
  oracle::Source source = tensors();
  source.tensors["out"] =
      stored(declared.out.dtype, {1, 1, 1, std::int64_t(columns())}, answer.data());
  oracle::CheckOptions options;
  options.walk.threads = 1;
  return oracle::check(assembled(source), declared, options);
}

}  // namespace ringproof::tutorials
