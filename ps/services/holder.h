#pragma once

#include <string>

#include "common/rpc/event_loop.h"
#include "proto/parameter_server.pb.h"

namespace shoal {

// The coordinator that a ps follows, and its run. Once a coordinator leads, the ps stays with its
// run. It rejects coordinators of other runs until the leading run has been silent for
// kHolderExpiry, or its coordinator has resigned. Not thread-safe.
class Holder {
 public:
  // Returns whether the ps rejects `claim` at the time `now`. Never rejects the same run.
  bool Rejects(const proto::Claim& claim, Time now) const;
  // Returns whether `claim` is of the holder's run. True if the holder has named no run: nothing
  // then tells its claims from others.
  bool IsOfRun(const proto::Claim& claim) const;
  // The ps has promised its term to the claimant, or does so again.
  void Follow(const proto::Claim& claim, Time now);
  // A command under the promised term has come.
  void RecordCommand(Time now) { last_command_ = now; }
  // The coordinator has resigned: any other run may claim the ps.
  void Resign() { leads_ = false; }

  // The coordinator, for people. Without the run id, with which others could claim to be its run.
  proto::Claimant claimant() const;
  Time last_command() const { return last_command_; }
  // The directory of its checkpoints; empty if it has not named one.
  std::string checkpoints() const;

 private:
  proto::Claimant claimant_;
  bool leads_ = false;
  Time last_command_{};
};

// The same time as for the lock of a run directory. A coordinator claims once a second.
inline constexpr Time kHolderExpiry = std::chrono::seconds(10);

}  // namespace shoal
