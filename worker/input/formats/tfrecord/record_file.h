#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/input/files/file_descriptor.h"
#include "worker/input/files/reading_memory.h"

namespace shoal {

// A TFRecord file (https://www.tensorflow.org/tutorials/load_data/tfrecord), all numbers
// little-endian:
//   file    = record*
//   record  = length u64, masked crc32c(length) u32, data, masked crc32c(data) u32
//   masked  = ((crc >> 15) | (crc << 17)) + 0xa282ead8
// Immutable after opening, thread-safe.
class RecordFile {
 public:
  // Errors name the file; a missing one is kNotFound, a compressed one kUnimplemented.
  static absl::StatusOr<RecordFile> Open(const std::string& path);

  const std::string& path() const { return path_; }
  uint64_t size_bytes() const { return size_; }

  // Calls `on_record` with the offset of each record, in their order. The lengths' checksums are
  // compared; data are not read. kDataLoss, with the offset, where something does not fit.
  absl::Status Scan(const std::function<absl::Status(uint64_t offset)>& on_record) const;
  // The data of the record at `offset`, whose checksums are compared.
  absl::Status Read(uint64_t offset, EncodedBytes* out) const;

 private:
  RecordFile(std::string path, FileDescriptor file, uint64_t size)
      : path_(std::move(path)), file_(std::move(file)), size_(size) {}
  // The length of the record whose first bytes these are.
  absl::StatusOr<uint64_t> Length(uint64_t offset, const uint8_t* head) const;

  std::string path_;
  FileDescriptor file_;
  uint64_t size_;
};

}  // namespace shoal
