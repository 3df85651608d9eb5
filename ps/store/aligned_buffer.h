#pragma once

#include <cstddef>
#include <memory>

namespace shoal {

// Owns floats on a 64-byte boundary, with arbitrary values at first. A big buffer asks for huge
// pages, and its memory goes back to the system when it is freed. Movable. Throws std::bad_alloc
// when there is no memory.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(size_t size);

  float* data() const { return data_.get(); }

 private:
  struct Free {
    explicit Free(size_t bytes) : mapped_bytes(bytes) {}
    Free() : Free(0) {}
    size_t mapped_bytes;  // 0: of the allocator
    void operator()(float* data) const;
  };
  std::unique_ptr<float[], Free> data_;
};

}  // namespace shoal
