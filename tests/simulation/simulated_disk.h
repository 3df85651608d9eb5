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

// A disk that knows what of it is durable. What was not synced may be lost, wholly or in part, when
// the power goes: writes to files are torn at any byte, and of the changes to a directory some
// last and some do not. One thread.
class SimulatedDisk : public FileSystem {
 public:
  SimulatedDisk();
  ~SimulatedDisk() override;

  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, Mode mode) override;
  bool Exists(const std::string& path) override;
  bool IsDirectory(const std::string& path) override;
  // Knows no time: as of a machine whose clock is behind.
  std::chrono::nanoseconds Age(const std::string&) override { return {}; }
  absl::StatusOr<std::vector<Entry>> List(const std::string& directory) override;
  absl::Status MakeDirectory(const std::string& path) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Exchange(const std::string& a, const std::string& b) override;
  absl::Status RemoveFile(const std::string& path) override;
  absl::Status RemoveTree(const std::string& directory) override;
  absl::Status SyncDirectory(const std::string& directory) override;

  // The power goes: what is left is what was durable and some of the rest.
  void LosePower(Random* random);
  // Changes a byte of a file; false when there is none.
  bool Damage(const std::string& path, Random* random);
  uint64_t used_bytes() const;

  // Called when something has got the name `path`.
  std::function<void(const std::string& path)> on_renamed;

 private:
  struct Node;
  class OpenFile;
  using NodePtr = std::shared_ptr<Node>;

  NodePtr Find(const std::string& path) const;
  // The directory of `path` and its name there; null when there is no such directory.
  NodePtr ParentOf(const std::string& path, std::string* name) const;
  static void LosePower(const NodePtr& node, Random* random);

  NodePtr root_;
};

}  // namespace shoal
