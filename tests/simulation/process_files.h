#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/files/file_system.h"
#include "tests/simulation/simulated/simulated_disk.h"
#include "tests/simulation/simulated/simulated_process.h"

namespace shoal {

// The current faults of the disk.
struct DiskCondition {
  Time latency = std::chrono::microseconds(200);  // of an operation, at most
  bool read_only = false;
  bool full = false;  // rejects further space
};

// The disk as one process sees it. Each operation takes time and may fail. Operations of a dead
// process have no effect.
class ProcessFiles : public FileSystem {
 public:
  // All of these must outlive this.
  ProcessFiles(SimulatedProcess* process, SimulatedDisk* disk, const DiskCondition* condition)
      : process_(process), disk_(disk), condition_(condition) {
    process->set_file_latency(&condition->latency);
  }

  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, Mode mode) override;
  bool Exists(const std::string& path) override;
  bool IsDirectory(const std::string& path) override;
  std::chrono::nanoseconds Age(const std::string& path) override { return disk_->Age(path); }
  absl::StatusOr<std::vector<Entry>> List(const std::string& directory) override;
  absl::Status MakeDirectory(const std::string& path) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Exchange(const std::string& a, const std::string& b) override;
  absl::Status RemoveFile(const std::string& path) override;
  absl::Status RemoveTree(const std::string& directory) override;
  absl::Status SyncDirectory(const std::string& directory) override;

 private:
  class OpenFile;

  // Waits. Returns an error if the process is dead.
  absl::Status Begin(const char* what, const std::string& path);
  // The same for operations that change something.
  absl::Status BeginChange(const char* what, const std::string& path);

  SimulatedProcess* const process_;
  SimulatedDisk* const disk_;
  const DiskCondition* const condition_;
};

}  // namespace shoal
