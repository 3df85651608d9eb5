#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files/file_system.h"

namespace shoal {

// The disk of a machine without any files of the run and without write permission: a ps there does
// not see the coordinator's directory.
class BareFileSystem : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, Mode) override {
    return Missing(path);
  }
  bool Exists(const std::string&) override { return false; }
  bool IsDirectory(const std::string&) override { return false; }
  std::chrono::nanoseconds Age(const std::string&) override { return {}; }
  absl::StatusOr<std::vector<Entry>> List(const std::string& directory) override {
    return Missing(directory);
  }
  absl::Status MakeDirectory(const std::string& path) override { return Missing(path); }
  absl::Status Rename(const std::string& from, const std::string&) override {
    return Missing(from);
  }
  absl::Status Exchange(const std::string& a, const std::string&) override { return Missing(a); }
  absl::Status RemoveFile(const std::string& path) override { return Missing(path); }
  absl::Status RemoveTree(const std::string&) override { return absl::OkStatus(); }
  absl::Status SyncDirectory(const std::string& directory) override { return Missing(directory); }

 private:
  static absl::Status Missing(const std::string& path) {
    return absl::NotFoundError(absl::StrCat("cannot open ", path, ": No such file or directory"));
  }
};

}  // namespace shoal
