// Which numbers a storage type holds, asked of whole tensors: the inputs a contract can take at
// all, and the type an answer is judged in (docs/verdicts.md, "Types").
#pragma once

#include <string>

#include "oracle/case/case_file.hpp"
#include "oracle/contract/contract.hpp"
#include "oracle/judge/team.hpp"

namespace ringproof::oracle {

/// Throws BadInput naming tensor, index and value if q, k, v hold a number that the contract's
/// input type does not, although the contract does not re-round what it loads (load_u = 0). With a
/// team each member looks at its share of the rows, and the call is collective.
void require_loadable(const Case&, const Contract&, const Team* = nullptr);

/// The contract's output type if it holds every value of the answer, else the type the answer is
/// stored in.
DType judged_type(const Tensor& answer, DType contract_type, const Team* = nullptr);

}  // namespace ringproof::oracle
