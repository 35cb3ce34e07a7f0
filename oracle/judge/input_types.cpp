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

/// True if every number of `from` is one of `to`, so that nobody has to look at them.
bool holds_every_value(DType to, DType from) {
  if (to == from) return true;
  const Format& wide = format_of(to);
  const Format& narrow = format_of(from);
  return wide.digits >= narrow.digits && wide.smallest() <= narrow.smallest() &&
         wide.largest >= narrow.largest && (wide.has_infinity || !narrow.has_infinity);
}

std::optional<Place> first_not_representable(const Tensor& tensor, DType type) {
  if (!tensor || holds_every_value(type, tensor.dtype)) return std::nullopt;
  for (std::int64_t b = 0; b < tensor.shape[0]; ++b) {
    for (std::int64_t h = 0; h < tensor.shape[1]; ++h) {
      for (std::int64_t n = 0; n < tensor.shape[2]; ++n) {
        for (std::int64_t d = 0; d < tensor.shape[3]; ++d) {
          const double value = tensor.at(b, h, n, d);
          if (!representable(type, value)) return Place{b, h, n, d, value};
        }
      }
    }
  }
  return std::nullopt;
}

void require_loadable(const Case& input, const Contract& contract, const char* tensor_name,
                      const Tensor& tensor, double load_u) {
  if (load_u > 0) return;
  const auto place = first_not_representable(tensor, contract.inputs.dtype);
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

void require_loadable(const Case& input, const Contract& contract) {
  require_loadable(input, contract, "q", input.problem.q, contract.inputs.load_u);
  require_loadable(input, contract, "k", input.problem.k, contract.inputs.load_u);
  require_loadable(input, contract, "v", input.problem.v, contract.inputs.load_u_v);
}

DType judged_type(const Tensor& answer, DType contract_type) {
  return first_not_representable(answer, contract_type) ? answer.dtype : contract_type;
}

}  // namespace ringproof::oracle
