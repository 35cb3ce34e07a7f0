// Messages between ranks: what arrives, what deadlocks, what is unordered.
#include "cuda/handles.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/cuda/launches.hpp"

using namespace ringproof;
using namespace ringproof::cuda;
using cuda_host::FaultClass;
using cuda_host::Order;
using cuda_host::RankOptions;
using test::Outcome;

namespace {

/// What one rank of a test has.
struct Party {
  int rank, ranks;
  ncclComm_t communicator;
  StreamOwner stream = make_stream();
  DeviceArray<float> mine{16}, theirs{16};
  PinnedArray<float> home{16};

  int next() const { return (rank + 1) % ranks; }
  int previous() const { return (rank + ranks - 1) % ranks; }
  void send(int peer, std::size_t count) {
    check(ncclSend(mine.get(), count, ncclFloat32, peer, communicator, stream.get()));
  }
  void receive(int peer, std::size_t count) {
    check(ncclRecv(theirs.get(), count, ncclFloat32, peer, communicator, stream.get()));
  }
};

Outcome run_parties(int ranks, const RankOptions& options,
                    const std::function<void(Party&)>& body) {
  ncclUniqueId id{};
  bool known = false;
  return test::outcome_of([&] {
    cuda_host::run_ranks(ranks, options, [&](int rank) {
      if (!known) check(ncclGetUniqueId(&id));
      known = true;
      ncclComm_t communicator{};
      check(ncclCommInitRank(&communicator, ranks, id, rank));
      const Owner<ncclComm_t, close_communicator> owner(communicator);
      Party party{.rank = rank, .ranks = ranks, .communicator = communicator};
      check(cudaMemsetAsync(party.mine.get(), rank, party.mine.bytes(), party.stream.get()));
      body(party);
      check(cudaStreamSynchronize(party.stream.get()));
    });
  });
}

Outcome in_every_order(int ranks, const std::function<void(Party&)>& body) {
  for (const Order order : {Order::lazy, Order::eager, Order::random}) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      const Outcome outcome = run_parties(ranks, {order, seed, seed % 2 == 0, true}, body);
      if (outcome.fault) return outcome;
    }
  }
  return {};
}

}  // namespace

TEST_CASE("in a group every rank sends to its neighbour and receives, for any number of ranks") {
  for (int ranks = 1; ranks <= 5; ++ranks) {
    const Outcome outcome = in_every_order(ranks, [](Party& party) {
      check(ncclGroupStart());
      party.send(party.next(), 16);
      party.receive(party.previous(), 16);
      check(ncclGroupEnd());
      check(cudaMemcpyAsync(party.home.numbers().data(), party.theirs.get(), 64,
                            cudaMemcpyDeviceToHost, party.stream.get()));
      check(cudaStreamSynchronize(party.stream.get()));
      const auto bits = std::bit_cast<std::uint32_t>(party.home.numbers()[7]);
      if (bits != 0x01010101U * static_cast<unsigned>(party.previous())) {
        throw std::logic_error("wrong data");
      }
    });
    INFO(outcome.text);
    CHECK(!outcome.fault);
  }
}

TEST_CASE("sends that wait for receives outside a group deadlock, and the report says who waits") {
  const auto ring = [](Party& party) {
    party.send(party.next(), 16);
    party.receive(party.previous(), 16);
  };
  const Outcome outcome = run_parties(3, {.order = Order::lazy}, ring);
  CHECK(outcome.fault == FaultClass::deadlock);
  CHECK(test::names(outcome, "stands before ncclSend (messages_test.cpp:"));
  CHECK(!run_parties(3, {.order = Order::lazy, .buffered_sends = true}, ring).fault);
}

TEST_CASE("a receive that nobody sends to is a deadlock") {
  CHECK(in_every_order(2, [](Party& party) {
          if (party.rank == 0) party.receive(1, 16);
        }).fault == FaultClass::deadlock);
}

TEST_CASE("sizes that do not meet, unknown ranks and open groups are refused") {
  CHECK(in_every_order(2, [](Party& party) {
          if (party.rank == 0) party.send(1, 16);
          if (party.rank == 1) party.receive(0, 15);
        }).fault == FaultClass::usage);
  CHECK(in_every_order(2, [](Party& party) { party.send(2, 1); }).fault == FaultClass::usage);
  CHECK(in_every_order(1, [](Party&) { check(ncclGroupStart()); }).fault == FaultClass::usage);
  CHECK(in_every_order(1, [](Party&) { check(ncclGroupEnd()); }).fault == FaultClass::usage);
}

TEST_CASE("messages between two ranks arrive in the order in which they were sent") {
  const Outcome outcome = in_every_order(2, [](Party& party) {
    for (int n = 0; n < 3; ++n) {
      check(cudaMemsetAsync(party.mine.get(), n, party.mine.bytes(), party.stream.get()));
      if (party.rank == 0) party.send(1, 16);
      if (party.rank == 1) party.receive(0, 16);
      if (party.rank == 0) continue;
      check(cudaMemcpyAsync(party.home.numbers().data(), party.theirs.get(), 64,
                            cudaMemcpyDeviceToHost, party.stream.get()));
      check(cudaStreamSynchronize(party.stream.get()));
      if (std::bit_cast<std::uint32_t>(party.home.numbers()[0]) !=
          0x01010101U * static_cast<unsigned>(n)) {
        throw std::logic_error("wrong order");
      }
    }
  });
  INFO(outcome.text);
  CHECK(!outcome.fault);
}

TEST_CASE("a buffer that is sent may not be overwritten by another stream meanwhile") {
  const auto program = [](bool ordered) {
    return in_every_order(2, [=](Party& party) {
      const StreamOwner other = make_stream();
      const EventOwner sent = make_event();
      check(ncclGroupStart());
      party.send(party.next(), 16);
      party.receive(party.previous(), 16);
      check(ncclGroupEnd());
      check(cudaEventRecord(sent.get(), party.stream.get()));
      if (ordered) check(cudaStreamWaitEvent(other.get(), sent.get(), 0));
      check(cudaMemsetAsync(party.mine.get(), 7, party.mine.bytes(), other.get()));
      check(cudaStreamSynchronize(other.get()));
    });
  };
  CHECK(!program(true).fault);
  CHECK(program(false).fault == FaultClass::device_race);
}

TEST_CASE("what a rank throws is thrown again, and the others are unwound") {
  int unwound = 0;
  struct Count {
    int* counter;
    ~Count() { ++*counter; }
  };
  CHECK_THROWS_AS(cuda_host::run_ranks(3, {},
                                       [&](int rank) {
                                         const Count count{&unwound};
                                         const StreamOwner stream = make_stream();
                                         check(cudaStreamSynchronize(stream.get()));
                                         if (rank == 1) throw std::logic_error("rank 1");
                                         while (true) check(cudaDeviceSynchronize());
                                       }),
                  std::logic_error);
  CHECK(unwound >= 1);
}
