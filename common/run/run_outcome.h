#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/files/file_system.h"
#include "common/run/run_paths.h"

namespace shoal {

// The outcome of a run, for readers after its coordinator has ended. RUN_DIR/end.json:
//
//   {"exit_code": 65, "cause": "the losses of 3 steps in a row ..."}
//
// The coordinator writes it before it releases the run lock. `shoal train` writes it later if
// another task was the cause. The next coordinator removes it.
struct RunOutcome {
  int exit_code = 0;  // common/daemon/process/exit_code.h
  std::string cause;  // for people, with what to change; may be empty if the job is done
};

// Replaces the file, completely or not at all.
absl::Status WriteRunOutcome(const RunPaths& paths, const RunOutcome& outcome,
                             FileSystem* files = RealFileSystem());

// Returns nullopt if the file is missing or unreadable.
std::optional<RunOutcome> ReadRunOutcome(const RunPaths& paths,
                                         FileSystem* files = RealFileSystem());

// Removes the file; OK if it is missing.
absl::Status RemoveRunOutcome(const RunPaths& paths, FileSystem* files = RealFileSystem());

}  // namespace shoal
