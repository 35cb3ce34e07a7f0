// Writing one safetensors file from many processes (shared_file.hpp).
#include "mpi/cli/shared_file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <system_error>

#include "mpi/cli/agreement.hpp"
#include "oracle/case/error.hpp"

namespace ringproof::mpi {
namespace {

constexpr std::size_t kMostPending = 1u << 20;

std::string system_message(int error) { return std::generic_category().message(error); }

/// The name that a signal handler must remove; empty: none.
char unfinished[4096];

extern "C" void remove_unfinished(int signal) {
  if (unfinished[0] != '\0') unlink(unfinished);
  _exit(128 + signal);
}

/// A launcher that gives up on a job ends its processes with SIGTERM.
void remove_at_signal(const std::string& path) {
  if (path.size() >= sizeof unfinished) return;
  std::memcpy(unfinished, path.c_str(), path.size() + 1);
  struct sigaction action {};
  action.sa_handler = path.empty() ? SIG_DFL : remove_unfinished;
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaction(signal, &action, nullptr);
}

std::size_t bytes_of(const SharedTensor& tensor) {
  std::size_t bytes = oracle::size_of(tensor.type);
  for (const std::int64_t size : tensor.shape) bytes *= static_cast<std::size_t>(size);
  return bytes;
}

}  // namespace

SharedFile::SharedFile(MPI_Comm communicator, std::string path,
                       const std::vector<SharedTensor>& tensors, const std::string& spec_json)
    : communicator_(communicator), path_(std::move(path)) {
  MPI_Comm_rank(communicator_, &rank_);
  // Wide elements first: behind a padded header every tensor is aligned to its element.
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return oracle::size_of(tensors[a].type) > oracle::size_of(tensors[b].type);
  });
  nlohmann::json root;
  root["__metadata__"]["ringproof"] = spec_json;
  begin_.resize(tensors.size());
  std::size_t end = 0;
  for (const std::size_t n : order) {
    begin_[n] = end;
    end += bytes_of(tensors[n]);
    root[tensors[n].name] = {{"dtype", oracle::name(tensors[n].type)},
                             {"shape", tensors[n].shape},
                             {"data_offsets", {begin_[n], end}}};
  }
  std::string text = root.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const std::uint64_t length = text.size();
  const std::string header = std::string(reinterpret_cast<const char*>(&length), 8) + text;
  for (std::size_t& begin : begin_) begin += header.size();

  // Everybody takes rank 0's name for the file, whose process it names.
  long process = getpid();
  MPI_Bcast(&process, 1, MPI_LONG, 0, communicator_);
  temporary_ = path_ + "." + std::to_string(process) + ".part";
  // Whoever lives longest removes it: all are ready to before it exists.
  remove_at_signal(temporary_);
  MPI_Barrier(communicator_);
  struct stat status {};
  if (rank_ == 0 && stat(path_.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    error_ = path_ + (S_ISDIR(status.st_mode) ? ": is a directory" : ": is not a regular file");
  } else if (rank_ == 0) {
    file_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (file_ >= 0) {
      write_at(0, std::as_bytes(std::span(header)));
      for (std::size_t n = 0; n < tensors.size(); ++n) {
        if (tensors[n].data) write_at(begin_[n], {tensors[n].data, bytes_of(tensors[n])});
      }
      const auto size = static_cast<off_t>(header.size() + end);
      if (error_.empty() && ftruncate(file_, size) != 0) {
        error_ = path_ + ": cannot be written: " + system_message(errno);
      }
    } else {
      error_ = path_ + ": cannot be written: " + system_message(errno);
    }
  }
  MPI_Barrier(communicator_);
  if (rank_ != 0) {
    file_ = open(temporary_.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file_ < 0) error_ = path_ + ": does not see what rank 0 writes: " + system_message(errno);
  }
  const std::string complaint = first_complaint(communicator_, error_);
  if (!complaint.empty()) {
    if (file_ >= 0) close(file_);
    if (rank_ == 0 && file_ >= 0) unlink(temporary_.c_str());
    file_ = -1;
    remove_at_signal("");
    throw oracle::BadInput(complaint);
  }
}

SharedFile::~SharedFile() {
  if (file_ < 0) return;
  close(file_);
  unlink(temporary_.c_str());
  remove_at_signal("");
}

void SharedFile::write(std::size_t n, std::size_t offset, std::span<const std::byte> bytes) {
  const std::size_t place = begin_[n] + offset;
  if (place != pending_place_ + pending_.size() || pending_.size() + bytes.size() > kMostPending) {
    flush();
    pending_place_ = place;
  }
  pending_.insert(pending_.end(), bytes.begin(), bytes.end());
}

void SharedFile::flush() {
  write_at(pending_place_, pending_);
  pending_.clear();
}

void SharedFile::write_at(std::size_t place, std::span<const std::byte> bytes) {
  while (!bytes.empty() && error_.empty()) {
    const ssize_t written =
        pwrite(file_, bytes.data(), std::min<std::size_t>(bytes.size(), 1u << 30),
               static_cast<off_t>(place));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      error_ = path_ + ": cannot be written: " + system_message(written < 0 ? errno : ENOSPC);
      return;
    }
    place += static_cast<std::size_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void SharedFile::finish() {
  flush();
  const int file = std::exchange(file_, -1);
  // Some file systems tell of a full disk only now.
  if (close(file) != 0 && error_.empty()) {
    error_ = path_ + ": cannot be written: " + system_message(errno);
  }
  std::string complaint = first_complaint(communicator_, error_);
  std::string renaming;
  if (rank_ == 0 && complaint.empty() && rename(temporary_.c_str(), path_.c_str()) != 0) {
    renaming = path_ + ": cannot be written: " + system_message(errno);
  }
  if (complaint.empty()) complaint = first_complaint(communicator_, renaming);
  if (rank_ == 0 && !complaint.empty()) unlink(temporary_.c_str());
  remove_at_signal("");
  if (!complaint.empty()) throw oracle::BadInput(complaint);
}

}  // namespace ringproof::mpi
