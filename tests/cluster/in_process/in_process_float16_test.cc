// Models under mixed_float16 in whole clusters inside one process, whose workers compute with the
// kernels of GPUs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/cluster/in_process/in_process_cluster.h"
#include "tests/cluster/in_process/small_job.h"
#include "tests/cluster/in_process/trained_alone.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/common/metrics/sample_value.h"
#include "tests/worker/compute/cuda/cuda_on_cpu_backend.h"
#include "tests/worker/compute/device/fake_device.h"
#include "worker/compute/runner/graph_runner.h"

namespace shoal {
namespace {

using testing::Each;
using testing::HasSubstr;

absl::StatusOr<std::unique_ptr<ModelRunner>> CreateRunner(ModelRunner::Options options) {
  return GraphRunner::Create(std::move(options), std::make_unique<CudaOnCpuBackend>(
                                                     std::make_unique<FakeDevice>(/*seed=*/1)));
}

class InProcessClusterFloat16Test : public testing::Test {
 protected:
  // Its images are so bright that gradients are large for the loss scale that there is at first.
  Job OverflowingJob(int epochs = 2) const {
    return SmallJob{.directory = temporary_.path(),
                    .epochs = epochs,
                    .dtype = "mixed_float16",
                    .normalization = R"("momentum": 0.9, "gamma_initializer":
                                        {"class_name": "Constant", "config": {"value": 8}})"}
        .Load();
  }
  static double Overflows(const InProcessCluster& cluster, int worker) {
    return SampleValue(cluster.worker(worker), "shoal_worker_overflows_total").value_or(-1);
  }

  const TemporaryDirectory temporary_;
  const std::string run_dir_ = temporary_.path() + "/run";
};

// To the last bit, moving averages and the momentum after skipped steps included.
TEST_F(InProcessClusterFloat16Test, OneWorkerEqualsTrainingAloneThroughOverflows) {
  const Job job = OverflowingJob();
  InProcessCluster cluster(
      {.job = job, .ps = 2, .workers = 1, .run_dir = run_dir_, .create_runner = CreateRunner});
  cluster.StartAll();
  ASSERT_TRUE(cluster.WaitForCoordinator().ok());
  EXPECT_THAT(cluster.WaitForWorkers(), Each(WorkerSession::End::kJobDone));
  EXPECT_EQ(cluster.finished_steps().size(), 26u);
  EXPECT_GT(Overflows(cluster, 0), 0) << "the test provokes none";
  EXPECT_LT(Overflows(cluster, 0), 20);
  ExpectSameBits(ReadModel(run_dir_), TrainAlone(job, 26, 1, CreateRunner));
}

// Each step is done once, whatever it comes to, and its examples count.
TEST_F(InProcessClusterFloat16Test, ThreeWorkersDoEveryStepOnceAndLearn) {
  const Job job = OverflowingJob(8);
  InProcessCluster cluster(
      {.job = job, .ps = 2, .workers = 3, .run_dir = run_dir_, .create_runner = CreateRunner});
  cluster.StartAll();
  ASSERT_TRUE(cluster.WaitForCoordinator().ok());
  EXPECT_THAT(cluster.WaitForWorkers(), Each(WorkerSession::End::kJobDone));
  std::multiset<uint64_t> steps;
  for (const auto& finished : cluster.finished_steps()) steps.insert(finished.step);
  for (uint64_t step = 0; step < 8 * 13; ++step) EXPECT_EQ(steps.count(step), 1u) << step;
  double overflows = 0;
  for (int worker = 0; worker < 3; ++worker) overflows += Overflows(cluster, worker);
  EXPECT_GT(overflows, 0) << "the test provokes none";
  const proto::StatusReply status = cluster.Status();
  ASSERT_EQ(status.history_size(), 8);
  for (const proto::EpochResult& epoch : status.history()) EXPECT_EQ(epoch.examples(), 200u);
  EXPECT_LT(status.history(7).loss(), status.history(0).loss());
}

// Of local steps the batches that overflow are left out.
TEST_F(InProcessClusterFloat16Test, LocalStepsGoOnWithoutTheBatchesThatOverflow) {
  Job job = OverflowingJob(6);
  job.strategy.name = "local";
  job.strategy.batches_per_step = 3;
  job.strategy.outer_optimizer = R"({"class_name": "SGD", "config": {"learning_rate": 1}})";
  InProcessCluster cluster(
      {.job = job, .ps = 2, .workers = 2, .run_dir = run_dir_, .create_runner = CreateRunner});
  cluster.StartAll();
  ASSERT_TRUE(cluster.WaitForCoordinator().ok());
  EXPECT_THAT(cluster.WaitForWorkers(), Each(WorkerSession::End::kJobDone));
  EXPECT_GT(Overflows(cluster, 0) + Overflows(cluster, 1), 0) << "the test provokes none";
  const proto::StatusReply status = cluster.Status();
  ASSERT_EQ(status.history_size(), 6);
  for (const proto::EpochResult& epoch : status.history()) EXPECT_EQ(epoch.examples(), 200u);
  EXPECT_LT(status.history(5).loss(), status.history(0).loss());
}

TEST_F(InProcessClusterFloat16Test, AWorkerRejectsAJobWithRounds) {
  Job job = OverflowingJob();
  job.strategy.name = "sync";
  job.strategy.gradients_per_update = 2;
  InProcessCluster cluster(
      {.job = job, .ps = 1, .workers = 1, .run_dir = run_dir_, .create_runner = CreateRunner});
  cluster.StartAll();
  EXPECT_EQ(cluster.WaitForWorker(0), WorkerSession::End::kFailed);
  EXPECT_THAT(std::string(cluster.status_of_worker(0).message()), HasSubstr("mixed_bfloat16"));
}

}  // namespace
}  // namespace shoal
