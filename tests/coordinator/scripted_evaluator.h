#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/version.h"
#include "common/job/job.h"
#include "common/run/evaluations.h"
#include "common/run/history.h"
#include "tests/coordinator/scripted_cluster.h"

namespace shoal {

inline constexpr uint64_t kTestExamples = 50;

// An evaluator that does what the test tells it.
class ScriptedEvaluator {
 public:
  explicit ScriptedEvaluator(ScriptedCluster* cluster, uint64_t incarnation = 1)
      : cluster_(cluster),
        stream_(std::make_shared<FarEnd>(&cluster->loop, "evaluator-host", kEvaluateMethod)) {
    auto callbacks = cluster_->run->Accept(kEvaluateMethod, stream_->MakeStream());
    EXPECT_TRUE(callbacks.ok()) << callbacks.status();
    stream_->set_callbacks(*std::move(callbacks));
    proto::EvaluatorReport report;
    report.mutable_hello()->set_version(kVersion);
    report.mutable_hello()->set_host("far");
    report.mutable_hello()->set_pid(7);
    report.mutable_hello()->set_incarnation(incarnation);
    Send(report);
  }
  void GetReady(uint64_t test_examples = kTestExamples) {
    proto::EvaluatorReport report;
    report.mutable_ready()->set_test_examples(test_examples);
    report.mutable_ready()->set_job_fingerprint(job_fingerprint);
    Send(report);
  }
  // Asks for some values of the model, as far as they are there.
  std::string Read(const std::string& variable = "dense/kernel", uint32_t size = 16) {
    proto::EvaluatorReport report;
    report.mutable_values_wanted()->set_evaluation(order.evaluation());
    report.mutable_values_wanted()->set_variable(variable);
    report.mutable_values_wanted()->set_size_bytes(size);
    values.clear();
    Send(report);
    return values;
  }
  void SendProgress(uint64_t done) {
    proto::EvaluatorReport report;
    report.mutable_progress()->set_evaluation(order.evaluation());
    report.mutable_progress()->set_batches_done(done);
    report.mutable_progress()->set_batches(4);
    Send(report);
  }
  // Says that it is done, with `loss` and accuracy 0.25.
  void Finish(double loss, uint64_t examples = kTestExamples) {
    proto::EvaluatorReport report;
    proto::CheckpointEvaluated* evaluated = report.mutable_evaluated();
    evaluated->set_evaluation(order.evaluation());
    evaluated->set_examples(examples);
    evaluated->set_loss_sum(loss * static_cast<double>(examples));
    evaluated->add_metric_sums(0.25 * static_cast<double>(examples));
    order.Clear();
    Send(report);
  }
  void Leave() {
    proto::EvaluatorReport report;
    report.mutable_leaving()->set_reason("told to");
    Send(report);
  }
  // As after kill -9.
  void Die() {
    stream_->Close(absl::UnavailableError("connection reset"));
    cluster_->Settle();
    Take();
  }
  void Send(const proto::EvaluatorReport& report) {
    stream_->Send(report);
    Take();
  }
  void Take() {
    cluster_->Settle();
    for (const proto::EvaluatorOrder& each : stream_->Take<proto::EvaluatorOrder>()) {
      welcomed = welcomed || each.has_welcome();
      if (each.has_welcome()) job_fingerprint = JobFingerprint(each.welcome().job());
      if (each.has_evaluate()) {
        order = each.evaluate();
        orders.push_back(Step(order.checkpoint()));
      }
      if (each.has_values()) values = each.values().values();
      if (each.has_rejected()) {
        rejected = each.rejected().reason();
        final = each.rejected().final();
        of_another_job = each.rejected().other_job();
      }
      job_done = job_done || each.has_job_done();
    }
  }
  // "step-000000000013-…".
  static uint64_t Step(const std::string& checkpoint) {
    return std::stoull(checkpoint.substr(sizeof("step-") - 1));
  }

  bool welcomed = false;
  bool job_done = false;
  proto::EvaluateCheckpoint order;  // at hand
  std::vector<uint64_t> orders;     // the steps of all checkpoints that it was given
  std::string values;
  std::string rejected;
  bool final = false;
  bool of_another_job = false;
  uint32_t job_fingerprint = 0;  // of the job of the Welcome; what GetReady says

 private:
  ScriptedCluster* const cluster_;
  const std::shared_ptr<FarEnd> stream_;
};

inline ScriptedCluster::Options WithTestSet() {
  return {.test_examples = kTestExamples, .checkpoint = R"({"every_steps": 5, "keep": 9})"};
}
inline ScriptedCluster::Options WithEarlyStopping() {
  return {.test_examples = kTestExamples,
          .callbacks = R"([{"class_name": "EarlyStopping", "config": {"patience": 2}}])",
          .checkpoint = R"({"keep": 2})",
          .epochs = 6};
}

inline proto::TaskStatus StatusOfEvaluator(const ScriptedCluster& cluster) {
  const proto::StatusReply status = cluster.run->Status();
  for (const proto::TaskStatus& task : status.tasks())
    if (task.type() == "evaluator") return task;
  return {};
}

inline std::vector<CheckpointResult> Lines(const ScriptedCluster& cluster) {
  const absl::StatusOr<Evaluations> read = ReadEvaluations(cluster.run_dir() + "/evaluations.csv");
  EXPECT_TRUE(read.ok()) << read.status();
  const Evaluations evaluations = read.value_or(Evaluations());
  EXPECT_TRUE(evaluations.damage.ok()) << evaluations.damage;
  return evaluations.results;
}

inline std::vector<uint64_t> EvaluatedSteps(const ScriptedCluster& cluster) {
  std::vector<uint64_t> steps;
  for (const CheckpointResult& each : Lines(cluster)) steps.push_back(each.step);
  return steps;
}

// By epoch; 0 where there is none.
inline std::vector<double> TestLosses(const ScriptedCluster& cluster) {
  std::vector<double> losses;
  const absl::StatusOr<History> read = ReadHistory(cluster.run_dir() + "/history.csv");
  EXPECT_TRUE(read.ok()) << read.status();
  const History history = read.value_or(History());
  EXPECT_TRUE(history.damage.ok()) << history.damage;
  for (const proto::EpochResult& epoch : history.epochs) losses.push_back(epoch.test_loss());
  return losses;
}

// The steps of one epoch.
inline void FinishEpoch(ScriptedCluster* cluster, ScriptedWorker& worker) {
  for (uint64_t i = 0; i < kEpochSteps && !worker.leases.empty(); ++i) cluster->FinishStep(worker);
}

}  // namespace shoal
