#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/files/file_system.h"

namespace shoal {

// Forwards to the machine's file system. A test overrides functions to make them fail.
class PassingFileSystem : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, Mode mode) override {
    return real_->Open(path, mode);
  }
  bool Exists(const std::string& path) override { return real_->Exists(path); }
  bool IsDirectory(const std::string& path) override { return real_->IsDirectory(path); }
  bool IsLink(const std::string& path) override { return real_->IsLink(path); }
  std::chrono::nanoseconds Age(const std::string& path) override { return real_->Age(path); }
  absl::StatusOr<std::vector<Entry>> List(const std::string& directory) override {
    return real_->List(directory);
  }
  absl::Status MakeDirectory(const std::string& path) override {
    return real_->MakeDirectory(path);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    return real_->Rename(from, to);
  }
  absl::Status Exchange(const std::string& a, const std::string& b) override {
    return real_->Exchange(a, b);
  }
  absl::Status RemoveFile(const std::string& path) override { return real_->RemoveFile(path); }
  absl::Status RemoveTree(const std::string& directory) override {
    return real_->RemoveTree(directory);
  }
  absl::Status SyncDirectory(const std::string& directory) override {
    return real_->SyncDirectory(directory);
  }
  bool SyncsDirectories(const std::string& directory) override {
    return real_->SyncsDirectories(directory);
  }

 private:
  FileSystem* const real_ = RealFileSystem();
};

}  // namespace shoal
