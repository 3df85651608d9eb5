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

// Bytes that are appended once to an unnamed temporary file and then read through memory. For
// indexes and tables that may be larger than memory; the kernel drops their pages when memory is
// short. One thread fills it. Then it is constant and thread-safe.
class TemporaryTable {
 public:
  // Returns an error if it cannot make a temporary file. `what` is for messages.
  static absl::StatusOr<TemporaryTable> Make(const std::string& what,
                                             MeasureDisk measure = MeasureDiskOf);
  TemporaryTable(TemporaryTable&& other) noexcept;
  TemporaryTable& operator=(TemporaryTable&&) = delete;
  ~TemporaryTable();

  // Returns an error if there is no space for more.
  absl::Status Append(std::span<const char> bytes);
  // Ends appending. Does nothing for an empty table.
  absl::Status Finish();

  uint64_t size() const { return size_; }
  // Requires Finish(). The bytes have page alignment.
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
