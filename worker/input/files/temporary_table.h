#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/input/files/file_descriptor.h"
#include "worker/input/files/temporary_file.h"

namespace shoal {

// Bytes that are written once, one piece after another, to a temporary file without a name, and
// then read through memory: indexes and tables that may be larger than memory, whose pages the
// kernel drops when it is short. Filled by one thread; then constant and thread-safe.
class TemporaryTable {
 public:
  // An error where there can be no temporary file; `what` is for messages.
  static absl::StatusOr<TemporaryTable> Make(const std::string& what,
                                             MeasureDisk measure = MeasureDiskOf);
  TemporaryTable(TemporaryTable&& other) noexcept;
  TemporaryTable& operator=(TemporaryTable&&) = delete;
  ~TemporaryTable();

  // An error where there is no room for more.
  absl::Status Append(std::span<const char> bytes);
  // Everything has been appended. No-op for an empty table.
  absl::Status Finish();

  uint64_t size() const { return size_; }
  // After Finish; aligned as a page is.
  std::span<const char> bytes() const { return bytes_; }

 private:
  TemporaryTable(std::string what, FileDescriptor file, MeasureDisk measure);
  absl::Status Flush();
  absl::Status Error(int error) const;

  std::string what_;
  FileDescriptor file_;
  MeasureDisk measure_;
  std::vector<char> buffer_;
  uint64_t size_ = 0;
  std::span<const char> bytes_;
};

}  // namespace shoal
