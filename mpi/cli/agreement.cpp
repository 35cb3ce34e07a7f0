// Collective checks (agreement.hpp).
#include "mpi/cli/agreement.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "reference/cli/case_problem.hpp"

namespace ringproof::mpi {
namespace {

constexpr std::size_t kSamples = 4096;    // of one tensor
constexpr std::size_t kWhole = 1u << 20;  // bytes up to which a tensor is read completely

class Digest {
 public:
  void add(const void* data, std::size_t size) {
    for (const std::byte byte : std::span(static_cast<const std::byte*>(data), size)) {
      hash_ = (hash_ ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3u;
    }
  }
  void add(std::string_view text) { add(text.data(), text.size()); }
  void add(std::int64_t number) { add(&number, sizeof number); }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325u;
};

void add_tensor(Digest& digest, const std::string& name, const oracle::StoredTensor& tensor) {
  digest.add(name);
  digest.add(oracle::name(tensor.dtype));
  for (const std::int64_t size : tensor.shape) digest.add(size);
  const std::size_t bytes = tensor.bytes();
  if (bytes <= kWhole) {
    digest.add(tensor.data, bytes);
    return;
  }
  const std::size_t element = oracle::size_of(tensor.dtype), count = bytes / element;
  for (std::size_t n = 0; n < kSamples; ++n) {
    digest.add(tensor.data + count * n / kSamples * element, element);
  }
}

}  // namespace

std::string first_complaint(MPI_Comm communicator, const std::string& text) {
  int rank = 0, size = 0;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &size);
  int mine = text.empty() ? size : rank, first = size;
  MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, communicator);
  if (first == size) return "";
  std::string shared = rank == first ? "rank " + std::to_string(rank) + ": " + text : "";
  int length = static_cast<int>(shared.size());
  MPI_Bcast(&length, 1, MPI_INT, first, communicator);
  shared.resize(static_cast<std::size_t>(length));
  MPI_Bcast(shared.data(), length, MPI_CHAR, first, communicator);
  return shared;
}

std::uint64_t digest_of(const reference::CaseInput& input) {
  Digest digest;
  digest.add(oracle::to_json(input.files.spec));
  for (const auto& [name, tensor] : input.files.problem().tensors) add_tensor(digest, name, tensor);
  if (input.files.elsewhere) {
    for (const auto& [name, tensor] : input.files.answer.tensors) add_tensor(digest, name, tensor);
  }
  return digest.value();
}

std::uint64_t digest_of(std::string_view text) {
  Digest digest;
  digest.add(text);
  return digest.value();
}

std::string disagreement(MPI_Comm communicator, std::uint64_t digest,
                         const std::string& complaint) {
  std::uint64_t of_first = digest;
  MPI_Bcast(&of_first, 1, MPI_UINT64_T, 0, communicator);
  return first_complaint(communicator, digest == of_first ? "" : complaint);
}

}  // namespace ringproof::mpi
