#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/run_parts.h"
#include "tests/cluster/in_process/small_job.h"
#include "tests/coordinator/cuts/small_cut.h"
#include "tests/coordinator/steps/joined_workers.h"
#include "tests/coordinator/takeover/ps_fleet_fixture.h"

namespace shoal {

// All parts of a run, as TrainingRun makes them, with two ps and the workers of JoinedWorkers. The
// parts call no RunTimeline, WorkerReports or Reconciler: a test makes the one that it tests. The
// SmallJob has epochs of 13 steps.
class WholePartsTest : public PsFleetTest {
 protected:
  static constexpr uint64_t kExamples = 200;
  static constexpr uint64_t kTestExamples = 50;
  static constexpr uint64_t kEpochSteps = 13;

  // Returns a job without a test set and without cuts of every_steps.
  Job MakeJob() {
    Job job = MakeJob({.checkpoint = "{}"});
    job.test = {};
    return job;
  }
  // Returns the job with its test set.
  Job MakeJob(SmallJob small) {
    small.directory = job_directory_.path();
    return small.Load();
  }
  // Runs until the fleet has adopted this timeline.
  void Adopt(uint64_t timeline, uint64_t base) {
    Start();
    for (int i = 0; i < kPsCount; ++i) SendHello(i);
    for (int i = 0; i < kPsCount; ++i) AnswerClaim(i, {.timeline = timeline, .base = base});
    ASSERT_EQ(fleet_->phase(), PsFleet::Phase::kLeading);
  }
  // Makes the parts, which take the fleet and the membership over. Call it once, after Lead or
  // Adopt.
  void MakeParts(Job job) {
    RunParts& parts = parts_.emplace(RunOptions{.loop = &loop_,
                                                .network = &network_,
                                                .job = std::move(job),
                                                .coordinator_address = "chief:1",
                                                .ps_addresses = {AddressOf(0), AddressOf(1)},
                                                .listed_workers = {0, 1, 2, 3},
                                                .run_dir = directory_.path()});
    const Job& of = parts.options.job;
    parts.shard_map = std::make_unique<ShardMap>(SmallShardMap());
    parts.layout = SmallLayout();
    parts.lock = std::make_unique<RunLock>(RunLock::Options{
        .loop = &loop_, .files = RealFileSystem(), .directory = parts.paths.lease()});
    parts.fleet = TakeFleet();
    parts.membership = workers_.TakeMembership();
    parts.scheduler = std::make_unique<StepScheduler>(
        StepScheduler::Options{.loop = &loop_,
                               .membership = workers_.membership(),
                               .window_steps = of.strategy.window_steps,
                               .lease_timeout_seconds = of.strategy.lease_timeout_seconds,
                               .on_leased = [](uint64_t) {}});
    parts.history = std::make_unique<RunHistory>(RunHistory::Options{.loop = &loop_,
                                                                     .files = RealFileSystem(),
                                                                     .progress = &parts.progress,
                                                                     .paths = parts.paths,
                                                                     .callbacks = of.callbacks,
                                                                     .wakeup = &wakeup_});
    MakeEvaluator(parts);
    MakeCheckpointer(parts);
    MakeEnd(parts);
    workers_.on_gone = [&parts](Worker& worker, const std::string&) {
      parts.scheduler->Forget(worker);
    };
  }

  std::vector<Wakeup::Cause> TakeCauses() {
    loop_.RunUntilIdle();
    return std::exchange(causes_, {});
  }
  // Returns the timeline announced to the worker since the last call, 0 if none was.
  uint64_t Announced(int index) {
    uint64_t timeline = 0;
    for (const proto::WorkerOrder& order : workers_.Orders(index)) {
      if (order.has_timeline_opened()) timeline = order.timeline_opened().timeline();
    }
    return timeline;
  }
  // Returns a checkpoint of the open timeline, which need not be on disk.
  StoredCheckpoint Stored(uint64_t step) const {
    StoredCheckpoint checkpoint{.directory = absl::StrCat("step-", step)};
    checkpoint.manifest.timeline = fleet_->timeline();
    checkpoint.manifest.cut_step = step;
    return checkpoint;
  }

