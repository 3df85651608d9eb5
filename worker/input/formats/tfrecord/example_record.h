#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "worker/input/pictures/picture_loader.h"

namespace shoal {

// A tf.train.Example (tensorflow/core/example/example.proto and feature.proto), read in place. A
// parsed message with many small values takes twenty times the memory of its bytes. A file could
// then make a worker use any amount of memory.
//   Example   = { 1: Features }
//   Features  = { 1: { 1: key, 2: Feature } for each key }, the last of those with a key
//   Feature   = { 1: BytesList } or { 2: FloatList } or { 3: Int64List }
//   BytesList = { 1: bytes for each },  FloatList = { 1: fixed32 },  Int64List = { 1: varint },
//               both packed or not
// Immutable, thread-safe; refers to bytes that outlive it.
class ExampleRecord {
 public:
  explicit ExampleRecord(std::span<const uint8_t> data) : data_(data) {}

  // Calls `on_feature` with each key and the kind of its values: "3 float", "a JPEG". Returns
  // kDataLoss if the bytes are not a valid message.
  absl::Status Describe(
      const std::function<void(std::string_view key, const std::string& kind)>& on_feature) const;

  // Writes the values of `key`. They must be out.size() int64 or float values, or out.size() bytes.
  // If `pictures` is not null, also accepts a JPEG or PNG, decoded by `pictures` in `memory`.
  // Returns kDataLoss, with the actual content, otherwise.
  absl::Status Values(const std::string& key, const PictureLoader* pictures, MemoryBudget* memory,
                      std::span<float> out) const;
  // The same for a label. Rejects bytes, because the text "3" would become class 51.
  absl::Status Label(const std::string& key, std::span<float> out) const;

 private:
  std::span<const uint8_t> data_;
};

}  // namespace shoal
