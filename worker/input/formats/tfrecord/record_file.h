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
  // `roots` as for OpenRegularFile(). Errors name the file. A missing one is kNotFound, a
  // compressed one kUnimplemented.
  static absl::StatusOr<RecordFile> Open(const std::string& path,
                                         const std::vector<std::string>& roots);

  const std::string& path() const { return path_; }
  uint64_t size_bytes() const { return size_; }

  // Calls `on_record` with the offset of each record, in order. Checks the checksums of the
  // lengths, but does not read the data. Returns kDataLoss, with the offset, if a record is
  // invalid.
  absl::Status Scan(const std::function<absl::Status(uint64_t offset)>& on_record) const;
  // Reads the data of the record at `offset` and checks its checksums.
  absl::Status Read(uint64_t offset, EncodedBytes* out) const;

 private:
  RecordFile(std::string path, FileDescriptor file, uint64_t size)
      : path_(std::move(path)), file_(std::move(file)), size_(size) {}
  // Returns the length of the record that begins with the bytes at `head`.
  absl::StatusOr<uint64_t> Length(uint64_t offset, const uint8_t* head) const;

  std::string path_;
  FileDescriptor file_;
  uint64_t size_;
};

}  // namespace shoal
