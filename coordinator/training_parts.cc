// The parts of a TrainingRun, and their callbacks.

#include <utility>

#include "common/base/status_macros.h"
#include "common/files/durable_file.h"
#include "common/run/new_run.h"
#include "coordinator/takeover/first_checkpoint.h"
#include "coordinator/training_run.h"

namespace shoal {
namespace {

// A ps rounds the window up to whole words of bits.
constexpr uint64_t kWindowBits = 64;

}  // namespace

// A ps writes at least a whole piece of a chunk, or of a slot of it, at a time.
uint64_t TrainingRun::MaxWrittenRanges() const {
  uint64_t ranges = 0;
  for (int ps = 0; ps < parts_.shard_map->ps_count(); ++ps) {
    for (const Chunk& chunk : parts_.shard_map->ps(ps).chunks)
      ranges += chunk.pieces.size() *
                (1 + (chunk.has_slots() ? parts_.optimizer->slot_names().size() : 0));
  }
  return ranges;
}

void TrainingRun::MakePs() {
  const Job& job = parts_.options.job;
  LeaseHolder self = parts_.options.holder;
  self.address = parts_.options.coordinator_address;
  proto::Claimant claimant;
  claimant.set_run_id(parts_.options.run_id);
  claimant.set_run_directory(AbsolutePath(parts_.paths.directory));
  claimant.set_address(self.address);
  claimant.set_host(self.host);
  claimant.set_pid(self.pid);
  parts_.lock = std::make_unique<RunLock>(RunLock::Options{
      .loop = parts_.options.loop,
      .files = parts_.options.files,
      .directory = parts_.paths.lease(),
      .self = std::move(self),
      .is_gone = parts_.options.is_gone,
      .on_lost =
          [this](const absl::Status& status) {
            parts_.fleet->Close();  // no answer of a ps may complete a checkpoint any more
            KeepFailure(status);
          },
      .on_lead = parts_.options.on_lead});
  // A run that begins with the seed needs no first checkpoint.
  std::function<absl::StatusOr<StoredCheckpoint>(uint64_t)> make_first;
  if (!job.initial_weights.path.empty()) {
    make_first = [this, first = FirstCheckpoint{.job = &job,
                                                .variables = &parts_.model.graph.variables(),
                                                .optimizer = parts_.optimizer.get(),
                                                .layout = &parts_.layout,
                                                .texts = TextsOfJob(),
                                                .manifest = ManifestOfJob()}](uint64_t term) {
      return WriteFirstCheckpoint(first, term, &parts_.store);
    };
  }
  parts_.fleet = std::make_unique<PsFleet>(PsFleet::Options{
      .loop = parts_.options.loop,
      .network = parts_.options.network,
      .store = &parts_.store,
      .lock = parts_.lock.get(),
      .addresses = parts_.options.ps_addresses,
      .job_text = parts_.job_text,
      .job_fingerprint = parts_.fingerprint,
      .shard_map_fingerprint = parts_.shard_map->Fingerprint(),
      .max_applied_after_base = job.strategy.window_steps + kWindowBits,
      .max_written_ranges = MaxWrittenRanges(),
      .coordinator_id = parts_.options.coordinator_id,
      .self = std::move(claimant),
      .take_over = parts_.options.take_over,
      .may_begin_anew = [paths = parts_.paths,
                         files =
                             parts_.options.files] { return CheckReplacesNothing(paths, files); },
      .make_first = std::move(make_first),
      .on_stored =
          [this](const std::vector<StoredCheckpoint>& stored) { timeline_.OnStored(stored); },
      .on_opened = [this](const PsFleet::Opened& opened) { timeline_.OnOpened(opened); },
      .on_over = [this](const std::string& why) { timeline_.OnOver(why); },
      .end_of_run =
          [callbacks = job.callbacks, paths = parts_.paths,
           files = parts_.options.files](const StoredCheckpoint& newest) {
            return ReadEndOfRun(callbacks, paths, newest, files);
          },
      .nobody_trains = [this] { return parts_.working() && !parts_.membership->AnyReady(); },
      .on_reply = [this](int ps, const proto::ControlReply& reply) { OnPsReply(ps, reply); },
      .done_below = [this] { return parts_.training() ? parts_.scheduler->steps().base() : 0; },
      .training_examples = [this] { return parts_.plan.has_value() ? parts_.plan->examples() : 0; },
      .on_applied = [this](int ps,
                           const proto::Claimed& claimed) { reports_.CompareWithPs(ps, claimed); },
      .on_reconnected = [this](int ps) { parts_.checkpointer->Resend(ps); },
      .is_cutting = [this] { return !parts_.checkpointer->idle(); },
      .on_failed = [this](const absl::Status& status) { KeepFailure(status); },
      .wakeup = &wakeup_});
}

void TrainingRun::MakeWorkers() {
  const Job& job = parts_.options.job;
  parts_.membership = std::make_unique<Membership>(Membership::Options{
      .loop = parts_.options.loop,
      .listed = parts_.options.listed_workers,
      .job_text = parts_.job_text,
      .ps_addresses = parts_.options.ps_addresses,
      .on_ready = [this](Worker& worker,
                         const proto::WorkerReady& ready) { reports_.OnReady(worker, ready); },
      .on_report = [this](Worker& worker,
                          const proto::WorkerReport& report) { reports_.OnReport(worker, report); },
      .on_gone = [this](Worker& worker, const std::string& why) { reports_.OnGone(worker, why); },
      .on_reopened = [this](const Worker& former,
                            Worker& now) { reports_.OnReopened(former, now); }});
  parts_.scheduler = std::make_unique<StepScheduler>(
      StepScheduler::Options{.loop = parts_.options.loop,
                             .membership = parts_.membership.get(),
                             .window_steps = job.strategy.window_steps,
                             .lease_timeout_seconds = job.strategy.lease_timeout_seconds,
                             .speculate_after = job.strategy.speculate_after});
}

void TrainingRun::MakeEvaluator() {
  const Job& job = parts_.options.job;
  absl::Status usable;
  if (job.test.empty()) {
    usable = absl::FailedPreconditionError(
        "the job has no test set ($.data.test), so an evaluator has nothing to evaluate; "
        "end the evaluator, or give the job a test set");
  }
  parts_.evaluator = std::make_unique<CheckpointEvaluation>(CheckpointEvaluation::Options{
      .loop = parts_.options.loop,
      .store = &parts_.store,
      .layout = &parts_.layout,
      .progress = &parts_.progress,
      .paths = parts_.paths,
      .lock = parts_.lock.get(),
      .job_text = parts_.job_text,
      .usable = usable,
      .listed = parts_.options.lists_evaluator,
      .keep = job.checkpoint.keep,
      .batch_size = static_cast<uint64_t>(job.batch_size),
      .training_waits = !job.callbacks.empty(),
      .timeout = FromSeconds(job.strategy.lease_timeout_seconds),
      .check_ready =
          [this](const proto::EvaluatorReady& ready) { return parts_.CheckTestSet(ready); },
      .may_be_evaluated =
          [this](const StoredCheckpoint& checkpoint) { return parts_.MayBeEvaluated(checkpoint); },
      .is_awaited =
          [this](const StoredCheckpoint& checkpoint) { return parts_.LacksResult(checkpoint); },
      .on_result =
          [this](const StoredCheckpoint& checkpoint,
                 const CheckpointEvaluation::Options::Sums& sums) {
            if (!parts_.LacksResult(checkpoint)) return;
            parts_.history->SetTestResult(checkpoint.manifest.epoch, sums.loss, sums.metrics,
                                          sums.examples);
          },
      .wakeup = &wakeup_,
  });
}

void TrainingRun::MakeCheckpoints() {
  const Job& job = parts_.options.job;
  parts_.history = std::make_unique<RunHistory>(RunHistory::Options{.loop = parts_.options.loop,
                                                                    .files = parts_.options.files,
                                                                    .progress = &parts_.progress,
                                                                    .paths = parts_.paths,
                                                                    .callbacks = job.callbacks,
                                                                    .lock = parts_.lock.get(),
                                                                    .wakeup = &wakeup_});
  parts_.checkpointer = std::make_unique<Checkpointer>(Checkpointer::Options{
      .loop = parts_.options.loop,
      .store = &parts_.store,
      .layout = &parts_.layout,
      .shard_map = parts_.shard_map.get(),
      .variables = &parts_.model.graph.variables(),
      .coordinator_id = parts_.options.coordinator_id,
      .ps_count = static_cast<int>(parts_.options.ps_addresses.size()),
      .keep = job.checkpoint.keep,
      .pinned = [callbacks = job.callbacks, paths = parts_.paths,
                 in_use = parts_.evaluator->in_use(),
                 files = parts_.options.files]() -> absl::StatusOr<std::set<std::string>> {
        // Reads the checkpoints in use first: a checkpoint becomes one of the best before it stops
        // being in use.
        std::set<std::string> pinned = in_use->Get();
        SHOAL_ASSIGN_OR_RETURN(std::set<std::string> best,
                               ReadBestDirectories(callbacks, paths, files));
        pinned.merge(best);
        return pinned;
      },
      .deadline = std::chrono::seconds(60) + 2 * FromSeconds(job.strategy.lease_timeout_seconds),
      .texts = TextsOfJob(),
      .manifest = ManifestOfJob(),
      .all_reported =
          [this](uint64_t step) {
            return !parts_.scheduler->open() || parts_.scheduler->steps().base() >= step;
          },
      .epoch_sums =
          [this] {
            parts_.CountRounds();
            return parts_.progress.CutSums(parts_.options.loop->Now());
          },
      .broadcast =
          [this](const proto::ControlRequest& request) { parts_.fleet->Broadcast(request); },
      .send = [this](int ps,
                     const proto::ControlRequest& request) { parts_.fleet->Send(ps, request); },
      .wakeup = &wakeup_});
  parts_.nan_watch =
      std::make_unique<NanWatch>(NanWatch::Options{.checkpointer = parts_.checkpointer.get(),
                                                   .run_dir = parts_.options.run_dir,
                                                   .stop_after_steps = job.stop_after_nan_steps});
}

void TrainingRun::MakeEnd() {
  parts_.shutdown = std::make_unique<Shutdown>(Shutdown::Options{
      .loop = parts_.options.loop,
      .files = parts_.options.files,
      .membership = parts_.membership.get(),
      .scheduler = parts_.scheduler.get(),
      .fleet = parts_.fleet.get(),
      .lock = parts_.lock.get(),
      .paths = parts_.paths,
      .average_slot = parts_.optimizer->average_slot(),
      .dismiss_evaluator = [this](const std::string& failure) { parts_.evaluator->End(failure); },
      .on_outcome =
          [this](const absl::Status& status) {
            parts_.requests->OnOver(status, parts_.drain->kept());
          },
      .owed =
          [this] {
            std::vector<std::string> owed = {parts_.history->Owed(), parts_.evaluator->Owed()};
            std::erase(owed, "");
            return owed;
          },
      .on_over = parts_.options.on_over});
  parts_.drain = std::make_unique<DrainCheckpoint>(DrainCheckpoint::Options{
      .loop = parts_.options.loop,
      .fleet = parts_.fleet.get(),
      .membership = parts_.membership.get(),
      .scheduler = parts_.scheduler.get(),
      .checkpointer = parts_.checkpointer.get(),
      .shutdown = parts_.shutdown.get(),
      .lease_timeout_seconds = parts_.options.job.strategy.lease_timeout_seconds,
      .checkpoints = parts_.paths.checkpoints(),
      .opened = &parts_.opened,
      .waiting = [this] { return View().Waiting(); }});
  parts_.requests = std::make_unique<OperatorRequests>(
      OperatorRequests::Options{.membership = parts_.membership.get(),
                                .ps_count = static_cast<int>(parts_.options.ps_addresses.size()),
                                .status = [this] { return Status(); },
                                .stop = [this] { Stop(); },
                                .wanted_now = [this] { return View().WantedNow(); },
                                .newest = &parts_.checkpointer->last(),
                                .wakeup = &wakeup_});
}

}  // namespace shoal
