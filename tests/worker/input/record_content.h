#pragma once

#include <cstdint>
#include <string>

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

}  // namespace shoal
