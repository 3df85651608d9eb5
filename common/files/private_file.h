#pragma once

#include <cstdint>
#include <string>
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
  std::string content;
  uint32_t mode = 0;   // the nine bits of the permissions
  uint32_t owner = 0;  // the user's id
};
// Reads a file and its permissions from one descriptor. Follows links. Returns kDataLoss if it is
// larger than `limit_bytes`.
absl::StatusOr<OwnedFile> ReadOwnedFile(const std::string& path, uint64_t limit_bytes);

}  // namespace shoal
