#pragma once

#include <memory>
#include <string>

#include "tests/fakes/passing_file_system.h"

namespace shoal {

// A disk that may be full.
class FullDisk : public PassingFileSystem {
 public:
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, Mode mode) override {
    if (mode == Mode::kRead) return PassingFileSystem::Open(path, mode);
    ++writes;
    if (full) return absl::ResourceExhaustedError("no space left");
    return PassingFileSystem::Open(path, mode);
  }
  bool full = false;
  int writes = 0;
};

}  // namespace shoal
