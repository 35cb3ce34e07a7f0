// A growing array of doubles for the kernels. It does not keep its contents when it grows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace ringproof::oracle {

/// A growing array of doubles on a 64-byte boundary; contents are lost when it grows.
class AlignedArray {
 public:
  double* resize(std::int64_t count) {
    const auto wanted = static_cast<std::size_t>(count);
    if (wanted > capacity_) {
      const std::size_t bytes = (wanted * sizeof(double) + 63) / 64 * 64;
      data_.reset(static_cast<double*>(std::aligned_alloc(64, bytes)));
      if (!data_) throw std::bad_alloc();
      capacity_ = wanted;
    }
    return data_.get();
  }
  double* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(double* p) const { std::free(p); }
  };
  std::unique_ptr<double[], Free> data_;
  std::size_t capacity_ = 0;
};

}  // namespace ringproof::oracle
