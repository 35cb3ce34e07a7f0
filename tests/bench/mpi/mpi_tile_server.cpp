// The vector tile at the other end of a pipe, so that a script can time it between its peers
// (peers.py). One command a line, one line of answer; without input it ends at once.
//   data FILE H N D          reads q, k, v, dout [H, N, D] as floats             -> ok
//   run forward|both full|causal f32|bf16 THREADS                               -> seconds
//   save FILE                writes out, and dq, dk, dv after `both`            -> ok
// Seconds are the processor's for one thread, the clock's for more.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>

#include "mpi/transport_local.hpp"
#include "tests/bench/mpi/tile_pass.hpp"

using namespace ringproof;
using namespace ringproof::mpi;

namespace {

struct Data {
  Index heads = 0, rows = 0, width = 0;
  std::vector<float> q, k, v, dout;
};

bool read(const std::string& path, Data& data) {
  std::ifstream file(path, std::ios::binary);
  for (auto* list : {&data.q, &data.k, &data.v, &data.dout}) {
    list->resize(static_cast<std::size_t>(data.heads * data.rows * data.width));
    file.read(reinterpret_cast<char*>(list->data()),
              static_cast<std::streamsize>(list->size() * sizeof(float)));
  }
  return static_cast<bool>(file);
}

PassResult run(const Data& data, std::istringstream& words) {
  std::string pass, mask, type;
  int threads = 1;
  words >> pass >> mask >> type >> threads;
  const BenchProblem bench{data.heads, data.rows, data.width, mask == "causal",
                           data.q,     data.k,    data.v,     data.dout};
  PassOptions options;
  options.backward = pass == "both";
  options.threads = threads;
  if (type == "bf16") options.wire = Sixteen::bf16;
  if (threads > 1) options.clock = CLOCK_MONOTONIC;
  PassResult result;
  run_ranks(1, {},
            [&](Transport& transport) { result = timed_pass(transport, bench, options, [] {}); });
  return result;
}

void save(const PassResult& result, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  for (const auto* list : {&result.answer.out, &result.gradients.queries.dq, &result.gradients.dk,
                           &result.gradients.dv}) {
    file.write(reinterpret_cast<const char*>(list->data()),
               static_cast<std::streamsize>(list->size() * sizeof(float)));
  }
}

}  // namespace

int main() {
  Data data;
  PassResult result;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string command, path;
    words >> command;
    if (command == "data") {
      words >> path >> data.heads >> data.rows >> data.width;
      std::puts(read(path, data) ? "ok" : "cannot be read");
    } else if (command == "run") {
      result = run(data, words);
      std::printf("%.9g\n", result.seconds);
    } else if (command == "save") {
      words >> path;
      save(result, path);
      std::puts("ok");
    }
    std::fflush(stdout);
  }
  return 0;
}
