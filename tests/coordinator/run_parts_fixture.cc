#include "tests/coordinator/run_parts_fixture.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/coordinator/cuts/small_cut.h"

namespace shoal {

Job RunPartsTest::MakeJob() {
  Job job = MakeJob({.checkpoint = "{}"});
  job.test = {};
  return job;
}

Job RunPartsTest::MakeJob(SmallJob small) {
  small.directory = job_directory_.path();
  return small.Load();
}

void RunPartsTest::Adopt(uint64_t timeline, uint64_t base) {
  Start();
  for (int i = 0; i < kPsCount; ++i) SendHello(i);
  for (int i = 0; i < kPsCount; ++i) AnswerClaim(i, {.timeline = timeline, .base = base});
  ASSERT_EQ(fleet_->phase(), PsFleet::Phase::kLeading);
}

void RunPartsTest::MakeParts(Job job) {
  RunParts& parts = parts_.emplace(RunOptions{.loop = &loop_,
                                              .network = &network_,
                                              .job = std::move(job),
                                              .coordinator_address = "chief:1",
                                              .tls = tls_,
                                              .ps_addresses = {AddressOf(0), AddressOf(1)},
                                              .listed_workers = {0, 1, 2, 3},
                                              .run_dir = directory_.path()});
  parts.shard_map = std::make_unique<ShardMap>(SmallShardMap());
  parts.layout = SmallLayout();
  parts.lock = std::make_unique<RunLock>(RunLock::Options{
      .loop = &loop_, .files = RealFileSystem(), .directory = parts.paths.lease()});
  parts.fleet = TakeFleet();
  parts.membership = workers_.TakeMembership();
  MakeSteps();
  MakeEvaluator();
  MakeCheckpointer();
  MakeEnd();
  workers_.on_gone = [this](Worker& worker, const std::string&) {
    parts_->scheduler->Forget(worker);
    if (parts_->shutdown->job_ended()) parts_->shutdown->OnWorkerGone();
  };
}

void RunPartsTest::MakeSteps() {
  const Job& job = parts_->options.job;
  parts_->scheduler = std::make_unique<StepScheduler>(
      StepScheduler::Options{.loop = &loop_,
                             .membership = parts_->membership.get(),
                             .window_steps = job.strategy.window_steps,
                             .lease_timeout_seconds = job.strategy.lease_timeout_seconds});
  parts_->history = std::make_unique<RunHistory>(RunHistory::Options{.loop = &loop_,
                                                                     .files = RealFileSystem(),
                                                                     .progress = &parts_->progress,
                                                                     .paths = parts_->paths,
                                                                     .callbacks = job.callbacks,
                                                                     .wakeup = &wakeup_});
}

void RunPartsTest::MakeEvaluator() {
  const Job& job = parts_->options.job;
  parts_->evaluator = std::make_unique<CheckpointEvaluation>(CheckpointEvaluation::Options{
      .loop = &loop_,
      .store = &store_,
      .layout = &parts_->layout,
      .progress = &parts_->progress,
      .paths = parts_->paths,
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

void RunPartsTest::MakeCheckpointer() {
  parts_->checkpointer = std::make_unique<Checkpointer>(Checkpointer::Options{
      .loop = &loop_,
      .store = &store_,
      .layout = &parts_->layout,
      .shard_map = parts_->shard_map.get(),
      .variables = &variables_,
      .ps_count = kPsCount,
      .texts = SmallTexts(),
      .manifest = SmallManifest(0, 0),
      .all_reported = [](uint64_t) { return true; },
      .epoch_sums = [] { return Manifest::EpochSums(); },
      .broadcast = [this](const proto::ControlRequest& request) { fleet_->Broadcast(request); },
      .send = [this](int ps, const proto::ControlRequest& request) { fleet_->Send(ps, request); },
      .wakeup = &wakeup_});
  parts_->nan_watch = std::make_unique<NanWatch>(
      NanWatch::Options{.checkpointer = parts_->checkpointer.get(),
                        .run_dir = parts_->options.run_dir,
                        .stop_after_steps = parts_->options.job.stop_after_nan_steps});
}

void RunPartsTest::MakeEnd() {
  parts_->shutdown = std::make_unique<Shutdown>(
      Shutdown::Options{.loop = &loop_,
                        .files = RealFileSystem(),
                        .membership = parts_->membership.get(),
                        .scheduler = parts_->scheduler.get(),
                        .fleet = fleet_,
                        .lock = parts_->lock.get(),
                        .paths = parts_->paths,
                        .dismiss_evaluator = dismiss_evaluator_,
                        .on_outcome = [this](const absl::Status& status) { outcome_ = status; },
                        .owed = [this] { return owed_; },
                        .on_over = [this](const absl::Status& status) { over_ = status; }});
  parts_->drain = std::make_unique<DrainCheckpoint>(DrainCheckpoint::Options{
      .loop = &loop_,
      .fleet = fleet_,
      .membership = parts_->membership.get(),
      .scheduler = parts_->scheduler.get(),
      .checkpointer = parts_->checkpointer.get(),
      .shutdown = parts_->shutdown.get(),
      .lease_timeout_seconds = parts_->options.job.strategy.lease_timeout_seconds,
      .checkpoints = parts_->paths.checkpoints(),
      .opened = &parts_->opened,
      .waiting = [this] { return waiting_; }});
  parts_->requests = std::make_unique<OperatorRequests>(OperatorRequests::Options{
      .membership = parts_->membership.get(),
      .ps_count = kPsCount,
      .status = [] { return proto::StatusReply(); },
      .stop = [] {},
      .wanted_now =
          [this] {
            return OperatorRequests::Wanted{parts_->timeline(), parts_->scheduler->KeepableBelow()};
          },
      .newest = &parts_->checkpointer->last(),
      .wakeup = &wakeup_});
}

std::vector<Wakeup::Cause> RunPartsTest::TakeCauses() {
  loop_.RunUntilIdle();
  return std::exchange(causes_, {});
}

uint64_t RunPartsTest::Announced(int index) {
  uint64_t timeline = 0;
  for (const proto::WorkerOrder& order : workers_.Orders(index)) {
    if (order.has_timeline_opened()) timeline = order.timeline_opened().timeline();
  }
  return timeline;
}

StoredCheckpoint RunPartsTest::Stored(uint64_t step) const {
  StoredCheckpoint checkpoint{.directory = absl::StrCat("step-", step)};
  checkpoint.manifest.timeline = fleet_->timeline();
  checkpoint.manifest.cut_step = step;
  return checkpoint;
}

bool RunPartsTest::ToldToStop(int index) {
  loop_.RunUntilIdle();
  bool stop = false;
  for (const proto::ControlRequest& request : ps(index).Take<proto::ControlRequest>())
    stop = stop || request.has_stop();
  return stop;
}

void RunPartsTest::SendDeparting(int index) {
  proto::ControlReply reply;
  reply.mutable_departing();
  ps(index).Send(reply);
  loop_.RunUntilIdle();
}

std::string RunPartsTest::Message(const std::optional<absl::Status>& status) {
  return status.has_value() ? std::string(status->message()) : "not yet";
}

}  // namespace shoal
