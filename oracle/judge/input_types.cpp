#include "oracle/judge/input_types.hpp"

#include <optional>
#include <sstream>

#include "oracle/case/error.hpp"

namespace ringproof::oracle {

namespace {

struct Place {
  std::int64_t b, h, n, d;
  double value;
};

template <class Wire>
void transfer(Wire& wire, Place& place) {
  auto& [b, h, n, d, value] = place;
  wire(b, h, n, d, value);
}

/// True if every number of `from` is one of `to`, so that nobody has to look at them.
bool holds_every_value(DType to, DType from) {
  if (to == from) return true;
  const Format& wide = format_of(to);
  const Format& narrow = format_of(from);
  return wide.digits >= narrow.digits && wide.smallest() <= narrow.smallest() &&
         wide.largest >= narrow.largest && (wide.has_infinity || !narrow.has_infinity);
}

std::optional<Place> first_in_rows(const Tensor& tensor, DType type, std::int64_t first_row,
                                   std::int64_t last_row) {
  const auto& [B, H, N, D] = tensor.shape;
  for (std::int64_t row = first_row; row < last_row; ++row) {
    const std::int64_t b = row / (H * N), h = row / N % H, n = row % N;
    for (std::int64_t d = 0; d < D; ++d) {
      const double value = tensor.at(b, h, n, d);
      if (!representable(type, value)) return Place{b, h, n, d, value};
    }
  }
  return std::nullopt;
}

/// The first in the order of the tensor, whoever finds it: shares are consecutive.
std::optional<Place> first_not_representable(const Tensor& tensor, DType type, const Team* team) {
  if (!tensor || holds_every_value(type, tensor.dtype)) return std::nullopt;
  const std::int64_t rows = tensor.shape[0] * tensor.shape[1] * tensor.shape[2];
  if (team == nullptr) return first_in_rows(tensor, type, 0, rows);
  const std::int64_t rank = team->rank(), size = team->size();
  const auto mine = first_in_rows(tensor, type, rows * rank / size, rows * (rank + 1) / size);
  for (const std::string& message : team->gather(to_wire(mine))) {
    if (auto found = from_wire<std::optional<Place>>(message)) return found;
  }
  return std::nullopt;
}

void require_loadable(const Case& input, const Contract& contract, const char* tensor_name,
                      const Tensor& tensor, double load_u, const Team* team) {
  if (load_u > 0) return;
  const auto place = first_not_representable(tensor, contract.inputs.dtype, team);
  if (!place) return;
  std::ostringstream message;
  message.precision(17);
  message << input.name << ": " << tensor_name << " holds " << place->value
          << ", which is no number of the contract's input type " << name(contract.inputs.dtype)
          << " (" << tensor_name << " [b " << place->b << ", h " << place->h << ", n " << place->n
          << ", d " << place->d << "], contract " << contract.name << ")";
  throw BadInput(message.str());
}

}  // namespace

void require_loadable(const Case& input, const Contract& contract, const Team* team) {
  require_loadable(input, contract, "q", input.problem.q, contract.inputs.load_u, team);
  require_loadable(input, contract, "k", input.problem.k, contract.inputs.load_u, team);
  require_loadable(input, contract, "v", input.problem.v, contract.inputs.load_u_v, team);
}

DType judged_type(const Tensor& answer, DType contract_type, const Team* team) {
  return first_not_representable(answer, contract_type, team) ? answer.dtype : contract_type;
}

}  // namespace ringproof::oracle
