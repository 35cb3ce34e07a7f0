// NCCL's calls as calls of the world (nccl.hpp).
#include "cuda/host/nccl.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "cuda/host/world.hpp"

using namespace ringproof::cuda_host;

namespace ringproof::cuda_host {

struct Communicator {
  int number, ranks, rank;
};

namespace {

ncclResult_t add_message(bool send, char* buffer, std::size_t bytes, int peer,
                         const Communicator& communicator, Stream* stream, const Location& place) {
  const char* name = send ? "ncclSend" : "ncclRecv";
  World& world = World::current(name);
  world.begin_call(name, place);
  world.expect_stream(stream, name);
  if (peer < 0 || peer >= communicator.ranks) {
    world.fail(Fault(FaultClass::usage, std::string(name) + " with rank " + std::to_string(peer) +
                                            " of " + std::to_string(communicator.ranks)));
  }
  Operation operation;
  operation.kind = OperationKind::exchange;
  operation.name = name, operation.place = place;
  operation.communicator = communicator.number, operation.rank = communicator.rank;
  operation.messages.push_back({send, peer, buffer, bytes, false});
  if (world.rank().group_depth == 0) {
    world.enqueue(stream, std::move(operation));
    world.end_call();
    return ncclSuccess;
  }
  auto& group = world.rank().group;
  const auto same = std::find_if(group.begin(), group.end(),
                                 [=](const auto& entry) { return entry.first == stream; });
  if (same == group.end()) {
    group.emplace_back(stream, std::move(operation));
  } else {
    same->second.messages.push_back(operation.messages.front());
    same->second.name = "ncclSend and ncclRecv";
  }
  return ncclSuccess;
}

std::size_t size_of(ncclDataType_t type) { return type == ncclInt8 ? 1 : 4; }

}  // namespace
}  // namespace ringproof::cuda_host

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  World& world = World::current("ncclGetUniqueId");
  std::memset(id, 0, sizeof *id);
  const std::string name = "group " + std::to_string(world.communicators.size());
  std::memcpy(id->internal, name.c_str(), name.size());
  world.communicators.emplace(name, static_cast<int>(world.communicators.size()));
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank,
                              const Location& place) {
  World& world = World::current("ncclCommInitRank");
  world.begin_call("ncclCommInitRank", place);
  const auto found = world.communicators.find(id.internal);
  if (found == world.communicators.end() || rank < 0 || rank >= ranks) return ncclInvalidArgument;
  *communicator = new Communicator{found->second, ranks, rank};
  world.end_call();
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  delete communicator;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++World::current("ncclGroupStart").rank().group_depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd(const Location& place) {
  World& world = World::current("ncclGroupEnd");
  Rank& rank = world.rank();
  world.begin_call("ncclGroupEnd", place);
  if (rank.group_depth == 0) {
    world.fail(Fault(FaultClass::usage, "ncclGroupEnd without ncclGroupStart"));
  }
  if (--rank.group_depth == 0) {
    for (auto& [stream, operation] : rank.group) world.enqueue(stream, std::move(operation));
    rank.group.clear();
  }
  world.end_call();
  return ncclSuccess;
}

ncclResult_t ncclSend(const void* buffer, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream, const Location& place) {
  char* bytes = static_cast<char*>(const_cast<void*>(buffer));  // a send only reads it
  return add_message(true, bytes, count * size_of(type), peer, *communicator, stream, place);
}

ncclResult_t ncclRecv(void* buffer, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream, const Location& place) {
  return add_message(false, static_cast<char*>(buffer), count * size_of(type), peer, *communicator,
                     stream, place);
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclSuccess ? "success" : "invalid argument";
}
