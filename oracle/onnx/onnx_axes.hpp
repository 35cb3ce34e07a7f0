// Moving rows of ONNX tensors into the axes of a case: whole elements are copied, none is changed.
#pragma once

#include <string>

#include "oracle/onnx/onnx_tensor.hpp"

namespace ringproof::oracle {

/// [B, N, heads * D] as [B, heads, N, D]; a tensor of four axes is taken as it is. `where` starts
/// the message of BadInput.
OnnxTensor heads_apart(const OnnxTensor&, std::int64_t heads, const std::string& where);
/// Rows of `first` [B, H, N1, D] and behind them those of `second` [B, H, N2, D].
OnnxTensor joined_rows(const OnnxTensor& first, const OnnxTensor& second, const std::string& where);
/// The last axis filled up to `columns`: false in a Boolean mask, else minus infinity.
OnnxTensor padded_columns(const OnnxTensor&, std::int64_t columns, const std::string& where);
/// A tensor of integers, I32 or I64.
OnnxTensor integers(DType, std::vector<std::int64_t> shape,
                    const std::vector<std::int64_t>& values);

}  // namespace ringproof::oracle
