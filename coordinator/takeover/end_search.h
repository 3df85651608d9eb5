#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/log/last_result.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/scope.h"
#include "common/run/run_verdict.h"

namespace shoal {

// Looks whether the store of a run holds the run's end (section 7.2 of the protocol): its newest
// checkpoint is the last one, and it verifies. Loop thread only; files are read in Offload. No
// callback after destruction.
class EndSearch {
 public:
  struct Options {
    EventLoop* loop = nullptr;         // both outlive this
    CheckpointStore* store = nullptr;  // used in Offload only
    uint32_t job_fingerprint = 0;
    // See PsFleet::Options. Called on another thread.
    std::function<absl::StatusOr<std::optional<RunEnd>>(const StoredCheckpoint& newest)> end_of_run;
  };
  explicit EndSearch(Options options) : options_(std::move(options)) {}

  // Passes the end to `done` if the store holds it. Does nothing while a search is in progress, as
  // a disk may be slow. A store or a file of the run that cannot be read is logged, once for each
  // reason. A checkpoint that does not verify is logged, and not read again for a while: it may be
  // large, and one thread reads all files.
  void Look(std::function<void(const RunEnd&)> done);
  // Drops the result of the search in progress.
  void Stop() { stopped_ = true; }

 private:
  struct Found {
    absl::Status read;  // result of reading the run's list of checkpoints, and its verdict
    std::optional<RunEnd> end;
    std::string directory;  // of the run's last checkpoint
    absl::Status sound;     // result of verifying it
  };
  void NoteUnsound(const std::string& directory, const absl::Status& why);

  const Options options_;
  bool looking_ = false;
  bool stopped_ = false;
  LastResult last_read_;
  std::string unsound_;   // the directory of the last checkpoint that did not verify
  Time look_again_at_{};  // it is not read before
  const Scope scope_{options_.loop};
};

}  // namespace shoal
