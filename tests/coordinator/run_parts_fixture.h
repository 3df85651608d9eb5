#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/cuts/checkpointer.h"
#include "coordinator/cuts/drain_checkpoint.h"
#include "coordinator/run/shutdown.h"
#include "coordinator/steps/step_scheduler.h"
#include "tests/coordinator/cuts/small_cut.h"
#include "tests/coordinator/steps/joined_workers.h"
#include "tests/coordinator/takeover/ps_fleet_fixture.h"

namespace shoal {

// The parts of a run without the run itself: two ps, led after Lead(), workers that a test adds,
// the step scheduler and the shutdown.
class RunPartsTest : public PsFleetTest {
 protected:
  RunPartsTest() {
    workers_.on_gone = [this](Worker& worker, const std::string&) {
      handout_.Forget(worker);
      if (ending_ != nullptr && !ending_->working()) ending_->OnWorkerGone();
    };
  }
  // Call after Lead(). The Checkpointer has no ps.
  void MakeParts() {
    ending_ = std::make_unique<Shutdown>(
        Shutdown::Options{.loop = &loop_,
                          .files = RealFileSystem(),
                          .membership = workers_.membership(),
                          .scheduler = &handout_,
                          .fleet = fleet_,
                          .lock = &lease_,
                          .paths = {directory_.path()},
                          .dismiss_evaluator = dismiss_evaluator_,
                          .on_outcome = [this](const absl::Status& status) { outcome_ = status; },
                          .owed = [this] { return owed_; },
                          .on_over = [this](const absl::Status& status) { over_ = status; }});
    checkpointer_ = std::make_unique<Checkpointer>(
        Checkpointer::Options{.loop = &loop_,
                              .store = &store_,
                              .layout = &layout_,
                              .shard_map = &shard_map_,
                              .variables = &variables_,
                              .ps_count = kPsCount,
                              .texts = SmallTexts(),
                              .manifest = SmallManifest(0, 0),
                              .broadcast = [](const proto::ControlRequest&) {},
                              .wakeup = &wakeup_});
    closing_ = std::make_unique<DrainCheckpoint>(
        DrainCheckpoint::Options{.loop = &loop_,
                                 .fleet = fleet_,
                                 .membership = workers_.membership(),
                                 .scheduler = &handout_,
                                 .checkpointer = checkpointer_.get(),
                                 .shutdown = ending_.get(),
                                 .lease_timeout_seconds = 20,
                                 .checkpoints = "RUN/checkpoints",
                                 .opened = &now_open_,
                                 .waiting = [] { return std::vector<std::string>{"worker 0"}; }});
  }
  // Returns whether a ps has received Stop since the last call.
  bool ToldToStop(int index) {
    loop_.RunUntilIdle();
    bool stop = false;
    for (const proto::ControlRequest& request : ps(index).Take<proto::ControlRequest>())
      stop = stop || request.has_stop();
    return stop;
  }
  void SendDeparting(int index) {
    proto::ControlReply reply;
    reply.mutable_departing();
    ps(index).Send(reply);
    loop_.RunUntilIdle();
  }
  static std::string Message(const std::optional<absl::Status>& status) {
    return status.has_value() ? std::string(status->message()) : "not yet";
  }

  JoinedWorkers workers_{&loop_};
  RunLock lease_{{.loop = &loop_,
                  .files = RealFileSystem(),
                  .directory = RunPaths{directory_.path()}.lease()}};
  StepScheduler handout_{{.loop = &loop_,
                          .membership = workers_.membership(),
                          .window_steps = 64,
                          .lease_timeout_seconds = 20,
                          .on_leased = [](uint64_t) {}}};
  Wakeup wakeup_{&loop_, [](Wakeup::Cause) {}};
  std::vector<std::string> owed_;                              // files that are not on disk yet
  std::function<void(const std::string&)> dismiss_evaluator_;  // empty: there is no evaluator
  std::optional<absl::Status> outcome_;
  std::optional<absl::Status> over_;
  std::unique_ptr<Shutdown> ending_;
  const CheckpointLayout layout_ = SmallLayout();
  const std::vector<Variable> variables_ = SmallVariables();
  const ShardMap shard_map_ = SmallShardMap();
  std::unique_ptr<Checkpointer> checkpointer_;
  std::optional<PsFleet::Opened> now_open_;
  std::unique_ptr<DrainCheckpoint> closing_;
};

}  // namespace shoal