  const TemporaryDirectory job_directory_;
  JoinedWorkers workers_{&loop_};
  std::vector<Wakeup::Cause> causes_;  // of the turns
  std::function<void(Wakeup::Cause)> on_turn_;
  Wakeup wakeup_{&loop_, [this](Wakeup::Cause cause) {
                   causes_.push_back(cause);
                   if (on_turn_ != nullptr) on_turn_(cause);
                 }};
  const std::vector<Variable> variables_ = SmallVariables();
  std::optional<absl::Status> over_;
  std::optional<RunParts> parts_;

 private:
  void MakeEvaluator(RunParts& parts) {
    const Job& job = parts.options.job;
    parts.evaluator = std::make_unique<CheckpointEvaluation>(CheckpointEvaluation::Options{
        .loop = &loop_,
        .store = &store_,
        .layout = &parts.layout,
        .progress = &parts.progress,
        .paths = parts.paths,
        .batch_size = static_cast<uint64_t>(job.batch_size),
        .training_waits = !job.callbacks.empty(),
        .timeout = FromSeconds(job.strategy.lease_timeout_seconds),
        .check_ready =
            [this](const proto::EvaluatorReady& ready) { return parts_->CheckTestSet(ready); },
        .may_be_evaluated =
            [this](const StoredCheckpoint& each) { return parts_->MayBeEvaluated(each); },
        .is_awaited = [this](const StoredCheckpoint& each) { return parts_->LacksResult(each); },
        .on_result = [](const StoredCheckpoint&, const CheckpointEvaluation::Options::Sums&) {},
        .wakeup = &wakeup_});
  }
  void MakeCheckpointer(RunParts& parts) {
    parts.checkpointer = std::make_unique<Checkpointer>(Checkpointer::Options{
        .loop = &loop_,
        .store = &store_,
        .layout = &parts.layout,
        .shard_map = parts.shard_map.get(),
        .variables = &variables_,
        .ps_count = kPsCount,
        .texts = SmallTexts(),
        .manifest = SmallManifest(0, 0),
        .all_reported = [](uint64_t) { return true; },
        .epoch_sums = [] { return Manifest::EpochSums(); },
        .broadcast = [this](const proto::ControlRequest& request) { fleet_->Broadcast(request); },
        .send = [this](int ps, const proto::ControlRequest& request) { fleet_->Send(ps, request); },
        .wakeup = &wakeup_});
    parts.nan_watch = std::make_unique<NanWatch>(
        NanWatch::Options{.checkpointer = parts.checkpointer.get(),
                          .run_dir = parts.options.run_dir,
                          .stop_after_steps = parts.options.job.stop_after_nan_steps});
  }
  void MakeEnd(RunParts& parts) {
    parts.shutdown = std::make_unique<Shutdown>(
        Shutdown::Options{.loop = &loop_,
                          .files = RealFileSystem(),
                          .membership = workers_.membership(),
                          .scheduler = parts.scheduler.get(),
                          .fleet = fleet_,
                          .lock = parts.lock.get(),
                          .paths = parts.paths,
                          .on_outcome = [](const absl::Status&) {},
                          .owed = [] { return std::vector<std::string>(); },
                          .on_over = [this](const absl::Status& status) { over_ = status; }});
    parts.drain = std::make_unique<DrainCheckpoint>(
        DrainCheckpoint::Options{.loop = &loop_,
                                 .fleet = fleet_,
                                 .membership = workers_.membership(),
                                 .scheduler = parts.scheduler.get(),
                                 .checkpointer = parts.checkpointer.get(),
                                 .shutdown = parts.shutdown.get(),
                                 .lease_timeout_seconds = 60,
                                 .checkpoints = parts.paths.checkpoints(),
                                 .opened = &parts.opened,
                                 .waiting = [] { return std::vector<std::string>(); }});
    parts.requests = std::make_unique<OperatorRequests>(
        OperatorRequests::Options{.membership = workers_.membership(),
                                  .ps_count = kPsCount,
                                  .status = [] { return proto::StatusReply(); },
                                  .stop = [] {},
                                  .wanted_now =
                                      [this] {
                                        return OperatorRequests::Wanted{
                                            parts_->timeline(), parts_->scheduler->KeepableBelow()};
                                      },
                                  .newest = &parts.checkpointer->last(),
                                  .wakeup = &wakeup_});
  }
};

}  // namespace shoal
