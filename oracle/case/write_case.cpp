// Writing a case: a header, the tensors, and a rename, so that readers see the whole file or none.
// An input that is mapped keeps its bytes, also when it is the file that is replaced.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "oracle/case/case_file.hpp"
#include "oracle/case/error.hpp"
#include "oracle/case/words.hpp"

namespace ringproof::oracle {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw BadInput(path + ": " + what);
}
std::string system_message(int error) { return std::generic_category().message(error); }

std::size_t bytes_of(const std::string& path, const NamedTensor& tensor) {
  std::size_t bytes = size_of(tensor.dtype);
  for (const std::int64_t size : tensor.shape) {
    if (size < 0 || __builtin_mul_overflow(bytes, static_cast<std::size_t>(size), &bytes)) {
      refuse(path, "tensor " + in_quotes(tensor.name) + ": no such shape");
    }
  }
  return bytes;
}

/// The header with its length field, padded so that the data starts at a multiple of 8.
std::string header_of(const std::string& path, const std::vector<const NamedTensor*>& tensors,
                      const std::string& spec_json) {
  nlohmann::json root;
  root["__metadata__"]["ringproof"] = spec_json;
  std::size_t offset = 0;
  for (const NamedTensor* tensor : tensors) {
    const std::size_t end = offset + bytes_of(path, *tensor);
    if (root.contains(tensor->name)) refuse(path, "tensor " + in_quotes(tensor->name) + " twice");
    root[tensor->name] = {
        {"dtype", name(tensor->dtype)}, {"shape", tensor->shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text;
  try {
    text = root.dump();
  } catch (const nlohmann::json::exception&) {
    refuse(path, "the spec or a name is not UTF-8");
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  const std::uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

/// A file beside the target that disappears unless it is kept.
class NewFile {
 public:
  /// `target` may be a symbolic link to a file; then the file it points to is replaced, not the
  /// link.
  explicit NewFile(const std::string& path) : path_(path), target_(resolve(path)) {
    struct stat status {};
    if (stat(target_.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
      refuse(path_, S_ISDIR(status.st_mode) ? "is a directory" : "is not a regular file");
    }
    // O_EXCL: never a file that is there, whoever put it there. The mode is what umask makes of
    // 0666.
    for (int attempt = 0; attempt < 100 && file_ < 0; ++attempt) {
      temporary_ =
          target_ + "." + std::to_string(getpid()) + "-" + std::to_string(attempt) + ".part";
      file_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
      if (file_ < 0 && errno != EEXIST) break;
    }
    if (file_ < 0) {
      temporary_.clear();
      refuse(path_, "cannot be written: " + system_message(errno));
    }
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile() {
    if (file_ >= 0) close(file_);
    if (!temporary_.empty()) unlink(temporary_.c_str());
  }

  void write(const void* data, std::size_t size) {
    const auto* next = static_cast<const char*>(data);
    while (size > 0) {
      const auto written = ::write(file_, next, std::min<std::size_t>(size, 1U << 30));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0)
        refuse(path_, "cannot be written: " + system_message(written < 0 ? errno : ENOSPC));
      next += written;
      size -= static_cast<std::size_t>(written);
    }
  }

  /// Gives the file its name. Some file systems tell of a full disk only at close.
  void keep() {
    const int file = std::exchange(file_, -1);
    if (close(file) != 0) refuse(path_, "cannot be written: " + system_message(errno));
    if (rename(temporary_.c_str(), target_.c_str()) != 0) {
      refuse(path_, "cannot be written: " + system_message(errno));
    }
    temporary_.clear();
  }

 private:
  static std::string resolve(const std::string& path) {
    if (path.empty() || path.find('\0') != std::string::npos) refuse(path, "no file name");
    char* real = realpath(path.c_str(), nullptr);
    if (real == nullptr) return path;  // not there yet, or a link to nowhere, which is replaced
    std::string result(real);
    std::free(real);
    return result;
  }

  std::string path_, target_, temporary_;
  int file_ = -1;
};

}  // namespace

void write_case(const std::string& path, const std::vector<NamedTensor>& tensors,
                const std::string& spec_json) {
  // Wide elements first: with the padded header every tensor is aligned to its element.
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
    return size_of(a->dtype) > size_of(b->dtype);
  });
  const std::string header = header_of(path, order, spec_json);
  NewFile file(path);
  file.write(header.data(), header.size());
  for (const NamedTensor* tensor : order) file.write(tensor->data, bytes_of(path, *tensor));
  file.keep();
}

}  // namespace ringproof::oracle
