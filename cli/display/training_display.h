#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/display/console.h"
#include "common/rpc/event_loop.h"
#include "proto/cluster.pb.h"

namespace shoal {

// Shows how a training goes: on a terminal a live line, elsewhere a line every ten seconds and when
// the phase changes; a line that stays for each epoch that ends and each checkpoint that fails. Not
// thread-safe.
class TrainingDisplay {
 public:
  static constexpr Time kPlainInterval = std::chrono::seconds(10);

  // `has_test_set`: the line of an epoch waits for its test results. `first_epoch`: epochs below it
  // are known from earlier and get no line. `console` outlives this.
  TrainingDisplay(Console* console, bool has_test_set, uint64_t first_epoch);

  // Shows a status of the coordinator.
  void Update(const proto::StatusReply& status, Time now);
  // Prints the lines of epochs that have none yet, whatever their results: at the end, from
  // history.csv.
  void PrintRemainingEpochs(const std::vector<proto::EpochResult>& history);
  // Shows this instead of the last status, as long as there is no newer one: "starting",
  // "stopping".
  void ShowActivity(const std::string& text, Time now);

 private:
  void PrintEpochs(const proto::StatusReply& status);
  void PrintCheckpointError(const proto::StatusReply& status);
  // Off a terminal; `key` changes when there is something new to say.
  void PrintPlain(const std::string& key, const std::string& text, Time now);

  Console* const console_;
  const bool has_test_set_;
  uint64_t next_epoch_;  // first one without its line
  uint64_t epochs_ = 0;
  std::optional<Time> last_plain_;
  std::string last_key_;
  std::string last_checkpoint_error_;
};

}  // namespace shoal
