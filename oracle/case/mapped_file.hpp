// A file as read-only memory. Opening never waits (a FIFO is refused, not read), and nothing is
// allocated: pages arrive as they are touched.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace ringproof::oracle {

class MappedFile {
 public:
  /// Throws BadInput "PATH: why": missing, not readable, a directory, not a regular file.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// For programs, not for libraries; call it once at the start. From then on
///  * a mapped file that somebody truncates while it is read ends the process with
///    "ringproof: PATH: became shorter while it was read" and exit status 2, where the operating
///    system would end it with SIGBUS (other causes of SIGBUS keep their usual effect);
///  * a file that grows beyond the limit of the process is an error of write_case, not SIGXFSZ.
void guard_against_file_signals();

}  // namespace ringproof::oracle
