#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_store.h"
#include "coordinator/operators/cluster_service.h"
#include "coordinator/steps/membership.h"
#include "proto/cluster.pb.h"

namespace shoal {

// What operators ask a run for by the Cluster service: how it stands, that a worker or the
// coordinator leaves in order, a checkpoint now. What cannot be answered at once waits here: a
// drain until that task has gone, a checkpoint until one is written that holds all that was done
// when it was asked for. Loop thread only.
class OperatorRequests {
 public:
  // What a checkpoint has to be that somebody waits for: of this timeline, with the steps below.
  struct Wanted {
    uint64_t timeline = 0;
    uint64_t at_least = 0;
  };
  struct Options {
    Membership* membership = nullptr;  // outlives this
    int ps_count = 0;
    std::function<proto::StatusReply()> status;
    // The coordinator is to end in order; OnOver follows.
    std::function<void()> stop;
    // What one that is asked for now has to be, or why there will be none.
    std::function<absl::StatusOr<Wanted>()> wanted_now;
    // The newest checkpoint of this coordinator.
    std::function<std::optional<StoredCheckpoint>()> newest;
    // One more was asked for, which is answered now or waits.
    std::function<void()> on_asked;
  };
  explicit OperatorRequests(Options options);

  // A new stream, for a method that ClusterService serves.
  absl::StatusOr<StreamCallbacks> Accept(const std::string& method, std::unique_ptr<Stream> stream);

  bool checkpoint_wanted() const { return !checkpoints_.empty(); }
  // Answers all that it satisfies; all there are.
  void OnCommitted(const StoredCheckpoint& checkpoint);
  // None follows for those who wait.
  void RefuseCheckpoints(const std::string& why);
  // Its stream is gone; its record says whether that was in order.
  void OnWorkerGone(const Worker& worker, const std::string& why);
  // The run is over, as its on_over is told; `kept`: no step that is done is lost. Who asks from
  // now on hears the same.
  void OnOver(const absl::Status& status, bool kept);

 private:
  struct Checkpoint {
    uint64_t request = 0;
    Wanted wanted;
  };
  void OnDrain(uint64_t request, const proto::DrainRequest& drain);
  void DrainChief(uint64_t request);
  void AnswerChiefDrains();
  void OnCheckpoint(uint64_t request);
  void Forget(uint64_t request);

  const Options options_;
  ClusterService service_;
  std::vector<Checkpoint> checkpoints_;
  std::multimap<StepDispatcher::WorkerKey, uint64_t> drains_;  // requests, by who is to leave
  std::vector<uint64_t> chief_drains_;                         // those for this coordinator,
  std::optional<absl::StatusOr<proto::DrainReply>> drained_;   // and their answer
};

}  // namespace shoal
