#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "common/base/crc32c.h"

namespace shoal {

inline std::string LittleEndian(uint64_t number, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text.push_back(static_cast<char>(number >> (8 * i)));
  return text;
}

inline uint32_t MaskedCrc(const std::string& data) {
  const uint32_t crc = Crc32c(data);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8;
}

// A record of a TFRecord file.
inline std::string TfRecordOf(const std::string& data) {
  const std::string length = LittleEndian(data.size(), 8);
  return length + LittleEndian(MaskedCrc(length), 4) + data + LittleEndian(MaskedCrc(data), 4);
}

inline std::string Varint(uint64_t number) {
  std::string text;
  for (; number >= 0x80; number >>= 7) text.push_back(static_cast<char>(number | 0x80));
  text.push_back(static_cast<char>(number));
  return text;
}

// Returns a field of a protobuf message with a length: bytes, a message, or packed numbers.
inline std::string ProtoField(char number, const std::string& content) {
  return static_cast<char>(number << 3 | 2) + Varint(content.size()) + content;
}

// The content of a tf.train.Example, with the field numbers of
// tensorflow/core/example/example.proto and feature.proto: a Feature is one of three lists, and an
// Example has several Features.
inline std::string BytesFeature(const std::string& value) {
  return ProtoField(1, ProtoField(1, value));
}
inline std::string FloatFeature(const std::vector<float>& values) {
  std::string packed(values.size() * sizeof(float), '\0');
  std::memcpy(packed.data(), values.data(), packed.size());
  return ProtoField(2, ProtoField(1, packed));
}
inline std::string IntegerFeature(uint64_t value) {
  return ProtoField(3, ProtoField(1, Varint(value)));
}
inline std::string ExampleOf(const std::vector<std::pair<std::string, std::string>>& features) {
  std::string map;
  for (const auto& [key, feature] : features)
    map += ProtoField(1, ProtoField(1, key) + ProtoField(2, feature));
  return ProtoField(1, map);
}

}  // namespace shoal
