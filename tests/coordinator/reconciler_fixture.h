#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/version.h"
#include "coordinator/reconciler.h"
#include "coordinator/run_timeline.h"
#include "tests/coordinator/run_parts_fixture.h"

namespace shoal {

// The body of a turn: the state of the parts in, the action out. Only the test calls Turn.
class ReconcilerTest : public RunPartsTest {
 protected:
  using Cause = Wakeup::Cause;
  using Phase = Shutdown::Phase;

  // Begins to lease the steps of a new timeline. The history is read.
  void Begin(Job job) {
    ASSERT_NO_FATAL_FAILURE(Lead());
    const bool has_test_set = !job.test.empty();
    MakeParts(std::move(job));
    timeline_.emplace(&*parts_, &wakeup_);
    reconciler_.emplace(&*parts_, &wakeup_);
    timeline_->TakeCounts({kExamples, has_test_set ? kTestExamples : 0}, "the test has");
    parts_->worker_came = true;
    timeline_->OnOpened(opened_.back());
    TakeCauses();
  }
  Job WithTestSet() { return MakeJob({.checkpoint = "{}"}); }
  Job WithCallback() {
    return MakeJob({.epochs = 3,
                    .callbacks = R"([{"class_name": "EarlyStopping", "config": {}}])",
                    .checkpoint = "{}"});
  }
  Job WithCutsEvery(uint64_t steps) {
    Job job = MakeJob();
    job.checkpoint.every_steps = steps;
    return job;
  }
  void Turn() { reconciler_->Turn(Cause::kFacts); }
  // All steps below `end` are done and reported.
  void DoneBelow(uint64_t end) {
    for (uint64_t step = 0; step < end; ++step) {
      parts_->scheduler->steps().Done(StepDispatcher::kNobody, step, loop_.Now());
      parts_->progress.StepDone({.step = step,
                                 .epoch = parts_->plan->EpochOf(step),
                                 .examples = parts_->plan->Range(step).count,
                                 .loss_sum = 1,
                                 .metric_sums = {1}},
                                loop_.Now());
    }
  }
  // All steps of the first epochs are done, and the epochs have these test losses.
  void Evaluated(const std::vector<double>& test_losses) {
    DoneBelow(test_losses.size() * kEpochSteps);
    parts_->history->CloseUpTo(test_losses.size() * kEpochSteps);
    for (size_t epoch = 0; epoch < test_losses.size(); ++epoch)
      parts_->history->SetTestResult(epoch, test_losses[epoch], {1}, kTestExamples);
    TakeCauses();
  }
  // The newest checkpoint is that of an epoch's end, on disk.
  StoredCheckpoint StoreEndOf(uint64_t epoch) {
    const uint64_t step = (epoch + 1) * kEpochSteps;
    StoredCheckpoint stored = WriteSmallCheckpoint(&store_, fleet_->timeline(), step);
    stored.manifest.total_steps = parts_->plan->total_steps();
    stored.manifest.epoch = epoch;
    stored.manifest.epoch_position = kExamples;
    stored.manifest.training_examples = kExamples;
    parts_->checkpointer->SetLast(stored);
    return stored;
  }
  void BeginEvaluation() {
    parts_->scheduler->BeginEvaluation(
        std::make_unique<Evaluation>(0, kEpochSteps, 4, 1, std::chrono::seconds(60)));
  }
  void JoinEvaluator() {
    evaluator_ = std::make_shared<FarEnd>(&loop_, "10.0.0.8:4711", kEvaluateMethod);
    evaluator_->set_callbacks(parts_->evaluator->Accept(evaluator_->MakeStream()));
    proto::EvaluatorReport report;
    report.mutable_hello()->set_version(kVersion);
    report.mutable_hello()->set_incarnation(1);
    evaluator_->Send(report);
    report.mutable_ready()->set_test_examples(kTestExamples);
    evaluator_->Send(report);
    loop_.RunUntilIdle();
    ASSERT_TRUE(parts_->evaluator->peer().up());
  }
  void AcceptCut() {
    loop_.RunUntilIdle();
    proto::ControlReply reply;
    reply.mutable_fence_accepted()->set_term(fleet_->term());
    reply.mutable_fence_accepted()->set_cut_step(parts_->checkpointer->step());
    for (int i = 0; i < kPsCount; ++i) parts_->checkpointer->OnReply(i, reply);
  }
  // Returns the step of the cut in progress; none if there is none.
  std::optional<uint64_t> CutStep() const {
    if (parts_->checkpointer->idle()) return std::nullopt;
    return parts_->checkpointer->step();
  }

  std::optional<RunTimeline> timeline_;
  std::optional<Reconciler> reconciler_;
  std::shared_ptr<FarEnd> evaluator_;
};

}  // namespace shoal
