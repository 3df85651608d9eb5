#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files/file_system.h"

namespace shoal {

// The directory of a cut in progress. The coordinator makes it; a ps gets its path from a peer and
// checks it:
//
//   CHECKPOINTS/step-000000000500-3-0badcafe[-2]     F, term; a number if the name exists
//     .cut-COORDINATOR_ID-ATTEMPT                    the marker, empty, until the cut is committed

// "step-000000000500-3-0badcafe".
std::string CutDirectoryName(uint64_t cut_step, uint64_t term);
// ".cut-7-1".
std::string CutMarkerName(uint32_t coordinator_id, uint64_t attempt);

// A cut as a Fence describes it.
struct CutPlace {
  uint64_t cut_step = 0;
  uint64_t term = 0;
  std::string directory;
  std::string marker;
  std::string checkpoints;  // must contain `directory`; empty: any directory named "checkpoints"
};

// Returns OK if directory and marker have the names that a coordinator gives them, in its directory
// of checkpoints. kInvalidArgument names the wrong one. Reads no file.
absl::Status CheckCutNames(const CutPlace& place);

// Returns OK if `directory`, absolute and plain, lies in `checkpoints` (if that is empty, in any
// directory named "checkpoints"). kInvalidArgument names both.
absl::Status CheckInCheckpoints(const std::string& directory, const std::string& checkpoints);

// Returns whether this machine sees the directory: the marker exists. kFailedPrecondition: the ps
// must not write there, because the directory or the marker is a symbolic link, the marker is not
// an empty file, or the directory holds a checkpoint.
absl::StatusOr<bool> SeesCutDirectory(const CutPlace& place, FileSystem* files);

}  // namespace shoal
