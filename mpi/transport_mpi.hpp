// Ranks as MPI processes. Sends and receives are MPI's own, on a communicator of their own; a lane
// is a tag. Between commit and wait MPI may move the data.
#pragma once

#include <mpi.h>

#include <map>
#include <vector>

#include "mpi/transport.hpp"

namespace ringproof::mpi {

class MpiTransport : public Transport {
 public:
  /// Precondition: MPI is initialised. Duplicates the communicator.
  MpiTransport(MPI_Comm communicator, const DebugOptions& debug);
  ~MpiTransport() override;

 protected:
  void start(Batch, const std::vector<Transfer>&) override;
  void finish(Batch, const std::vector<Transfer>&) override;

 private:
  struct Receive {
    std::size_t request;  // index into the requests of its batch
    int bytes;            // that must come
  };
  struct Flight {
    std::vector<MPI_Request> requests;
    std::vector<Receive> receives;
  };

  MPI_Comm communicator_ = MPI_COMM_NULL;
  std::map<Batch, Flight> flights_;
};

}  // namespace ringproof::mpi
