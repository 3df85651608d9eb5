#pragma once

#include <string>

#include "coordinator/run_parts.h"
#include "coordinator/run_timeline.h"
#include "coordinator/steps/report_check.h"
#include "coordinator/turns/wakeup.h"
#include "proto/coordinator.pb.h"
#include "proto/parameter_server.pb.h"

namespace shoal {

// Handles the reports of the workers of a run: checks them, counts done steps and batches, and
// compares them with the answers of the ps. Rejects a worker whose report is wrong. Loop thread
// only.
class WorkerReports {
 public:
  // All three outlive this.
  WorkerReports(RunParts* parts, RunTimeline* timeline, Wakeup* wakeup)
      : parts_(*parts), timeline_(*timeline), wakeup_(*wakeup) {}

  // A worker sees its data and can compute. The first one begins the training.
  void OnReady(Worker& worker, const proto::WorkerReady& ready);
  // Records a report of a worker that has joined, or rejects the worker for a report that no sound
  // worker sends.
  void OnReport(Worker& worker, const proto::WorkerReport& report);
  // The worker's stream is gone.
  void OnGone(Worker& worker, const std::string& why);
  // The worker has reopened its stream, and keeps the steps that its hello lists.
  void OnReopened(const Worker& former, Worker& now);
  // A ps has answered which steps it has applied. Opens reported steps again that it has not
  // applied, and rejects the workers that reported them. Abandons the timeline if these steps are
  // unknown, or if the ps uses another number of examples. Does nothing without an open timeline.
  void CompareWithPs(int ps, const proto::Claimed& claimed);

 private:
  void OnStepsDone(Worker& worker, const proto::StepsDone& done);
  void OnEvaluationDone(Worker& worker, const proto::EvaluationDone& done);
  void FinishEvaluation();
  // The next turn offers work to the worker.
  void OfferWork(const Worker& worker);
  ReportCheck Check() const;
  // Adds the results of a step that was not done before to the progress.
  void CountStep(const proto::StepDone& step);

  RunParts& parts_;
  RunTimeline& timeline_;
  Wakeup& wakeup_;
};

}  // namespace shoal
