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

// Shows the progress of a training: a live line on a terminal, elsewhere a line every ten seconds
// and at each change of phase. It also prints permanent lines. The devices get one when every
// worker has reported its own. Each epoch that ends gets one, also when it is repeated after a
// restore. So do checkpoints that work again after failures; the coordinator's log reports these.
// Not thread-safe.
class TrainingDisplay {
 public:
  static constexpr Time kPlainInterval = std::chrono::seconds(10);
  // A wait shorter than this, as at every start, is not worth a line.
  static constexpr Time kWaitingPatience = std::chrono::seconds(1);

  struct Options {
    bool has_test_set = false;  // the line of an epoch waits for its test results
    uint64_t first_epoch = 0;   // earlier epochs are already known and get no line
    uint64_t epochs = 0;        // of the job; 0 if only a status knows
    size_t workers = 0;         // number of devices to wait for; 0: prints no devices
  };
  // `console` must outlive this.
  TrainingDisplay(Console* console, const Options& options);

  // Shows a status from the coordinator.
  void Update(const proto::StatusReply& status, Time now);
  // Prints the missing lines of epochs, even without test results: at the end, from history.csv.
  void PrintRemainingEpochs(const std::vector<proto::EpochResult>& history);
  // Shows `text`, such as "starting" or "stopping", until the next status.
  void ShowActivity(const std::string& text, Time now);

 private:
  void PrintDevices(const proto::StatusReply& status);
  void PrintEpochs(const proto::StatusReply& status);
  void PrintEpoch(const proto::EpochResult& epoch, uint64_t epochs);
  void PrintCheckpointsAgain(const proto::StatusReply& status);
  // Prints when not on a terminal. `key` changes with new information, which is printed once it has
  // lasted for `patience`.
  void PrintPlain(const std::string& key, const std::string& text, Time patience, Time now);

  Console* const console_;
  const bool has_test_set_;
  const size_t workers_;
  std::map<uint32_t, std::string> devices_;  // last printed, by worker
  uint64_t next_epoch_;                      // first one without a line, or to print again
  uint64_t epochs_shown_ = 0;                // epochs below are printed or already known
  uint64_t epochs_;
  std::string plain_key_;
  Time plain_key_since_{0};
  std::optional<Time> last_plain_;  // time of the last line with this key
  bool checkpoints_fail_ = false;
};

}  // namespace shoal
