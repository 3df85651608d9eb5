#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace shoal {

// Files with secrets, on the machine's file system. Every error names the path and the system's
// reason.

// Makes `directory` with mode 0700, and its missing parents with 0755. OK if the directory exists
// and only its owner can write it; `only_owner_reads` requires that only its owner can read it,
// too. Else, and if it is a link, returns kFailedPrecondition with the command that mends it.
absl::Status MakePrivateDirectory(const std::string& directory, bool only_owner_reads);

struct NewFile {
  std::string name;
  std::string content;
};
// Writes new files with mode 0600 into `directory`, in this order, and syncs them: all or none.
// Returns kAlreadyExists if one of them exists, as a file or a link. Never overwrites one.
absl::Status WriteNewPrivateFiles(const std::string& directory, const std::vector<NewFile>& files);

struct OwnedFile {
  std::string path;  // for messages
  std::string content;
  uint32_t mode = 0;   // the nine bits of the permissions
  uint32_t owner = 0;  // the user's id
};
// An open directory. Its name may point elsewhere meanwhile; all files are read from the same one.
// Any thread may call the methods.
class HeldDirectory {
 public:
  // Follows links. Returns kNotFound, or another error of the system.
  static absl::StatusOr<HeldDirectory> Open(const std::string& path);
  ~HeldDirectory();
  HeldDirectory(HeldDirectory&& other) noexcept;
  HeldDirectory& operator=(HeldDirectory&&) = delete;

  // Returns the path of an entry, for messages.
  std::string PathOf(const std::string& name) const { return path_ + "/" + name; }
  // Returns whether there is an entry with this name or relative path, be it a link that leads
  // nowhere.
  bool Has(const std::string& name) const;
  // Reads a file and its permissions. Follows links. Returns kNotFound, kFailedPrecondition if it
  // is not a regular file, kDataLoss if it is larger than `limit_bytes`.
  absl::StatusOr<OwnedFile> Read(const std::string& name, uint64_t limit_bytes) const;

 private:
  HeldDirectory(int descriptor, std::string path)
      : descriptor_(descriptor), path_(std::move(path)) {}

  int descriptor_;
  const std::string path_;
};

}  // namespace shoal
