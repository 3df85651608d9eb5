#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "worker/input/pictures/picture_loader.h"

namespace shoal {

// A tf.train.Example (tensorflow/core/example/example.proto and feature.proto), read where it lies:
// a parsed one takes twenty times the memory of its bytes where they are many small values, so that
// a file could have a worker take any amount.
//   Example   = { 1: Features }
//   Features  = { 1: { 1: key, 2: Feature } for each key }, the last of those with a key
//   Feature   = { 1: BytesList } or { 2: FloatList } or { 3: Int64List }
//   BytesList = { 1: bytes for each },  FloatList = { 1: fixed32 },  Int64List = { 1: varint },
//               both packed or not
// Immutable, thread-safe; refers to bytes that outlive it.
class ExampleRecord {
 public:
  explicit ExampleRecord(std::span<const uint8_t> data) : data_(data) {}

  // Calls `on_feature` with what it has for each key: "3 float", "a JPEG". kDataLoss where the
  // bytes are no such message.
  absl::Status Describe(
      const std::function<void(std::string_view key, const std::string& kind)>& on_feature) const;

  // Writes what it has for `key`: as many int64 or float values as `out` takes, or as many bytes;
  // or a JPEG or PNG by `pictures`, if that is given, in `memory`. kDataLoss says what there is
  // instead.
  absl::Status Values(const std::string& key, const PictureLoader* pictures, MemoryBudget* memory,
                      std::span<float> out) const;
  // The same of a label, for which bytes are refused: of "3" they would be class 51.
  absl::Status Label(const std::string& key, std::span<float> out) const;

 private:
  std::span<const uint8_t> data_;
};

}  // namespace shoal
