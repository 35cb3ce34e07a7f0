// Collects the visible keys of a row (row_keys.hpp).
#include "oracle/contract/row_keys.hpp"

#include <algorithm>
#include <cmath>

namespace ringproof::oracle {

namespace {

/// One row array, the visible places only.
void pick(const std::vector<double>& from, const RowKeys& keys, std::vector<double>& to) {
  fit(to, keys.padded);
  const std::int64_t* index = keys.index.data();
  if (keys.visible > 0 && index[keys.visible - 1] - index[0] == keys.visible - 1) {
    std::copy_n(from.begin() + index[0], keys.visible, to.begin());  // nothing hidden between them
    return;
  }
  for (std::int64_t k = 0; k < keys.visible; ++k) {
    to[static_cast<std::size_t>(k)] = from[static_cast<std::size_t>(index[k])];
  }
}

}  // namespace

void RowKeys::gather(const RowTruth& row) {
  const auto size = static_cast<std::size_t>(row.keys.size());
  if (index.size() < size) index.resize(size);
  visible = 0;
  for (std::size_t j = 0; j < size; ++j) {
    index[static_cast<std::size_t>(visible)] = static_cast<std::int64_t>(j);
    visible += row.score[j] != -INFINITY;
  }
  has_sink = row.has_sink;
  has_softcap = !row.capped.empty();
  has_bias = !row.bias.empty();
  has_alibi = !row.alibi.empty();
  count = visible + has_sink;
  padded = (count + kPadding - 1) / kPadding * kPadding;
  pick(row.dot, *this, dot);
  pick(row.abs_dot, *this, abs_dot);
  if (has_softcap) pick(row.capped, *this, capped);
  if (has_bias) pick(row.bias, *this, bias);
  if (has_alibi) pick(row.alibi, *this, alibi);
  pick(row.score, *this, score);
  pick(row.log_p, *this, log_p);
  pick(row.p, *this, p);
  for (auto* array : {&error, &common, &common_lse, &cast, &reach}) fit(*array, padded);
  if (has_sink) {
    const auto last = static_cast<std::size_t>(visible);
    score[last] = row.sink;
    log_p[last] = row.log_p_sink;
    p[last] = std::exp(row.log_p_sink);
  }
  for (auto k = static_cast<std::size_t>(count); k < static_cast<std::size_t>(padded); ++k) {
    score[k] = row.max_score;
    log_p[k] = kNoWeight;
    p[k] = error[k] = common[k] = common_lse[k] = cast[k] = 0;
  }
}

}  // namespace ringproof::oracle
