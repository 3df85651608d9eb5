#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files/file_system.h"

namespace shoal {

// Bytes with random access: a file, or a member of an archive.
struct ByteSource {
  std::string name;  // for messages: "model.keras: model.weights.h5"
  uint64_t size = 0;
  // Reads exactly `size` bytes at `offset`. Returns kDataLoss if the source ends before them.
  std::function<absl::Status(uint64_t offset, void* out, uint64_t size)> read;
};

// Opens a file. It stays open while any copy of the result lives.
absl::StatusOr<ByteSource> OpenByteSource(const std::string& path,
                                          FileSystem* files = RealFileSystem());

// Returns the CRC-32C of all bytes.
absl::StatusOr<uint32_t> ChecksumOf(const ByteSource& source);

}  // namespace shoal
