#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files/file_system.h"

namespace shoal {

// A file that appears completely or not at all. It is written in its own directory next to the
// final path, named "PATH.partial", and renamed at the end. Its permissions are 0644 less the
// umask, as any program's output. One thread at a time.
class OutputFile {
 public:
  // Makes the missing parents of `path`. Returns kAlreadyExists if the path exists, unless it is a
  // file and `replace` is true.
  static absl::StatusOr<std::unique_ptr<OutputFile>> Create(const std::string& path, bool replace,
                                                            FileSystem* files = RealFileSystem());
  // Removes the written data, unless Finish() succeeded.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Appends to the file.
  absl::Status Append(const std::string& bytes);
  // The path under which other code may write the file instead of Append(). That code must sync it.
  // Other files in this directory are removed with it.
  std::string partial() const { return partial_directory_ + "/" + kPartialName; }
  const std::string& partial_directory() const { return partial_directory_; }

  // Renames the file to its final path and syncs the directory. Call once.
  absl::Status Finish();

 private:
  static constexpr char kPartialName[] = "file";

  OutputFile(std::string path, bool replace, FileSystem* files)
      : path_(std::move(path)), replace_(replace), files_(files) {}
  absl::Status CheckPlace() const;

  const std::string path_;  // absolute
  const bool replace_;
  FileSystem* const files_;
  std::string partial_directory_;  // absolute; empty after Finish()
  std::unique_ptr<File> appended_;
  uint64_t size_ = 0;
};

}  // namespace shoal
