#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/run_timeline.h"
#include "coordinator/worker_reports.h"
#include "tests/coordinator/run_parts_fixture.h"

namespace shoal {

// WorkerReports and the parts of a run. It gets the reports of JoinedWorkers; no turn follows.
class WorkerReportsTest : public RunPartsTest {
 protected:
  using Cause = Wakeup::Cause;
  using State = Membership::Record::State;

  // Leads an open timeline that waits for the first worker.
  void Begin(Job job) {
    ASSERT_NO_FATAL_FAILURE(Lead());
    Open(std::move(job));
  }
  void Open(Job job) {
    MakeParts(std::move(job));
    timeline_.emplace(&*parts_, &wakeup_);
    reports_.emplace(&*parts_, &*timeline_, &wakeup_);
    workers_.on_ready = [this](Worker& worker, const proto::WorkerReady& ready) {
      reports_->OnReady(worker, ready);
    };
    workers_.on_report = [this](Worker& worker, const proto::WorkerReport& report) {
      reports_->OnReport(worker, report);
    };
    workers_.on_gone = [this](Worker& worker, const std::string& why) {
      reports_->OnGone(worker, why);
    };
    timeline_->OnOpened(opened_.back());
    TakeCauses();
  }
  struct Seen {
    uint64_t training = kExamples;
    uint64_t test = 0;
    std::optional<uint32_t> shard_map;
  };
  void SendReady(int index, const Seen& seen) {
    proto::WorkerReport report;
    report.mutable_ready()->set_training_examples(seen.training);
    report.mutable_ready()->set_test_examples(seen.test);
    report.mutable_ready()->set_shard_map_fingerprint(
        seen.shard_map.value_or(parts_->shard_map->Fingerprint()));
    workers_.Send(index, report);
  }
  // Connects a worker that is ready.
  Worker& Ready(int index, const proto::WorkerHello& hello = {}) {
    workers_.Connect(index);
    workers_.SendHello(index, hello);
    SendReady(index, Seen());
    return *workers_.Find(index);
  }
  // Leases this many steps to the worker.
  void Lease(const Worker& worker, uint64_t count) {
    parts_->scheduler->steps().Take(worker.key, count, loop_.Now());
  }
  proto::StepDone Done(uint64_t step) const {
    proto::StepDone done;
    done.set_step(step);
    done.set_examples(parts_->plan->Range(step).count);
    done.set_loss_sum(1);
    done.add_metric_sums(1);
    return done;
  }
  void Report(int index, const std::vector<proto::StepDone>& steps) {
    proto::WorkerReport report;
    report.mutable_steps_done()->set_timeline(parts_->timeline());
    for (const proto::StepDone& step : steps) *report.mutable_steps_done()->add_steps() = step;
    workers_.Send(index, report);
  }
  // Begins the evaluation of epoch 0, and leases its batches to the worker.
  void Evaluate(const Worker& worker) {
    parts_->scheduler->BeginEvaluation(std::make_unique<Evaluation>(
        0, kEpochSteps, parts_->TestBatches().total_steps(), 1, std::chrono::seconds(60)));
    parts_->scheduler->evaluation()->batches().Take(worker.key, 4, loop_.Now());
  }
  void ReportBatch(int index, uint64_t batch, uint64_t cut_step = kEpochSteps) {
    proto::WorkerReport report;
    proto::EvaluationDone* done = report.mutable_evaluation_done();
    done->set_timeline(parts_->timeline());
    done->set_cut_step(cut_step);
    done->set_batch(batch);
    const StepPlan batches = parts_->TestBatches();
    done->set_examples(batch < batches.total_steps() ? batches.Range(batch).count : 1);
    done->set_loss_sum(1);
    done->add_metric_sums(1);
    workers_.Send(index, report);
  }
  // Returns whether the worker was rejected for good since the last call.
  bool Rejected(int index) {
    for (const proto::WorkerOrder& order : workers_.Orders(index)) {
      if (order.has_rejected()) return order.rejected().final();
    }
    return false;
  }
  State StateOf(int index) const { return parts_->membership->records().at(index).state; }
  // The answer of a ps that has applied the steps below `base`.
  proto::Claimed Claimed(uint64_t base, uint64_t done_below) const {
    proto::Claimed claimed;
    claimed.set_timeline(parts_->timeline());
    claimed.set_base(base);
    claimed.set_done_below(done_below);
    claimed.set_training_examples(kExamples);
    return claimed;
  }

  std::optional<RunTimeline> timeline_;
  std::optional<WorkerReports> reports_;
};

// --- OnReady ---

}  // namespace shoal
