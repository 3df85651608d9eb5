// The parts of a TrainingRun, and their callbacks.

#include <utility>

#include "common/base/status_macros.h"
#include "common/files/durable_file.h"
#include "common/run/new_run.h"
#include "coordinator/training_run.h"

namespace shoal {
namespace {

// A ps rounds the window up to whole words of bits.
constexpr uint64_t kWindowBits = 64;

}  // namespace

// A ps writes at least a whole piece of a chunk, or of a slot of it, at a time.
uint64_t TrainingRun::MostWrittenRanges() const {
  uint64_t ranges = 0;
  for (int ps = 0; ps < shard_map_->ps_count(); ++ps) {
    for (const Chunk& chunk : shard_map_->ps(ps).chunks)
      ranges +=
          chunk.pieces.size() * (1 + (chunk.has_slots() ? optimizer_->slot_names().size() : 0));
  }
  return ranges;
}

void TrainingRun::MakePs() {
  const Job& job = options_.job;
  LeaseHolder self = options_.holder;
  self.address = options_.chief_address;
  proto::Claimant claimant;
  claimant.set_run_id(options_.run_id);
  claimant.set_run_directory(AbsolutePath(paths_.directory));
  claimant.set_address(self.address);
  claimant.set_host(self.host);
  claimant.set_pid(self.pid);
  lease_ = std::make_unique<RunLock>(
      RunLock::Options{.loop = options_.loop,
                       .files = options_.files,
                       .directory = paths_.lease(),
                       .self = std::move(self),
                       .is_gone = options_.is_gone,
                       .on_lost = [this](const absl::Status& status) { ending_->Over(status); },
                       .on_lead = options_.on_lead});
  // A run that begins with the seed needs no first checkpoint.
  std::function<absl::StatusOr<StoredCheckpoint>(uint64_t)> make_first;
  if (!job.initial_weights.path.empty()) {
    make_first = [this, first = FirstCheckpoint{.job = &job,
                                                .variables = &model_.graph.variables(),
                                                .optimizer = optimizer_.get(),
                                                .layout = &layout_,
                                                .texts = TextsOfJob(),
                                                .manifest = ManifestOfJob()}](uint64_t term) {
      return WriteFirstCheckpoint(first, term, &store_);
    };
  }
  fleet_ = std::make_unique<PsFleet>(PsFleet::Options{
      .loop = options_.loop,
      .network = options_.network,
      .store = &store_,
      .lease = lease_.get(),
      .addresses = options_.ps_addresses,
      .job_text = job_text_,
      .job_fingerprint = fingerprint_,
      .shard_map_fingerprint = shard_map_->Fingerprint(),
      .most_applied_after_base = job.strategy.window_steps + kWindowBits,
      .most_written_ranges = MostWrittenRanges(),
      .coordinator_id = options_.coordinator_id,
      .self = std::move(claimant),
      .take_over = options_.take_over,
      .may_begin_anew = [paths = paths_,
                         files = options_.files] { return CheckNothingIsReplaced(paths, files); },
      .make_first = std::move(make_first),
      .on_stored = [this](const std::vector<StoredCheckpoint>& stored) { OnStored(stored); },
      .on_opened = [this](const PsFleet::Opened& opened) { OnTimelineOpened(opened); },
      .on_over = [this](const std::string& why) { OnTimelineOver(why); },
      .end_of_run =
          [callbacks = job.callbacks, paths = paths_,
           files = options_.files](const StoredCheckpoint& newest) {
            return ReadEndOfRun(callbacks, paths, newest, files);
          },
      .on_job_finished = [this](const RunEnd& end) { OnJobFinished(end); },
      .nobody_trains = [this] { return ending_->working() && !membership_->AnyReady(); },
      .on_reply = [this](int ps, const proto::ControlReply& reply) { OnPsReply(ps, reply); },
      .done_below = [this] { return training() ? handout_->steps().base() : 0; },
      .training_examples = [this] { return plan_.has_value() ? plan_->examples() : 0; },
      .on_applied = [this](int ps, const proto::Claimed& claimed) { CompareWithPs(ps, claimed); },
      .on_reconnected = [this](int ps) { checkpointer_->Resend(ps); },
      .on_failed = [this](const absl::Status& status) { ending_->Over(status); }});
}

void TrainingRun::MakeWorkers() {
  const Job& job = options_.job;
  membership_ = std::make_unique<Membership>(Membership::Options{
      .loop = options_.loop,
      .listed = options_.listed_workers,
      .job_text = job_text_,
      .ps_addresses = options_.ps_addresses,
      .on_ready = [this](Worker& worker,
                         const proto::WorkerReady& ready) { OnWorkerReady(worker, ready); },
      .on_report = [this](Worker& worker,
                          const proto::WorkerReport& report) { OnWorkerReport(worker, report); },
      .on_gone = [this](Worker& worker, const std::string& why) { OnWorkerGone(worker, why); }});
  handout_ = std::make_unique<StepScheduler>(
      StepScheduler::Options{.loop = options_.loop,
                             .membership = membership_.get(),
                             .window_steps = job.strategy.window_steps,
                             .lease_timeout_seconds = job.strategy.lease_timeout_seconds,
                             .speculate_after = job.strategy.speculate_after,
                             .on_leased = [this](uint64_t step) {
                               progress_.EpochBegins(plan_->EpochOf(step), options_.loop->Now());
                             }});
}

void TrainingRun::MakeEvaluator() {
  const Job& job = options_.job;
  absl::Status usable;
  if (job.test.empty()) {
    usable = absl::FailedPreconditionError(
        "the job has no test set ($.data.test), so there is nothing that an evaluator could "
        "evaluate; end it, or give the job one");
  }
  evaluator_ = std::make_unique<CheckpointEvaluation>(CheckpointEvaluation::Options{
      .loop = options_.loop,
      .store = &store_,
      .layout = &layout_,
      .progress = &progress_,
      .paths = paths_,
      .job_text = job_text_,
      .usable = usable,
      .listed = options_.lists_evaluator,
      .keep = job.checkpoint.keep,
      .batch_size = static_cast<uint64_t>(job.batch_size),
      .training_waits = !job.callbacks.empty(),
      .timeout = FromSeconds(job.strategy.lease_timeout_seconds),
      .check_ready = [this](const proto::EvaluatorReady& ready) { return CheckTestSet(ready); },
      .may_be_evaluated =
          [this](const StoredCheckpoint& checkpoint) { return MayBeEvaluated(checkpoint); },
      .is_awaited = [this](const StoredCheckpoint& checkpoint) { return LacksResult(checkpoint); },
      .on_result =
          [this](const StoredCheckpoint& checkpoint,
                 const CheckpointEvaluation::Options::Sums& sums) {
            OnCheckpointEvaluated(checkpoint, sums);
          },
      .on_changed = [this] { Advance(); },
      .on_written =
          [this] {
            history_->ReadVerdict();
            ending_->OnWritten();
          },
      .on_ended = [this] { ending_->OnEvaluatorGone(); }});
}

void TrainingRun::MakeCheckpoints() {
  const Job& job = options_.job;
  history_ = std::make_unique<RunHistory>(RunHistory::Options{.loop = options_.loop,
                                                              .files = options_.files,
                                                              .progress = &progress_,
                                                              .paths = paths_,
                                                              .callbacks = job.callbacks,
                                                              .on_read =
                                                                  [this] {
                                                                    const bool ends =
                                                                        !ending_->working();
                                                                    if (!training() && !ends)
                                                                      return;
                                                                    history_->TakeEarlier();
                                                                    evaluator_->HandOut();
                                                                    Advance();
                                                                  },
                                                              .on_idle =
                                                                  [this] {
                                                                    ending_->OnWritten();
                                                                    if (awaits_results()) Advance();
                                                                  }});
  checkpointer_ = std::make_unique<Checkpointer>(Checkpointer::Options{
      .loop = options_.loop,
      .store = &store_,
      .layout = &layout_,
      .shard_map = shard_map_.get(),
      .variables = &model_.graph.variables(),
      .coordinator_id = options_.coordinator_id,
      .ps_count = static_cast<int>(options_.ps_addresses.size()),
      .keep = job.checkpoint.keep,
      .spared = [callbacks = job.callbacks, paths = paths_, in_use = evaluator_->in_use(),
                 files = options_.files]() -> absl::StatusOr<std::set<std::string>> {
        // Reads the checkpoints in use first: a checkpoint becomes one of the best before it stops
        // being in use.
        std::set<std::string> spared = in_use->Get();
        SHOAL_ASSIGN_OR_RETURN(const RunVerdict verdict, ReadRunVerdict(callbacks, paths, files));
        spared.merge(DirectoriesOf(verdict));
        return spared;
      },
      .deadline = std::chrono::seconds(60) + 2 * FromSeconds(job.strategy.lease_timeout_seconds),
      .texts = TextsOfJob(),
      .manifest = ManifestOfJob(),
      .all_reported =
          [this](uint64_t step) { return !handout_->open() || handout_->steps().base() >= step; },
      .epoch_sums =
          [this] {
            CountRounds();
            return progress_.CutSums(options_.loop->Now());
          },
      .broadcast = [this](const proto::ControlRequest& request) { fleet_->Broadcast(request); },
      .send = [this](int ps, const proto::ControlRequest& request) { fleet_->Send(ps, request); },
      .on_superseded =
          [this] {
            if (fleet_->phase() == PsFleet::Phase::kLeading) fleet_->RenewTerm();
          },
      .on_accepted = [this](uint64_t step) { OnCutAccepted(step); },
      .on_ready = [this](uint64_t step) { OnCutReady(step); },
      .on_committed = [this](const StoredCheckpoint& checkpoint) { OnCommitted(checkpoint); },
      .on_error = [this](const std::string& why) { requests_->RefuseCheckpoints(why); },
      .on_given_up = [this](uint64_t step, const std::string& why,
                            std::optional<uint64_t> highest) { OnCutGivenUp(step, why, highest); },
      .on_idle = [this] { Advance(); }});
}

void TrainingRun::MakeEnd() {
  ending_ = std::make_unique<Shutdown>(Shutdown::Options{
      .loop = options_.loop,
      .files = options_.files,
      .membership = membership_.get(),
      .fleet = fleet_.get(),
      .lease = lease_.get(),
      .paths = paths_,
      .average_slot = optimizer_->average_slot(),
      .on_ending = [this] { handout_->End(); },
      .dismiss_evaluator = [this](const std::string& failure) { evaluator_->End(failure); },
      .on_outcome =
          [this](const absl::Status& status) { requests_->OnOver(status, closing_->kept()); },
      .owed =
          [this] {
            std::vector<std::string> owed = {history_->Owed(), evaluator_->Owed()};
            std::erase(owed, "");
            return owed;
          },
      .on_over = options_.on_over});
  closing_ = std::make_unique<DrainCheckpoint>(DrainCheckpoint::Options{
      .loop = options_.loop,
      .fleet = fleet_.get(),
      .membership = membership_.get(),
      .handout = handout_.get(),
      .checkpointer = checkpointer_.get(),
      .ending = ending_.get(),
      .lease_timeout_seconds = options_.job.strategy.lease_timeout_seconds,
      .checkpoints = paths_.checkpoints(),
      .opened = [this] { return opened_.has_value() ? &*opened_ : nullptr; },
      .waiting = [this] { return View().Waiting(); },
      .begin_cut = [this](uint64_t step) { BeginCut({step}); }});
  requests_ = std::make_unique<OperatorRequests>(
      OperatorRequests::Options{.membership = membership_.get(),
                                .ps_count = static_cast<int>(options_.ps_addresses.size()),
                                .status = [this] { return Status(); },
                                .stop = [this] { Stop(); },
                                .wanted_now = [this] { return WantedNow(); },
                                .newest = [this] { return checkpointer_->last(); },
                                .on_asked = [this] { Advance(); }});
}

}  // namespace shoal
