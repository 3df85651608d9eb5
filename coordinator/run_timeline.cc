#include "coordinator/run_timeline.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/term.h"
#include "common/job/job_strategy.h"
#include "common/log/logging.h"
#include "coordinator/outcomes.h"

namespace shoal {

void RunTimeline::OnStored(const std::vector<StoredCheckpoint>& newest_first) {
  parts_.checkpointer->SetStored(newest_first);
  parts_.stored = newest_first;
  parts_.stored_at = parts_.options.loop->Now();
  if (parts_.plan.has_value()) return;
  // Not every checkpoint has the counts: a coordinator that took over and met no worker may not
  // have known them.
  const auto counted = std::find_if(
      newest_first.begin(), newest_first.end(),
      [](const StoredCheckpoint& each) { return each.manifest.training_examples > 0; });
  if (counted == newest_first.end()) return;
  TakeCounts({counted->manifest.training_examples, counted->manifest.test_examples},
             counted->directory);
}

void RunTimeline::TakeCounts(const ExampleCounts& counts, const std::string& source) {
  parts_.plan = BatchPlanOf(parts_.options.job, counts.training).steps();
  if (parts_.options.job.strategy.in_rounds())
    parts_.rounds.emplace(*parts_.plan, parts_.options.job.strategy.gradients_per_update);
  parts_.test_examples = counts.test;
  parts_.counts_source = source;
}

void RunTimeline::OnOpened(const PsFleet::Opened& opened) {
  parts_.opened = opened;
  parts_.nan_watch->Reset();
  const bool went_back = ++parts_.counters.timelines_opened > 1 && !opened.adopted;
  // Another coordinator may have led the run, and written the file, until the ps were claimed.
  if (parts_.counters.timelines_opened == 1) parts_.history->ReadEarlier();
  const std::string from = opened.loaded.has_value()
                               ? absl::StrCat(opened.base == 0 ? "begun with " : "resumed from ",
                                              opened.checkpoint, " at step ", opened.base)
                               : "there is no checkpoint: the run begins at step 0";
  if (opened.loaded.has_value()) parts_.checkpointer->SetLast(*opened.loaded);
  if (went_back) {
    LogWarning(from + "; the workers repeat later steps that were done");
  } else if (opened.loaded.has_value()) {
    LogInfo(from);
  }
  if (!opened.adopted) {
    LogInfo("a timeline begins",
            {{"timeline", TermText(opened.timeline)},
             {"step", absl::StrCat(opened.base)},
             {"parent",
              opened.loaded.has_value() ? TermText(opened.loaded->manifest.timeline) : "seed"}});
  }
  for (Worker* worker : parts_.membership->Ready()) Announce(*worker);
  if (parts_.worker_came) {
    BeginTraining();
  } else {
    LayOutSteps();
  }
  parts_.evaluator->Begin();
  parts_.drain->OnTimelineOpened();
  wakeup_.Raise();
}

void RunTimeline::Announce(Worker& worker) {
  worker.lost_timeline = false;
  proto::WorkerOrder order;
  order.mutable_timeline_opened()->set_timeline(parts_.opened->timeline);
  worker.Send(order);
}

void RunTimeline::OnOver(const std::string& why) {
  if (!parts_.opened.has_value()) return;  // it was abandoned
  parts_.scheduler->Close();
  parts_.counted.clear();
  parts_.opened.reset();
  parts_.checkpointer->Cancel(why);
  RecordOutcomes(&parts_);
  parts_.requests->RejectCheckpoints(why);
  parts_.drain->OnTimelineOver(why);
  wakeup_.Raise();
}

void RunTimeline::Abandon(const std::string& why, AbandonedTimeline::Remedy remedy) {
  parts_.abandoned = {.timeline = parts_.opened->timeline, .why = why, .remedy = remedy};
  OnOver(why);
}

void RunTimeline::LayOutSteps() {
  std::optional<uint64_t> whole_below;
  if (parts_.options.job.strategy.in_rounds() && !parts_.rounds.has_value()) {
    whole_below = parts_.opened->adopted ? parts_.fleet->HighestUpdates() : parts_.opened->base;
  }
  parts_.scheduler->Open({.timeline = parts_.opened->timeline,
                          .total_steps = parts_.plan.has_value()
                                             ? parts_.plan->total_steps()
                                             : std::numeric_limits<uint64_t>::max(),
                          .base = parts_.opened->base,
                          .done_after_base = parts_.opened->done_after_base,
                          .rule = MakeLeaseRule(parts_.options.job.strategy, parts_.rounds),
                          .rounds = parts_.rounds,
                          .whole_below = whole_below});
  parts_.cuts.emplace(
      CutPlan::Options{.timeline = parts_.opened->timeline,
                       .when = parts_.options.job.checkpoint,
                       .plan = parts_.worker_came ? parts_.plan : std::nullopt,
                       .rounds = parts_.rounds,
                       .evaluates = parts_.worker_came && parts_.test_examples > 0,
                       .awaits_results = parts_.worker_came && parts_.awaits_results(),
                       .base = parts_.opened->base,
                       .last = LastCut(),
                       .now = parts_.options.loop->Now()});
}

// The schedule continues from the newest checkpoint. So it works even if coordinators or ps live
// for less than the time between two checkpoints.
CutPlan::Last RunTimeline::LastCut() const {
  if (parts_.cuts.has_value() && parts_.cuts->timeline() == parts_.opened->timeline)
    return parts_.cuts->last();
  const Time now = parts_.options.loop->Now();
  if (parts_.opened->loaded.has_value())
    return {.step = parts_.opened->base, .at = now - parts_.opened->loaded->age};
  if (!parts_.opened->adopted) return {.at = now};
  if (const StoredCheckpoint* stored = NewestStored(); stored != nullptr)
    return {.step = stored->manifest.cut_step, .at = parts_.stored_at - stored->age};
  // The age of the timeline is unknown: a checkpoint is due now.
  return {.at = now - FromSeconds(parts_.options.job.checkpoint.every_seconds)};
}

const StoredCheckpoint* RunTimeline::NewestStored() const {
  const auto found = std::find_if(parts_.stored.begin(), parts_.stored.end(),
                                  [this](const StoredCheckpoint& each) {
                                    return each.manifest.cut_step <= parts_.opened->base;
                                  });
  return found == parts_.stored.end() ? nullptr : &*found;
}

void RunTimeline::TakeApplied() {
  if (!parts_.opened->adopted) return;  // no worker can have applied a step
  PsFleet::Applied applied = parts_.fleet->AppliedEverywhere();
  parts_.opened->base = applied.base;
  parts_.opened->done_after_base = std::move(applied.after_base);
  LayOutSteps();
}

absl::Status RunTimeline::CheckPlan() const {
  SHOAL_RETURN_IF_ERROR(CheckRounds(parts_.options.job, parts_.plan->steps_per_epoch()));
  // A round that is reported in part continues. The ps apply whole rounds only, except if the
  // timeline was loaded from a checkpoint of a shorter job, maybe by an earlier coordinator.
  const bool by_rounds = parts_.rounds.has_value();
  const uint64_t applied =
      by_rounds && parts_.opened->adopted ? parts_.fleet->HighestUpdates() : parts_.opened->base;
  const uint64_t base = std::max(parts_.opened->base, applied);
  const std::string there =
      parts_.opened->checkpoint.empty() ? "the timeline of the ps" : parts_.opened->checkpoint;
  if (base > parts_.plan->total_steps()) {
    return absl::FailedPreconditionError(absl::StrCat(
        there, " has the first ", base, " steps, and the job has only ", parts_.plan->total_steps(),
        " now; raise $.epochs or $.steps, or choose another --run_dir"));
  }
  if (!by_rounds || parts_.rounds->StartsAt(applied)) return absl::OkStatus();
  const Round round = parts_.rounds->Of(applied);
  return absl::FailedPreconditionError(absl::StrCat(
      there, " has the first ", applied,
      " steps, where the job ended early in a round. The longer job makes one update of steps ",
      round.first, " to ", round.end() - 1,
      ", so its values would differ from those of an uninterrupted run. Set $.steps to ", applied,
      ", or start again with another --run_dir"));
}

void RunTimeline::BeginTraining() {
  LayOutSteps();
  if (const absl::Status can_be_done = CheckPlan(); !can_be_done.ok()) {
    // The store may still have a checkpoint of this job.
    const bool found = parts_.opened->adopted && absl::IsFailedPrecondition(can_be_done);
    if (found)
      return Abandon(std::string(can_be_done.message()), AbandonedTimeline::Remedy::kRestore);
    parts_.Fail({.status = can_be_done});
    return wakeup_.Raise();
  }
  parts_.fleet->SendExamples();  // before the first lease, so that the ps know it before a push
  parts_.scheduler->Begin();
  const StoredCheckpoint* const newest = NewestBelowBase();
  parts_.history->Begin(*parts_.plan, parts_.opened->base,
                        newest == nullptr ? nullptr : &newest->manifest);
  // Includes the steps of workers that are draining.
  for (const auto& [key, worker] : parts_.membership->workers()) parts_.scheduler->Hold(*worker);
  LogInfo(absl::StrCat("training: ", parts_.plan->examples(), " examples, ",
                       parts_.plan->total_steps(), " steps in ", parts_.plan->epochs(),
                       " epochs, from step ", parts_.scheduler->steps().base(), " on"));
  wakeup_.Raise();
}

// After adopting a timeline the coordinator has no checkpoint of its own yet.
const StoredCheckpoint* RunTimeline::NewestBelowBase() const {
  const std::optional<StoredCheckpoint>& last = parts_.checkpointer->last();  // or loaded
  if (last.has_value() && last->manifest.cut_step <= parts_.opened->base) return &*last;
  return parts_.opened->adopted ? NewestStored() : nullptr;
}

}  // namespace shoal
