#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_layout.h"
#include "common/checkpoint/manifest.h"
#include "common/files/file_system.h"

namespace shoal {

// Reads one file of a checkpoint completely. Checks its size and checksum against the manifest, the
// format of a safetensors file, and the fingerprint of job.json. Returns kDataLoss if it is
// damaged, with the file, the expected and the actual value. Thread-safe.
absl::Status VerifyFile(const StoredCheckpoint& checkpoint, const Manifest::File& file,
                        FileSystem* files = RealFileSystem());

// Verifies the manifest on disk and all files in it.
absl::Status VerifyCheckpoint(const StoredCheckpoint& checkpoint,
                              FileSystem* files = RealFileSystem());

// Returns whether `status`, an error of reading a checkpoint, means that its content is wrong. All
// other errors mean that it could not be read: the disk failed, or a file was not there or closed.
// It may be whole then.
bool IsCheckpointDamage(const absl::Status& status);

struct CheckedFile {
  Manifest::File entry;    // for the manifest
  std::string not_finite;  // its first tensor with a value that is not finite; or empty
};
// Reads a file that CheckpointWriters of several ps wrote. Checks that its header is that of the
// layout, and that `parts`, in any order, cover each byte after it exactly once. Checks the parts
// against the checksums from their writers. Syncs the file. Returns kDataLoss with the first wrong
// byte.
absl::StatusOr<CheckedFile> CheckWrittenFile(const std::string& directory,
                                             const CheckpointLayout::File& file,
                                             std::vector<WrittenPart> parts,
                                             FileSystem* files = RealFileSystem());

}  // namespace shoal
