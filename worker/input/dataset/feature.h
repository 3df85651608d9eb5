#pragma once

#include <cstdint>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>

#include "common/base/shape.h"

namespace shoal {

// Float32 holds every integer of at most this magnitude.
inline constexpr int64_t kLargestInteger = 1 << 24;

// The type of a feature's values. All are stored as float32, the type for computing, except bytes
// that are requested as bytes. Integers must be in [-2^24, 2^24]. Reading rejects others.
enum class FeatureType {
  kFloat,
  kInteger,
  kWeight,  // not an input: the example's weight, finite and not negative; the last feature
};

// One input of a model, and the type of its values in an example.
struct Feature {
  std::string name;  // name of the model's input
  Shape shape;       // without the batch axis
  FeatureType type = FeatureType::kFloat;
  // For integers: the min and max values.
  int64_t min = -kLargestInteger;
  int64_t max = kLargestInteger;
  // Whether all values are known to be whole numbers from 0 to 255, such as those of pictures
  // stored as bytes.
  bool bytes = false;
};

// The destination of one feature's values in an example: float32, or bytes for a feature with
// `bytes`. One of the spans is empty.
struct FeatureSpan {
  FeatureSpan() = default;
  // From contiguous floats or bytes. Implicit, so that a vector can be passed as a destination.
  template <std::ranges::contiguous_range Values>
  FeatureSpan(Values&& values) {  // NOLINT(google-explicit-constructor): meant to be implicit
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
