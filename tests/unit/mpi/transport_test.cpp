// The three verbs: what they deliver, what they refuse, and that a deadlock is seen.
#include "mpi/transport.hpp"

#include <array>
#include <string>

#include "mpi/transport_local.hpp"
#include "tests/support/catch.hpp"

using namespace ringproof::mpi;

namespace {

using Numbers = std::array<int, 4>;

std::span<const std::byte> out(const Numbers& numbers) { return std::as_bytes(std::span(numbers)); }
std::span<std::byte> in(Numbers& numbers) { return std::as_writable_bytes(std::span(numbers)); }

/// What a ring of two says when its ranks do `body`.
std::string complaint(const std::function<void(Transport&)>& body, Index ranks = 2,
                      const DebugOptions& debug = {}) {
  try {
    run_ranks(ranks, debug, body);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const DebugOptions kModes[] = {{},
                               {.rendezvous = true},
                               {.check_buffers = true, .delay_seed = 3},
                               {.rendezvous = true, .check_buffers = true, .delay_seed = 5}};

}  // namespace

TEST_CASE("C8: what is posted arrives at the wait, round a ring of any size, on every lane") {
  for (const DebugOptions& debug : kModes) {
    for (Index P = 2; P <= 6; ++P) {
      run_ranks(P, debug, [&](Transport& transport) {
        const Index next = (transport.rank() + 1) % P, before = (transport.rank() + P - 1) % P;
        Numbers mine{static_cast<int>(transport.rank()), 1, 2, 3}, theirs{};
        Numbers mine_too{static_cast<int>(transport.rank()) + 100, 4, 5, 6}, theirs_too{};
        transport.post({Lane::blocks, next, out(mine), before, in(theirs)});
        const Batch first = transport.commit();
        transport.post({Lane::gradients, next, out(mine_too), before, in(theirs_too)});
        const Batch second = transport.commit();
        transport.wait(second);  // the other lane does not disturb
        transport.wait(first);
        if (theirs != Numbers{static_cast<int>(before), 1, 2, 3}) throw std::runtime_error("wrong");
        if (theirs_too[0] != static_cast<int>(before) + 100) throw std::runtime_error("wrong lane");
      });
    }
  }
}

TEST_CASE("Messages of one lane arrive in the order in which they were committed") {
  run_ranks(2, {}, [](Transport& transport) {
    for (int n = 0; n < 50; ++n) {
      Numbers numbers{n, n, n, n};
      if (transport.rank() == 0) {
        transport.post({.to = 1, .outgoing = out(numbers)});
        transport.wait(transport.commit());
      } else {
        transport.post({.from = 0, .incoming = in(numbers)});
        transport.wait(transport.commit());
        if (numbers[0] != n) throw std::runtime_error("out of order");
      }
    }
  });
}

TEST_CASE("Misuse of a transport is refused with rank and step") {
  const auto at_step_3 = [](const std::function<void(Transport&)>& body) {
    return complaint([&](Transport& transport) {
      transport.at_step(3);
      if (transport.rank() == 1) body(transport);
    });
  };
  Numbers a{};
  const auto refused = [&](const std::string& text, const std::string& what) {
    INFO(text);
    return contains(text, "rank 1, step 3: ") && contains(text, what);
  };
  CHECK(refused(at_step_3([&](Transport& t) { t.post({.to = 2, .outgoing = out(a)}); }),
                "no rank 2"));
  CHECK(refused(at_step_3([&](Transport& t) { t.post({.to = 1, .outgoing = out(a)}); }), "itself"));
  CHECK(refused(at_step_3([&](Transport& t) { t.post({}); }), "nobody"));
  CHECK(refused(at_step_3([&](Transport& t) {
                  t.post({Lane::blocks, 0, out(a), 0, in(a)});
                }),
                "sends from where it receives"));
  CHECK(refused(at_step_3([&](Transport& t) {
                  t.post({.to = 0, .outgoing = out(a)});
                  t.post({.from = 0, .incoming = in(a)});
                }),
                "posted already"));
  CHECK(refused(at_step_3([&](Transport& t) {
                  t.post({.to = 0, .outgoing = out(a)});
                  t.commit();
                  t.post({.from = 0, .incoming = in(a)});
                }),
                "in flight"));
  CHECK(refused(at_step_3([&](Transport& t) { t.wait(7); }), "not in flight"));
  CHECK(refused(at_step_3([&](Transport& t) { t.post({.to = 0, .outgoing = out(a)}); }),
                "never committed"));
  CHECK(refused(at_step_3([&](Transport& t) {
                  t.post({.to = 0, .outgoing = out(a)});
                  t.commit();
                }),
                "never waited for"));
}

TEST_CASE("A message of the wrong length is refused, not cut or padded") {
  const std::string text = complaint([](Transport& transport) {
    Numbers numbers{};
    if (transport.rank() == 0) {
      transport.post({.to = 1, .outgoing = out(numbers).first(8)});
    } else {
      transport.post({.from = 0, .incoming = in(numbers)});
    }
    transport.wait(transport.commit());
  });
  INFO(text);
  CHECK(contains(text, "8 bytes meets a buffer of 16"));
}

TEST_CASE("DEADLOCK: a schedule that only works with buffered sends is caught by rendezvous") {
  const auto blocking_send_first = [](Transport& transport) {
    Numbers mine{}, theirs{};
    const Index peer = 1 - transport.rank();
    transport.post({.to = peer, .outgoing = out(mine)});
    transport.wait(transport.commit());
    transport.post({.from = peer, .incoming = in(theirs)});
    transport.wait(transport.commit());
  };
  CHECK(complaint(blocking_send_first).empty());
  const std::string text = complaint(blocking_send_first, 2, {.rendezvous = true});
  INFO(text);
  CHECK(contains(text, "deadlock"));
  CHECK(contains(text, "rank 0"));
  CHECK(contains(text, "rank 1"));
}

TEST_CASE("A rank that fails takes the others with it, and they say who it was") {
  const std::string text = complaint(
      [](Transport& transport) {
        Numbers numbers{};
        if (transport.rank() == 2) throw std::runtime_error("the disk is gone");
        transport.post({.from = 2, .incoming = in(numbers)});
        transport.wait(transport.commit());
      },
      4);
  CHECK(text == "the disk is gone");
}

TEST_CASE("RACE: a buffer that is written to while it leaves is noticed") {
  const auto body = [](Transport& transport) {
    Numbers numbers{};
    if (transport.rank() == 0) {
      transport.post({.to = 1, .outgoing = out(numbers)});
      const Batch batch = transport.commit();
      numbers[2] = 5;
      transport.wait(batch);
    } else {
      transport.post({.from = 0, .incoming = in(numbers)});
      transport.wait(transport.commit());
    }
  };
  CHECK(contains(complaint(body, 2, {.check_buffers = true}), "before it had left"));
}
