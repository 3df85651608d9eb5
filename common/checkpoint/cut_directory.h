#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files/file_system.h"

namespace shoal {

// The directory of a cut that is being written, as the coordinator makes it and as a ps checks it
// that is told its path by a peer:
//
//   CHECKPOINTS/step-000000000500-3-0badcafe[-2]     F, term; a number where the name was taken
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
  std::string checkpoints;  // the directory lies in it; empty: in any that is called so
};

// Whether directory and marker have the names that a coordinator gives them, in its directory of
// checkpoints. kInvalidArgument says what is wrong. Touches no file.
absl::Status CheckCutNames(const CutPlace& place);

// Whether `directory`, an absolute and plain path, lies in `checkpoints`; where that is empty, in
// any directory that is called so. kInvalidArgument names both.
absl::Status CheckInCheckpoints(const std::string& directory, const std::string& checkpoints);

// Whether this machine sees the directory: its marker is there. kFailedPrecondition: nothing may be
// written there, as the directory or its marker is a symbolic link, the marker is no empty file, or
// the directory holds a checkpoint.
absl::StatusOr<bool> SeesCutDirectory(const CutPlace& place, FileSystem* files);

}  // namespace shoal
