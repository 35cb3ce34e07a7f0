// The answer's file, written by all ranks at once: each writes its own rows where they belong, and
// nobody holds more than that. The file has a temporary name beside its own until every rank has
// written without an error; a run that fails, or is killed politely, leaves nothing behind.
// All ranks must see the same file system.
#pragma once

#include <mpi.h>

#include <span>
#include <string>
#include <vector>

#include "oracle/case/case_file.hpp"

namespace ringproof::mpi {

/// One tensor of the file; `data` null: its bytes are written by the ranks.
struct SharedTensor {
  std::string name;
  oracle::DType type;
  std::vector<std::int64_t> shape;
  const std::byte* data = nullptr;
};

class SharedFile {
 public:
  /// Collective. Rank 0 creates the file, writes its header and the tensors that have data. Throws
  /// oracle::BadInput on every rank, naming the rank that could not.
  SharedFile(MPI_Comm communicator, std::string path, const std::vector<SharedTensor>& tensors,
             const std::string& spec_json);
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;
  ~SharedFile();

  /// Writes bytes `offset` bytes into tensor n. Neighbouring writes are joined. Errors are kept for
  /// finish(): the other ranks wait there.
  void write(std::size_t n, std::size_t offset, std::span<const std::byte> bytes);

  /// Collective. Gives the file its name if every rank wrote everything. Throws as above.
  void finish();

 private:
  void flush();
  void write_at(std::size_t place, std::span<const std::byte> bytes);

  MPI_Comm communicator_;
  std::string path_, temporary_, error_;
  int rank_ = 0, file_ = -1;
  std::vector<std::size_t> begin_;  // of each tensor in the file
  std::vector<std::byte> pending_;  // bytes that lie side by side
  std::size_t pending_place_ = 0;
};

}  // namespace ringproof::mpi
