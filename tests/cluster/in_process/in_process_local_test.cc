// The strategy local in whole clusters inside one process.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/cluster/in_process/in_process_cluster.h"
#include "tests/cluster/in_process/small_job.h"
#include "tests/cluster/in_process/trained_alone.h"
#include "tests/common/base/temporary_directory.h"

namespace shoal {
namespace {

constexpr int kBatchesPerEpoch = 13;  // of a SmallJob
constexpr char kAdam[] = R"({"class_name": "Adam", "config": {"learning_rate": 0.01}})";
constexpr char kPlainSgd[] = R"({"class_name": "SGD", "config": {"learning_rate": 0.05}})";

std::string Local(int batches, const std::string& more) {
  return absl::StrFormat(
      R"({"name": "local", "min_shard_bytes": 256, "chunk_bytes": 1024, "batches_per_step": %d%s})",
      batches, more);
}
std::string OuterSgd(double rate) {
  return absl::StrFormat(
      R"(, "outer_optimizer": {"class_name": "SGD", "config": {"learning_rate": %g}})", rate);
}

class InProcessClusterLocalTest : public testing::Test {
 protected:
  const TemporaryDirectory temporary_;
  const std::string& directory_ = temporary_.path();
};

// Whatever a worker's own optimizer comes to is what the ps have, within what a difference rounds.
void ExpectOneWorkerEqualsTrainingAlone(const std::string& optimizer, int batches,
                                        const std::string& more) {
  SCOPED_TRACE(absl::StrCat(optimizer, ", ", batches, " batches", more));
  const TemporaryDirectory directory;
  const Job job = SmallJob{.directory = directory.path(),
                           .optimizer = optimizer,
                           .strategy = Local(batches, more + OuterSgd(1)),
                           .normalization = R"("momentum": 0.9)"}
                      .Load();
  InProcessCluster cluster({.job = job, .ps = 2, .workers = 1, .run_dir = directory / "run"});
  cluster.StartAll();
  ASSERT_TRUE(cluster.WaitForCoordinator().ok());
  EXPECT_THAT(cluster.WaitForWorkers(), testing::Each(WorkerSession::End::kJobDone));
  const int steps = (kBatchesPerEpoch + batches - 1) / batches;
  EXPECT_EQ(cluster.finished_steps().size(), 2u * steps);
  ExpectClose(ReadModel(directory / "run"), TrainAlone(job, 2 * kBatchesPerEpoch));
}

TEST_F(InProcessClusterLocalTest, OneWorkerWithAnOuterRateOfOneEqualsTrainingAlone) {
  for (const char* optimizer :
       {kAdam,
        R"({"class_name": "SGD", "config": {"momentum": 0.9, "global_clipnorm": 0.5,
            "learning_rate": {"class_name": "CosineDecay",
                              "config": {"initial_learning_rate": 0.05, "decay_steps": 20}}}})",
        R"({"class_name": "Lamb", "config": {"clipnorm": 0.5, "weight_decay": 0.1}})"}) {
    for (const int batches : {1, 4, kBatchesPerEpoch})
      ExpectOneWorkerEqualsTrainingAlone(optimizer, batches, "");
  }
}

// Whatever is on its way while the worker goes on: no batch is left out, and none counts twice.
TEST_F(InProcessClusterLocalTest, FragmentsOfOneWorkerEqualTrainingAlone) {
  for (const int batches : {2, 5, kBatchesPerEpoch})
    ExpectOneWorkerEqualsTrainingAlone(kAdam, batches, R"(, "fragments": 3)");
}

// Each block once, whoever does it, and the epochs' figures are of all examples.
TEST_F(InProcessClusterLocalTest, ThreeWorkersDoEveryBlockOnceAndLearn) {
  for (const char* more :
       {"", R"(, "gradients_per_update": 3)", R"(, "max_staleness": 2)", R"(, "fragments": 4)"}) {
    SCOPED_TRACE(more);
    const TemporaryDirectory directory;
    const Job job = SmallJob{.directory = directory.path(),
                             .epochs = 12,
                             .optimizer = kPlainSgd,
                             .strategy = Local(3, more)}
                        .Load();
    InProcessCluster cluster({.job = job, .ps = 2, .workers = 3, .run_dir = directory / "run"});
    cluster.StartAll();
    ASSERT_TRUE(cluster.WaitForCoordinator().ok());
    EXPECT_THAT(cluster.WaitForWorkers(), testing::Each(WorkerSession::End::kJobDone));
    std::multiset<uint64_t> steps;
    for (const auto& finished : cluster.finished_steps()) steps.insert(finished.step);
    EXPECT_EQ(steps.size(), 12u * 5);
    for (uint64_t step = 0; step < 12 * 5; ++step) EXPECT_EQ(steps.count(step), 1u) << step;
    const proto::StatusReply status = cluster.Status();
    ASSERT_EQ(status.history_size(), 12);
    for (const proto::EpochResult& epoch : status.history()) EXPECT_EQ(epoch.examples(), 200u);
    EXPECT_LT(status.history(11).loss(), status.history(0).loss() / 2);
    EXPECT_GT(status.history(11).test_metrics(0).value(), 0.9);
  }
}

// Promise 9, where the inner optimizer has no state of its own.
TEST_F(InProcessClusterLocalTest, InRoundsTheWorkersDoNotMatter) {
  std::vector<Variables> models;
  for (const int workers : {1, 3}) {
    const TemporaryDirectory directory;
    const Job job = SmallJob{.directory = directory.path(),
                             .epochs = 3,
                             .optimizer = kPlainSgd,
                             .strategy = Local(2, R"(, "gradients_per_update": 3,
        "outer_optimizer": {"class_name": "SGD", "config": {"learning_rate": 0.7, "momentum": 0.9,
                                                            "nesterov": true}})"),
                             .normalization = R"("momentum": 0.9)"}
                        .Load();
    InProcessCluster cluster(
        {.job = job, .ps = 2, .workers = workers, .run_dir = directory / "run"});
    cluster.StartAll();
    ASSERT_TRUE(cluster.WaitForCoordinator().ok());
    models.push_back(ReadModel(directory / "run"));
  }
  ExpectSameBits(models[1], models[0]);
}

// The momentum, the buffer and how many differences that has are in a checkpoint: six steps end
// within four that make an update of the momentum.
TEST_F(InProcessClusterLocalTest, AJobThatTrainsOnEqualsOneThatWasSoLong) {
  const auto train = [](const std::string& directory, int steps, int ps) {
    const Job job = SmallJob{.directory = directory,
                             .steps = steps,
                             .optimizer = kPlainSgd,
                             .strategy = Local(2, R"(, "outer_optimizer":
        {"class_name": "DelayedNesterov", "config": {"momentum_every": 4}})")}
                        .Load();
    InProcessCluster cluster({.job = job, .ps = ps, .workers = 1, .run_dir = directory + "/run"});
    cluster.StartAll();
    EXPECT_TRUE(cluster.WaitForCoordinator().ok());
    return ReadModel(directory + "/run");
  };
  train(directory_, 6, 1);
  const Variables in_two_goes = train(directory_, 11, 3);
  const TemporaryDirectory other;
  ExpectSameBits(in_two_goes, train(other.path(), 11, 2));
}

}  // namespace
}  // namespace shoal
