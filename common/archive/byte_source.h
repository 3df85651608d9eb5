#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files/file_system.h"

namespace shoal {

// Bytes that can be read anywhere: a file, or a member of an archive.
struct ByteSource {
  std::string name;  // for messages: "model.keras: model.weights.h5"
  uint64_t size = 0;
  // Reads exactly `size` bytes at `offset`; kDataLoss where they are not there.
  std::function<absl::Status(uint64_t offset, void* out, uint64_t size)> read;
};

// A file, open as long as any copy of what is returned lives.
absl::StatusOr<ByteSource> OpenByteSource(const std::string& path,
                                          FileSystem* files = RealFileSystem());

// CRC-32C of all bytes.
absl::StatusOr<uint32_t> ChecksumOf(const ByteSource& source);

}  // namespace shoal
