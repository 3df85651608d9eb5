#pragma once

#include <memory>
#include <string>

#include "tests/fakes/passing_file_system.h"

namespace shoal {

// A disk that may be full, or may not read one of its files.
class FullDisk : public PassingFileSystem {
 public:
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, Mode mode) override {
    if (mode == Mode::kRead) {
      if (path == unreadable) return absl::UnknownError("cannot read " + path);
      return PassingFileSystem::Open(path, mode);
    }
    ++writes;
    if (full) return absl::ResourceExhaustedError("no space left");
    return PassingFileSystem::Open(path, mode);
  }
  bool full = false;
  std::string unreadable;
  int writes = 0;
};

}  // namespace shoal
