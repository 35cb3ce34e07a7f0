// ringproof-mpi: the ring between processes, on a case file.
//   mpirun -n P ringproof-mpi CASE -o OUT [--layout L] [--order down|up] [--backward] [--trace F]
//                             [--tile scalar|simd] [--threads T] [--debug-transport SEED]
// Each process reads its own rows of CASE and writes its own rows of OUT. Exit status 2 for bad
// input or usage, 1 if a rank failed; then there is no OUT.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <climits>
#include <cstdio>
#include <fstream>
#include <optional>
#include <sstream>

#include "mpi/cli/agreement.hpp"
#include "mpi/cli/case_source.hpp"
#include "mpi/cli/shared_file.hpp"
#include "mpi/cli/tile_options.hpp"
#include "mpi/ring_backward.hpp"
#include "mpi/transport_mpi.hpp"
#include "oracle/case/error.hpp"
#include "oracle/case/mapped_file.hpp"
#include "reference/cli/tier_options.hpp"
#include "reference/cli/usage.hpp"

namespace {

using namespace ringproof;
using namespace ringproof::mpi;
using reference::CaseInput;

struct Options : reference::TierOptions {
  TileChoice tile;
  unsigned debug_seed = 0;
};

/// Wrong input, on which all ranks agree; rank 0 says it.
struct AgreedFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

int rank_of_this_process() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

/// Does something that only this rank may fail at; if any rank did, all of them stop.
auto together(const auto& action) {
  std::optional<decltype(action())> result;
  std::string complaint;
  try {
    result.emplace(action());
  } catch (const oracle::BadInput& error) {
    complaint = error.what();
  }
  complaint = first_complaint(MPI_COMM_WORLD, complaint);
  if (!complaint.empty()) throw AgreedFailure(complaint);
  return std::move(*result);
}

/// One rank's rows of one tensor. `from` is [B, H, rows.size(), D] in the rank's order.
template <class Real>
void write_rows(SharedFile& file, std::size_t n, const reference::AnswerTensor& tensor,
                const std::vector<Index>& rows, const std::vector<Real>& from) {
  const auto& [B, H, N, D] = tensor.size;
  const std::size_t width = oracle::size_of(tensor.type);
  std::vector<std::byte> row_bytes(static_cast<std::size_t>(D) * width);
  auto next = from.begin();
  for (Index b = 0; b < B; ++b) {
    for (Index h = 0; h < H; ++h) {
      for (const Index row : rows) {
        for (Index d = 0; d < D; ++d, ++next) {
          tensor.encode(static_cast<double>(*next),
                        row_bytes.data() + static_cast<std::size_t>(d) * width);
        }
        file.write(n, tensor.offset(b, h, row, 0), row_bytes);
      }
    }
  }
}

/// What one rank computed.
template <class Real>
struct RankResult {
  reference::ShardAnswer<Real> answer;
  RankGradients<Real> gradients;
  reference::Trace trace;
};

template <class Real>
RankResult<Real> compute(MpiTransport& transport, const CaseInput& input, const Options& options) {
  const Index P = transport.size();
  const reference::CaseProblem<Real> owned(input, reference::Read::description);
  const reference::Problem<Real> description = owned.problem();
  const Journeys journeys(description, options.plan.layout, P, options.plan.direction);
  const auto tile = make_tile<Real>(options.tile, deal(description, CaseSource<Real>{input.views},
                                                       options.plan.layout, P, transport.rank()));
  BlockBuffers buffers(largest_block(*tile, P),
                       options.backward ? OwnBlock::kept : OwnBlock::given);
  RankResult<Real> result;
  result.answer = ring_forward(transport, journeys, *tile, buffers, result.trace);
  if (options.backward) {
    result.gradients =
        ring_backward(transport, journeys, *tile, result.answer, buffers, result.trace);
  }
  transport.expect_idle();
  return result;
}

/// All rows of a list, as indices of the axis.
std::vector<Index> all_rows(Index count) {
  return reference::global_rows({Layout::contiguous, count, 1}, 0);
}

template <class Real>
void write_result(const CaseInput& input, const Options& options, const std::string& contract,
                  Index rank, const RankResult<Real>& result) {
  const auto tensors = reference::answer_tensors(input, options.pass());
  const auto head =
      reference::answer_head(input, options.plan, options.pass(), options.out_path, contract);
  std::vector<SharedTensor> shared;
  for (const auto& tensor : tensors) shared.push_back({tensor.name, tensor.type, tensor.shape});
  for (const auto& carried : head.carried) {
    shared.push_back({carried.name, carried.dtype, carried.shape, carried.data});
  }
  SharedFile file(MPI_COMM_WORLD, options.out_path, shared, oracle::to_json(head.spec));

  const Index P = options.plan.ranks;
  const oracle::Problem& problem = input.views.problem;
  const auto queries = global_rows(Sharding{options.plan.layout, problem.queries, P}, rank);
  const auto keys = global_rows(Sharding{options.plan.layout, problem.keys, P}, rank);
  const bool last = rank == P - 1;  // has the sums over all ranks
  const auto& gradients = result.gradients;
  for (std::size_t n = 0; n < tensors.size(); ++n) {
    const auto& tensor = tensors[n];
    const auto write = [&](const std::vector<Index>& rows, const std::vector<Real>& numbers) {
      write_rows(file, n, tensor, rows, numbers);
    };
    if (tensor.name == "out") write(queries, result.answer.out);
    if (tensor.name == "lse") write(queries, result.answer.lse);
    if (tensor.name == "dq") write(queries, gradients.queries.dq);
    if (tensor.name == "dk") write(keys, gradients.dk);
    if (tensor.name == "dv") write(keys, gradients.dv);
    if (tensor.name == "dsinks" && last) write(all_rows(1), gradients.queries.dsinks);
    if (tensor.name == "dbias") {
      if (problem.bias.stride[2] != 0) {
        write(queries, gradients.queries.dbias.data);
      } else if (last) {
        write(all_rows(1), gradients.queries.dbias.data);
      }
    }
  }
  file.finish();
}

/// The events of all ranks, on rank 0, one rank after the other.
std::string collect_trace(const reference::Trace& trace, int rank, int size) {
  std::ostringstream mine;
  write_trace(mine, trace);
  const std::string text = mine.str();
  const int length = static_cast<int>(text.size());
  std::vector<int> lengths(static_cast<std::size_t>(size)), places(lengths);
  MPI_Gather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
  int total = 0;
  for (std::size_t n = 0; n < lengths.size(); ++n) {
    places[n] = total;
    total += lengths[n];
  }
  std::string all(static_cast<std::size_t>(rank == 0 ? total : 0), '\0');
  MPI_Gatherv(text.data(), length, MPI_CHAR, all.data(), lengths.data(), places.data(), MPI_CHAR, 0,
              MPI_COMM_WORLD);
  return all;
}

void write_trace_file(const reference::Trace& trace, const std::string& path, int rank, int size) {
  const std::string text = collect_trace(trace, rank, size);
  together([&] {
    if (rank != 0) return true;
    std::ofstream file(path, std::ios::binary);
    file << text;
    file.close();
    if (!file) throw oracle::BadInput(path + ": cannot be written");
    return true;
  });
}

reference::TrafficSum traffic_of_all(const reference::Trace& trace) {
  const reference::TrafficSum mine = reference::traffic_of(trace);
  const Index numbers[] = {mine.transfers, mine.bytes, mine.pairs};
  Index sums[3] = {};
  MPI_Reduce(numbers, sums, 3, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  return {sums[0], sums[1], sums[2]};
}

template <class Real>
void run_case(MpiTransport& transport, const CaseInput& input, const Options& options) {
  const RankResult<Real> result = compute<Real>(transport, input, options);
  const std::string preset = tile_preset(options.tile, output_type(input, options.pass()));
  if (!options.trace_path.empty()) {
    write_trace_file(result.trace, options.trace_path, static_cast<int>(transport.rank()),
                     static_cast<int>(transport.size()));
  }
  try {
    write_result(input, options, preset, transport.rank(), result);
  } catch (const oracle::BadInput& error) {  // already agreed on
    if (!options.trace_path.empty() && transport.rank() == 0) {
      std::remove(options.trace_path.c_str());
    }
    throw AgreedFailure(error.what());
  }
  const auto traffic = traffic_of_all(result.trace);
  if (transport.rank() != 0) return;
  const std::string contract = contract_for(input, options.plan.ranks, options.pass(), preset);
  fmt::print("{}", summary(input, options, contract, traffic));
}

void require_agreement(std::uint64_t digest, const std::string& complaint) {
  const std::string other = disagreement(MPI_COMM_WORLD, digest, complaint);
  if (!other.empty()) throw AgreedFailure(other);
}

/// What the ranks must be told alike, or they wait for each other. Paths may be spelled apart.
std::string in_words(const Options& options) {
  return fmt::format("{} {} {} {} {} {}", static_cast<int>(options.plan.layout),
                     static_cast<int>(options.plan.direction), options.backward,
                     options.trace_path.empty(), static_cast<int>(options.tile.kind),
                     options.debug_seed != 0);
}

void run(Options& options) {
  const DebugOptions debug{.rendezvous = options.debug_seed != 0,
                           .check_buffers = options.debug_seed != 0,
                           .delay_seed = options.debug_seed};
  MpiTransport transport(MPI_COMM_WORLD, debug);
  options.plan.ranks = transport.size();
  require_agreement(digest_of(in_words(options)), "is given other options than rank 0");
  const CaseInput input = together([&] { return read_tier_input(options); });
  require_agreement(digest_of(input), options.case_path + ": is another case than rank 0 reads");
  options.tile.wire = wire_type(input.views.problem);
  if (arithmetic_for(input, options.pass()) == reference::Arithmetic::fp64) {
    options.tile.kind = TileKind::scalar;
    run_case<double>(transport, input, options);
  } else {
    run_case<float>(transport, input, options);
  }
}

/// Exit status of command lines that are not to be run, or none. Collective.
std::optional<int> parse(int argc, char** argv, Options& options) {
  CLI::App app{"Ring attention between processes: the MPI tier of ringproof", "ringproof-mpi"};
  reference::add_tier_options(app, options);
  add_tile_options(app, options.tile);
  app.add_option("--debug-transport", options.debug_seed,
                 "not 0: rendezvous sends, random delays, watched buffers");
  std::optional<reference::Usage> usage;
  try {
    app.parse(argc, argv);
    if (options.case_path.empty() || options.out_path.empty()) {
      throw CLI::ValidationError("a case and -o OUT are needed");
    }
  } catch (const CLI::ParseError& error) {
    usage = reference::usage_of(app, error);
  }
  // If one rank has nothing to run, none has: the first such rank says why.
  const int here = rank_of_this_process();
  int first = usage ? here : INT_MAX, status = usage ? usage->status : 0;
  MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (first == INT_MAX) return std::nullopt;
  MPI_Allreduce(MPI_IN_PLACE, &status, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (here == first) print(*usage);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  oracle::guard_against_file_signals();
  int threads = 0;  // a tile may have some; only this one speaks to MPI
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &threads);
  int status = 0;
  try {
    Options options;
    if (const auto early = parse(argc, argv, options)) {
      status = *early;
    } else {
      run(options);
    }
  } catch (const AgreedFailure& failure) {
    if (rank_of_this_process() == 0) fmt::print(stderr, "ringproof-mpi: {}\n", failure.what());
    status = 2;
  } catch (const std::exception& error) {  // this rank alone: the others must not wait for it
    fmt::print(stderr, "ringproof-mpi: rank {}: {}\n", rank_of_this_process(), error.what());
    std::fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return status;
}
