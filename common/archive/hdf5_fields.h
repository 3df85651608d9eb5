#pragma once

#include <cstdint>
#include <string_view>

namespace shoal {

inline constexpr std::string_view kHdf5Signature("\x89HDF\r\n\x1a\n", 8);
// An address that points to nothing.
inline constexpr uint64_t kHdf5Nowhere = ~uint64_t{0};

// Reads consecutive little-endian fields. A field beyond the end reads as 0 and clears ok().
class Hdf5Fields {
 public:
  explicit Hdf5Fields(std::string_view bytes) : bytes_(bytes) {}

  uint64_t Take(int size) {
    const std::string_view field = TakeBytes(size);
    uint64_t value = 0;
    for (size_t i = field.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(field[i]);
    return value;
  }
  std::string_view TakeBytes(uint64_t size) {
    if (size > bytes_.size()) {
      ok_ = false;
      bytes_ = {};
      return {};
    }
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  void Skip(uint64_t size) { (void)TakeBytes(size); }
  size_t left() const { return bytes_.size(); }
  bool ok() const { return ok_; }

 private:
  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace shoal
