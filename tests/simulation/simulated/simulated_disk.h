#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/files/file_system.h"
#include "tests/simulation/random.h"

namespace shoal {

// A disk that tracks which data is durable. When the power fails, it may lose unsynced data, wholly
// or in part: it tears file writes at any byte and keeps only some of the changes to a directory.
// Single-threaded.
class SimulatedDisk : public FileSystem {
 public:
  SimulatedDisk();
  ~SimulatedDisk() override;

  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, Mode mode) override;
  bool Exists(const std::string& path) override;
  bool IsDirectory(const std::string& path) override;
  // Always 0, as on a machine whose clock is behind.
  std::chrono::nanoseconds Age(const std::string&) override { return {}; }
  absl::StatusOr<std::vector<Entry>> List(const std::string& directory) override;
  absl::Status MakeDirectory(const std::string& path) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Exchange(const std::string& a, const std::string& b) override;
  absl::Status RemoveFile(const std::string& path) override;
  absl::Status RemoveTree(const std::string& directory) override;
  absl::Status SyncDirectory(const std::string& directory) override;

  // Simulates a power failure: keeps the durable data and some of the rest.
  void LosePower(Random* random);
  // Changes a byte of a file. Returns false if there is none.
  bool Damage(const std::string& path, Random* random);

  // Called after a rename to `path`.
  std::function<void(const std::string& path)> on_renamed;

 private:
  struct Node;
  class OpenFile;
  using NodePtr = std::shared_ptr<Node>;

  NodePtr Find(const std::string& path) const;
  // Returns the directory of `path` and stores its name there. Returns null if the directory is
  // missing.
  NodePtr ParentOf(const std::string& path, std::string* name) const;
  static void LosePower(const NodePtr& node, Random* random);

  NodePtr root_;
};

}  // namespace shoal
