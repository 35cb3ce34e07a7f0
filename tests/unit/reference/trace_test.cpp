// Traces survive being written and read, and a broken line is named.
#include "reference/trace.hpp"

#include <sstream>

#include "tests/support/property.hpp"

using namespace ringproof;
using namespace ringproof::reference;

TEST_CASE("C8: a trace reads back as it was written") {
  test::property("read(write(trace)) == trace", [] {
    const auto number = rc::gen::inRange<Index>(-1, Index{1} << 50);
    Trace trace;
    for (const auto& [step, rank, action, block, peer, bytes, pairs] :
         *rc::gen::container<
             std::vector<std::tuple<Index, Index, int, Index, Index, Index, Index>>>(rc::gen::tuple(
             number, number, rc::gen::inRange(0, 3), number, number, number, number))) {
      trace.push_back({step, rank, static_cast<Action>(action), block, peer, bytes, pairs});
    }
    std::stringstream stream;
    write_trace(stream, trace);
    RC_ASSERT(read_trace(stream) == trace);
  });
}

TEST_CASE("C8: a trace line is one JSON object with the names the other tiers use") {
  std::ostringstream stream;
  write_trace(stream, {{2, 1, Action::post, 3, 0, 4096, 0}});
  CHECK(stream.str() ==
        "{\"step\":2,\"rank\":1,\"action\":\"post\",\"block\":3,\"peer\":0,\"bytes\":4096,"
        "\"pairs\":0}\n");
}

TEST_CASE("C8: a trace line that is not one is refused") {
  const std::string good =
      R"({"step":2,"rank":1,"action":"wait","block":3,"peer":0,"bytes":4096,"pairs":0})";
  std::istringstream fine(good + "\n\n");
  CHECK(read_trace(fine).size() == 1);
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string line = good;
    line.replace(line.find(from), from.size(), to);
    std::istringstream stream(line);
    CHECK_THROWS_AS(read_trace(stream), std::invalid_argument);
  };
  refused("\"block\":3,", "");
  refused("\"wait\"", "\"wave\"");
  refused("4096", "many");
  refused("4096", "4096x");
  refused("\"pairs\":0}", "\"pairs\":0");
}
