#pragma once

#include <string>

#include "common/rpc/event_loop.h"
#include "proto/parameter_server.pb.h"

namespace shoal {

// The coordinator that a ps follows, and its run. Once a coordinator leads, the ps keeps to its
// run: it refuses coordinators of other runs until it has heard nothing of that run for
// kHolderExpiry, or its coordinator has resigned. Not thread-safe.
class Holder {
 public:
  // Whether `claim` is refused at the time `now`. A coordinator of the same run never is.
  bool Refuses(const proto::Claim& claim, Time now) const;
  // The ps has promised its term to the claimant.
  void Follow(const proto::Claim& claim, Time now);
  // The claim of the promised term again; of nobody else's run.
  void FollowOn(const proto::Claim& claim, Time now);
  // A command under the promised term has come.
  void Heard(Time now) { heard_ = now; }
  // It leaves the ps to whoever comes.
  void Resign() { leads_ = false; }

  // For people, and without what makes one of its run.
  proto::Claimant who() const;
  Time heard() const { return heard_; }
  // Where it keeps its checkpoints; empty where it has not told.
  std::string checkpoints() const;

 private:
  proto::Claimant who_;
  bool leads_ = false;
  Time heard_{};
};

// As long as the lease of a run directory: a coordinator claims once a second.
inline constexpr Time kHolderExpiry = std::chrono::seconds(10);

}  // namespace shoal
