#pragma once

#include <cstdint>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>

#include "common/base/shape.h"

namespace shoal {

// Of which and below float32 has every integer.
inline constexpr int64_t kLargestInteger = 1 << 24;

// What the values of a feature are. All are held as float32, as everything is that is computed
// with, but bytes where they are wanted as such: of integers those up to 2^24, of either sign, and
// others are refused where they are read.
enum class FeatureType {
  kFloat,
  kInteger,
  kWeight,  // no input: what an example counts, finite and not negative; the last feature
};

// One input of a model, and what an example has for it.
struct Feature {
  std::string name;  // of the model's input
  Shape shape;       // without the batch axis
  FeatureType type = FeatureType::kFloat;
  // Of integers: the least and the largest that there may be.
  int64_t least = -kLargestInteger;
  int64_t most = kLargestInteger;
  // Of each value is known that it is a whole number from 0 to 255, as of pictures that are stored
  // as such.
  bool bytes = false;
};

// Where the values of a feature of one example are written: as float32 or, which a feature of
// `bytes` alone can be, as the bytes that they are. One of them is empty.
struct FeatureSpan {
  FeatureSpan() = default;
  // Of floats or bytes that lie one after the other. Implicit: a vector is a place for values.
  template <std::ranges::contiguous_range Values>
  FeatureSpan(Values&& values) {  // NOLINT
    if constexpr (std::is_same_v<std::ranges::range_value_t<Values>, uint8_t>) {
      bytes = values;
    } else {
      floats = values;
    }
  }

  size_t size() const { return floats.size() + bytes.size(); }

  std::span<float> floats;
  std::span<uint8_t> bytes;
};

}  // namespace shoal
