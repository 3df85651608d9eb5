#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_layout.h"
#include "common/checkpoint/manifest.h"
#include "common/files/file_system.h"

namespace shoal {

// Reads one file of a checkpoint completely: its size and checksum are those of the manifest, a
// safetensors file keeps the rules of its format, job.json is that of the fingerprint. kDataLoss
// when it is damaged; the error names the file, what was expected and what is there. Thread-safe.
absl::Status VerifyFile(const StoredCheckpoint& checkpoint, const Manifest::File& file,
                        FileSystem* files = RealFileSystem());

// Verifies the manifest as it now is on disk, and every file of it.
absl::Status VerifyCheckpoint(const StoredCheckpoint& checkpoint,
                              FileSystem* files = RealFileSystem());

struct CheckedFile {
  Manifest::File entry;    // for the manifest
  std::string not_finite;  // its first tensor with a value that is no finite number; or empty
};
// Reads a file that CheckpointWriters of several ps wrote: its header is that of the layout, and
// `parts`, in any order, cover each byte after it exactly once and have the checksums that their
// writers say. Syncs the file. kDataLoss names the first byte that is wrong.
absl::StatusOr<CheckedFile> CheckWrittenFile(const std::string& directory,
                                             const CheckpointLayout::File& file,
                                             std::vector<WrittenPart> parts,
                                             FileSystem* files = RealFileSystem());

}  // namespace shoal
