#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/scope.h"
#include "common/run/run_verdict.h"

namespace shoal {

// Searches the store of a run for the checkpoint that its ps load (section 7.4 of the protocol).
// Loop thread only; files are read and written in Offload. No callback after destruction.
class CheckpointSearch {
 public:
  struct Options {
    EventLoop* loop = nullptr;         // both outlive this
    CheckpointStore* store = nullptr;  // used in Offload only
    std::string job_text;
    uint32_t job_fingerprint = 0;
    // These three: see PsFleet::Options. Called on another thread.
    std::function<absl::Status()> may_begin_anew;
    std::function<absl::StatusOr<StoredCheckpoint>(uint64_t term)> make_first;
    std::function<absl::StatusOr<std::optional<RunEnd>>(const StoredCheckpoint& newest)> end_of_run;
  };
  explicit CheckpointSearch(Options options);

  struct Stored {
    std::vector<StoredCheckpoint> newest_first;
    uint64_t highest_timeline = 0;  // of these; 0 if there are none
  };
  // Lists the checkpoints. kFailedPrecondition: the newest one is of another job, or there is no
  // term above its timeline. Other errors come from the store.
  void List(std::function<void(const absl::StatusOr<Stored>&)> done);

  struct Found {
    // Error: the run cannot begin or continue. kDataLoss: no checkpoint can be read.
    absl::Status status;
    // For people: the defects of skipped checkpoints, and why it is unknown whether the run ended.
    std::vector<std::string> problems;
    uint64_t highest_timeline = 0;           // in the store
    std::optional<StoredCheckpoint> newest;  // to load; none: the run begins with the seed
    std::optional<RunEnd> end;               // set if `newest` is known to end the run
  };
  // Finds the newest verified checkpoint that is not marked as bad. Without any it may make the
  // first one, under `term`. If another coordinator has led meanwhile, highest_timeline is above
  // `term`: then claim under a higher term and search again.
  void Find(uint64_t term, std::function<void(const Found&)> done);
  // This checkpoint could not be loaded: Find skips it from now on. `why` tells damage from a
  // checkpoint that was not read (IsCheckpointDamage).
  void MarkBad(const std::string& directory, absl::Status why) { bad_[directory] = std::move(why); }

 private:
  static absl::Status Search(const Options& options, const std::map<std::string, absl::Status>& bad,
                             uint64_t term, Found* found);

  const std::shared_ptr<const Options> options_;  // shared with the work in Offload
  std::map<std::string, absl::Status> bad_;       // directory -> why
  const Scope scope_{options_->loop};
};

}  // namespace shoal
