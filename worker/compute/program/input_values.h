#pragma once

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <type_traits>

namespace shoal {

// The values of one input of a batch, in memory owned by someone else. They are float32, or bytes
// if they are whole numbers from 0 to 255.
class InputValues {
 public:
  InputValues() = default;
  // From contiguous floats or bytes. Implicit: a vector is a list of values.
  template <std::ranges::contiguous_range Values>
  InputValues(const Values& values) {  // NOLINT(google-explicit-constructor): meant to be implicit
    if constexpr (std::is_same_v<std::ranges::range_value_t<Values>, uint8_t>) {
      bytes_ = values;
    } else {
      floats_ = values;
    }
  }

  // The values in their own type; the other span is empty.
  std::span<const float> floats() const { return floats_; }
  std::span<const uint8_t> bytes() const { return bytes_; }

  bool empty() const { return size() == 0; }
  size_t size() const { return floats_.size() + bytes_.size(); }
  // `count` values from index `first` on.
  InputValues Part(size_t first, size_t count) const {
    return bytes_.empty() ? InputValues(floats_.subspan(first, count))
                          : InputValues(bytes_.subspan(first, count));
  }

 private:
  std::span<const float> floats_;
  std::span<const uint8_t> bytes_;
};

}  // namespace shoal
