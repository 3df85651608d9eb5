#pragma once

#include <cstddef>
#include <memory>

namespace shoal {

// Floats on a 64-byte boundary, of arbitrary values at first; a big buffer asks for huge pages.
// Owns them; movable. Throws std::bad_alloc when there is no memory.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(size_t size);

  float* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(float* data) const;
  };
  std::unique_ptr<float[], Free> data_;
};

}  // namespace shoal
