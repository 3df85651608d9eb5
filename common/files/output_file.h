#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files/file_system.h"

namespace shoal {

// A file that is there whole or not at all: written in a directory of its own beside it, whose name
// ends in ".partial", and renamed at the end. One thread at a time.
class OutputFile {
 public:
  // Folders on the way to `path` are made. kAlreadyExists where there is something, unless it is a
  // file and `replace`.
  static absl::StatusOr<std::unique_ptr<OutputFile>> Create(const std::string& path, bool replace,
                                                            FileSystem* files = RealFileSystem());
  // Removes what was written, unless Finish() has been called.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // It is written bit by bit,
  absl::Status Append(const std::string& bytes);
  // or by somebody else under this name, and synced. Files beside it go with the directory.
  std::string partial() const { return partial_directory_ + "/" + kPartialName; }
  const std::string& partial_directory() const { return partial_directory_; }

  // Puts the file in its place, to stay there. Once.
  absl::Status Finish();

 private:
  static constexpr char kPartialName[] = "file";

  OutputFile(std::string path, bool replace, FileSystem* files)
      : path_(std::move(path)), replace_(replace), files_(files) {}
  absl::Status CheckPlace() const;

  const std::string path_;  // absolute
  const bool replace_;
  FileSystem* const files_;
  std::string partial_directory_;  // absolute; empty: there is none any more
  std::unique_ptr<File> appended_;
  uint64_t size_ = 0;
};

}  // namespace shoal
