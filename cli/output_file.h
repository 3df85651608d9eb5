#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files/file_system.h"

namespace shoal {

// A file that a command writes bit by bit and that is there whole or not at all: written beside,
// under a name that ends in ".partial", and renamed at the end. One thread at a time.
class OutputFile {
 public:
  // kFailedPrecondition where there is something at `path` already, unless it may be replaced.
  static absl::StatusOr<std::unique_ptr<OutputFile>> Create(const std::string& path, bool replace,
                                                            FileSystem* files = RealFileSystem());
  // Removes what was written, unless Finish() has been called.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  absl::Status Append(const std::string& bytes);
  // Puts the file in its place, to stay there. Once.
  absl::Status Finish();

 private:
  OutputFile(std::string path, bool replace, FileSystem* files)
      : path_(std::move(path)), replace_(replace), files_(files) {}
  absl::Status CheckPlace() const;

  const std::string path_;  // absolute
  const bool replace_;
  FileSystem* const files_;
  std::unique_ptr<File> partial_;
  uint64_t size_ = 0;
};

}  // namespace shoal
