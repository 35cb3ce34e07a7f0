// Non-blocking MPI messages (transport_mpi.hpp). A message may be longer than MPI's int can count:
// it goes in pieces, which arrive in order because one lane's messages between two ranks do.
#include "mpi/transport_mpi.hpp"

#include <algorithm>

namespace ringproof::mpi {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 30;

int rank_in(MPI_Comm communicator) {
  int rank = 0;
  MPI_Comm_rank(communicator, &rank);
  return rank;
}

int size_of(MPI_Comm communicator) {
  int size = 0;
  MPI_Comm_size(communicator, &size);
  return size;
}

/// Calls each(offset, bytes) for the pieces of a message; an empty message is one piece.
void for_pieces(std::size_t bytes, const auto& each) {
  for (std::size_t offset = 0; offset == 0 || offset < bytes; offset += kPiece) {
    each(offset, static_cast<int>(std::min(kPiece, bytes - offset)));
  }
}

}  // namespace

MpiTransport::MpiTransport(MPI_Comm communicator, const DebugOptions& debug)
    : Transport(rank_in(communicator), size_of(communicator), debug) {
  MPI_Comm_dup(communicator, &communicator_);
}

MpiTransport::~MpiTransport() { MPI_Comm_free(&communicator_); }

void MpiTransport::start(Batch batch, const std::vector<Transfer>& transfers) {
  Flight& flight = flights_[batch];
  const auto send = debug().rendezvous ? MPI_Issend : MPI_Isend;
  for (const Transfer& transfer : transfers) {
    const int tag = static_cast<int>(transfer.lane);
    if (transfer.from >= 0) {
      for_pieces(transfer.incoming.size(), [&](std::size_t offset, int bytes) {
        flight.receives.push_back({flight.requests.size(), bytes});
        flight.requests.push_back(MPI_REQUEST_NULL);
        MPI_Irecv(transfer.incoming.data() + offset, bytes, MPI_BYTE,
                  static_cast<int>(transfer.from), tag, communicator_, &flight.requests.back());
      });
    }
    if (transfer.to >= 0) {
      for_pieces(transfer.outgoing.size(), [&](std::size_t offset, int bytes) {
        flight.requests.push_back(MPI_REQUEST_NULL);
        send(transfer.outgoing.data() + offset, bytes, MPI_BYTE, static_cast<int>(transfer.to), tag,
             communicator_, &flight.requests.back());
      });
    }
  }
}

void MpiTransport::finish(Batch batch, const std::vector<Transfer>&) {
  Flight& flight = flights_.at(batch);
  std::vector<MPI_Status> statuses(flight.requests.size());
  MPI_Waitall(static_cast<int>(flight.requests.size()), flight.requests.data(), statuses.data());
  for (const Receive& receive : flight.receives) {
    int bytes = 0;
    MPI_Get_count(&statuses[receive.request], MPI_BYTE, &bytes);
    if (bytes != receive.bytes) {
      throw Misuse(place() + "a message of " + std::to_string(bytes) + " bytes meets a buffer of " +
                   std::to_string(receive.bytes));
    }
  }
  flights_.erase(batch);
}

}  // namespace ringproof::mpi
