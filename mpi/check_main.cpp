// ringproof-mpi-check: `ringproof check` with its rows spread over processes, for dumps that
// outgrow one machine.
//   mpirun -n P ringproof-mpi-check CASE... [the options of `ringproof check`]
// Every process maps the files and reads what its rows need; the report is that of one process
// (oracle/judge/team.hpp). All ranks must see the same files. Exit status as `ringproof check`; 70
// if a rank failed alone.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <CLI/CLI.hpp>
#include <cstdio>
#include <thread>

#include "oracle/case/error.hpp"
#include "oracle/case/mapped_file.hpp"
#include "oracle/case/words.hpp"
#include "oracle/cli/commands.hpp"
#include "oracle/judge/team.hpp"

namespace {

using namespace ringproof::oracle;

constexpr int kBadInput = 2, kFailureOfTheJudge = 70;

class MpiTeam final : public Team {
 public:
  MpiTeam() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    MPI_Comm node;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node);
    int neighbours = 1;
    MPI_Comm_size(node, &neighbours);
    MPI_Comm_free(&node);
    threads_ = std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / neighbours);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int threads() const override { return threads_; }

  /// One broadcast a rank, in pieces: MPI counts bytes in an int.
  std::vector<std::string> gather(const std::string& mine) const override {
    constexpr std::uint64_t kPiece = 1u << 30;
    std::uint64_t length = mine.size();
    std::vector<std::uint64_t> lengths(static_cast<std::size_t>(size_));
    MPI_Allgather(&length, 1, MPI_UINT64_T, lengths.data(), 1, MPI_UINT64_T, MPI_COMM_WORLD);
    std::vector<std::string> all(lengths.size());
    all[static_cast<std::size_t>(rank_)] = mine;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      all[rank].resize(lengths[rank]);
      for (std::uint64_t place = 0; place < lengths[rank]; place += kPiece) {
        MPI_Bcast(all[rank].data() + place,
                  static_cast<int>(std::min(kPiece, lengths[rank] - place)), MPI_CHAR,
                  static_cast<int>(rank), MPI_COMM_WORLD);
      }
    }
    return all;
  }

 private:
  int rank_ = 0, size_ = 1, threads_ = 1;
};

/// Words that differ would let some ranks wait for others for ever.
void require_same_words(int argc, char** argv, const MpiTeam& team) {
  std::string words;
  for (int n = 1; n < argc; ++n) words += argv[n] + std::string(1, '\0');
  require_same(&team, words, "is given another command line than rank 0");
}

int run(int argc, char** argv, const MpiTeam& team) {
  CLI::App program("Judges attention outputs, with rows spread over the ranks of an MPI job.",
                   "ringproof-mpi-check");
  program.set_version_flag("--version", "ringproof " RINGPROOF_VERSION);
  const cli::Command check = cli::check_command(program, &team);
  try {
    require_same_words(argc, argv, team);
    program.parse(argc, argv);
    return check();
  } catch (const CLI::Success& help) {
    return team.rank() == 0 ? program.exit(help) : 0;
  } catch (const CLI::ParseError& error) {
    if (team.rank() == 0) {
      cli::print_error(fmt::format("{} (usage; see ringproof-mpi-check --help)", error.what()));
    }
    return kBadInput;
  } catch (const BadInput& error) {  // on which all ranks agree (together)
    if (team.rank() == 0) cli::print_error(error.what());
    return kBadInput;
  }
}

}  // namespace

int main(int argc, char** argv) {
  guard_against_file_signals();
  int threads = 0;  // rows have some; only this one speaks to MPI
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &threads);
  const MpiTeam team;
  int status = kFailureOfTheJudge;
  try {
    status = run(argc, argv, team);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      throw std::runtime_error("the report could not be written to standard output");
    }
  } catch (const std::exception& error) {  // this rank alone: the others must not wait for it
    cli::print_error(fmt::format("rank {}: failure of the judge: {}", team.rank(), error.what()));
    MPI_Abort(MPI_COMM_WORLD, kFailureOfTheJudge);
  }
  MPI_Finalize();
  return status;
}
