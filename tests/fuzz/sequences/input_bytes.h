#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

namespace shoal {

// The bytes of one fuzz input, read from the front. Past the end, everything is 0: an input of few
// bytes is whole. Unlike FuzzedDataProvider, which reads numbers from the back, a part of an input
// keeps its meaning when bytes follow it. So people and scripts can write inputs.
class InputBytes {
 public:
  InputBytes(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  bool empty() const { return size_ == 0; }
  uint8_t Byte() {
    uint8_t byte = 0;
    Take(&byte, 1);
    return byte;
  }
  // Returns a number below `count`, which is at least 1, from one byte.
  size_t Below(size_t count) { return Byte() % count; }
  // Returns eight bytes, little-endian.
  uint64_t Number() {
    uint64_t number = 0;
    Take(&number, sizeof(number));
    return number;
  }
  // Returns at most 255 bytes: a byte with their number, then the bytes.
  std::string Text() {
    std::string text(std::min<size_t>(Byte(), size_), '\0');
    Take(text.data(), text.size());
    return text;
  }

 private:
  void Take(void* out, size_t size) {
    size = std::min(size, size_);
    if (size > 0) std::memcpy(out, data_, size);
    data_ += size;
    size_ -= size;
  }

  const uint8_t* data_;
  size_t size_;
};

}  // namespace shoal
