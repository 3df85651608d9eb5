#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/files/file_system.h"
#include "common/run/run_paths.h"

namespace shoal {

// How a run ended last, for whoever asks when nobody leads it any more. RUN_DIR/end.json:
//
//   {"exit_code": 65, "cause": "the losses of 3 steps in a row ..."}
//
// The coordinator writes it before it gives the lease back, and `shoal train` after it where
// another task was the cause. Whoever leads the run next removes it.
struct RunOutcome {
  int exit_code = 0;  // common/daemon/process/exit_code.h
  std::string cause;  // for people, with what to change; may be empty where the job is done
};

// Replaces the file, whole or not at all.
absl::Status WriteRunOutcome(const RunPaths& paths, const RunOutcome& outcome,
                             FileSystem* files = RealFileSystem());

// Nothing where there is no file, or none that can be read.
std::optional<RunOutcome> ReadRunOutcome(const RunPaths& paths,
                                         FileSystem* files = RealFileSystem());

// OK where there is none.
absl::Status RemoveRunOutcome(const RunPaths& paths, FileSystem* files = RealFileSystem());

}  // namespace shoal
