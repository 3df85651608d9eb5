#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/display/console.h"
#include "common/rpc/event_loop.h"
#include "proto/cluster.pb.h"

namespace shoal {

// Shows how a training goes: on a terminal a live line, elsewhere a line every ten seconds and when
// the phase changes; a line that stays once every worker has said what it computes on,
// for each epoch that ends, again for one that is done again
// after a restore, and when checkpoints are written
// again after some failed, which the coordinator's log says. Not thread-safe.
class TrainingDisplay {
 public:
  static constexpr Time kPlainInterval = std::chrono::seconds(10);
  // What is waited for only for a moment, as at every start, is not worth a line.
  static constexpr Time kWaitingPatience = std::chrono::seconds(1);

  struct Options {
    bool has_test_set = false;  // the line of an epoch waits for its test results
    uint64_t first_epoch = 0;   // those below are known from earlier and get no line
    uint64_t epochs = 0;        // of the job; 0 where only a status will tell
    size_t workers = 0;         // whose devices are told; 0: none are
  };
  // `console` outlives this.
  TrainingDisplay(Console* console, const Options& options);

  // Shows a status of the coordinator.
  void Update(const proto::StatusReply& status, Time now);
  // Prints the lines of epochs that have none yet, whatever their results: at the end, from
  // history.csv.
  void PrintRemainingEpochs(const std::vector<proto::EpochResult>& history);
  // Shows this instead of the last status, as long as there is no newer one: "starting",
  // "stopping".
  void ShowActivity(const std::string& text, Time now);

 private:
  void PrintDevices(const proto::StatusReply& status);
  void PrintEpochs(const proto::StatusReply& status);
  void PrintEpoch(const proto::EpochResult& epoch, uint64_t epochs);
  void PrintCheckpointsAgain(const proto::StatusReply& status);
  // Off a terminal. `key` changes when there is something new to say, which is said once it has
  // lasted for `patience`.
  void PrintPlain(const std::string& key, const std::string& text, Time patience, Time now);

  Console* const console_;
  const bool has_test_set_;
  const size_t workers_;
  std::map<uint32_t, std::string> devices_;  // that were told, by worker
  uint64_t next_epoch_;                      // first one without its line, or to get it again
  uint64_t epochs_shown_ = 0;  // those below have had a line, or are known from earlier
  uint64_t epochs_;
  std::string plain_key_;
  Time plain_key_since_{0};
  std::optional<Time> last_plain_;  // when a line of this key was printed
  bool checkpoints_fail_ = false;
};

}  // namespace shoal
