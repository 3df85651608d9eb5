// Early stopping and the best checkpoint: what is decided at the end of an epoch, whoever is
// killed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <functional>
#include <utility>
#include <vector>

#include "tests/common/base/file_content.h"
#include "tests/common/checkpoint/small_checkpoint.h"
#include "tests/coordinator/scripted_cluster.h"

namespace shoal {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Lt;
using testing::Not;
using testing::SizeIs;

// The second is the best, and two more epochs are not.
const std::vector<double> kLosses = {3, 2, 2.5, 2.6, 1, 1};

ScriptedCluster::Options WithCallbacks(const std::string& callbacks) {
  return {.test_examples = 50, .callbacks = callbacks, .checkpoint = R"({"keep": 1})", .epochs = 6};
}
constexpr char kEarlyStopping[] = R"([{"class_name": "EarlyStopping", "config": {"patience": 2}}])";

uint64_t EpochOf(const proto::Evaluate& evaluate) { return evaluate.cut_step() / kEpochSteps - 1; }

// The worker does what it is told, so many steps and batches; returns how many it did.
int Drive(ScriptedCluster* cluster, ScriptedWorker& worker, int most = 1000) {
  int done = 0;
  for (; done < most; ++done) {
    if (!worker.evaluations.empty()) {
      worker.test_loss = kLosses[EpochOf(worker.evaluations.front())];
      worker.Evaluate();
      cluster->Settle();
    } else if (!worker.leases.empty()) {
      cluster->FinishStep(worker);
    } else {
      break;
    }
  }
  return done;
}

std::string SavedModel(const ScriptedCluster& cluster) {
  return FileContent(cluster.run_dir() + "/model/model.safetensors");
}

TEST(TrainingCallbacksTest, NoStepOfTheNextEpochBeginsBeforeTheResultIsThere) {
  ScriptedCluster cluster(WithCallbacks(kEarlyStopping));
  ScriptedWorker& worker = cluster.Join(0);
  cluster.FinishAll(worker);
  EXPECT_THAT(worker.leased, SizeIs(kEpochSteps));
  EXPECT_THAT(worker.leased, Each(Lt(kEpochSteps)));
  while (!worker.evaluations.empty()) {
    EXPECT_THAT(worker.leases, IsEmpty());
    worker.Evaluate();
    cluster.Settle();
  }
  EXPECT_THAT(worker.leases, Contains(kEpochSteps));
}

// The report of a step that all ps have applied is still on its way.
TEST(TrainingCallbacksTest, AnEpochsCheckpointIsNotWrittenAgainWhileAReportIsAwaited) {
  ScriptedCluster cluster(WithCallbacks(kEarlyStopping));
  ScriptedWorker& worker = cluster.Join(0);
  ScriptedWorker& slow = cluster.Join(1);
  const std::deque<uint64_t> unreported = slow.leases;
  ASSERT_THAT(unreported, Not(IsEmpty()));
  cluster.ps[0]->applied.insert(unreported.begin(), unreported.end());
  cluster.FinishAll(worker);
  while (!worker.evaluations.empty() || !slow.evaluations.empty()) {
    for (ScriptedWorker* each : {&worker, &slow}) {
      if (!each->evaluations.empty()) each->Evaluate();
    }
    cluster.Settle();
  }
  cluster.Advance(seconds(2));
  EXPECT_THAT(cluster.ps[0]->fences, SizeIs(1));
  EXPECT_THAT(worker.leased, Each(Lt(kEpochSteps)));
  for (const uint64_t step : unreported) slow.Report(step);
  cluster.Settle();
  EXPECT_THAT(worker.leased, Contains(kEpochSteps)) << "the training goes on";
}

TEST(TrainingCallbacksTest, TheTrainingEndsWhenPatienceHasRunOut) {
  ScriptedCluster cluster(WithCallbacks(kEarlyStopping));
  ScriptedWorker& worker = cluster.Join(0);
  Drive(&cluster, worker);
  EXPECT_TRUE(worker.job_done);
  EXPECT_THAT(worker.job_failure, IsEmpty());
  EXPECT_EQ(*worker.leased.rbegin(), 4 * kEpochSteps - 1);
  const proto::StatusReply status = cluster.run->Status();
  EXPECT_EQ(status.phase(), "finished");
  EXPECT_EQ(status.ended_after_epoch(), 3u);
  ASSERT_EQ(status.best_size(), 1);
  EXPECT_EQ(status.best(0).figure(), "val_loss");
  EXPECT_EQ(status.best(0).value(), 2);
  EXPECT_EQ(status.best(0).epoch(), 1u);
  EXPECT_THAT(status.best(0).directory(), HasSubstr("step-000000000026-"));
  EXPECT_THAT(SavedModel(cluster), HasSubstr(R"("steps":"52")")) << "the last epoch's values";
  cluster.Disconnect(worker);
  cluster.Advance(seconds(10));
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_TRUE(cluster.over->ok()) << *cluster.over;
}

TEST(TrainingCallbacksTest, TheBestStaysHoweverManyComeLater) {
  ScriptedCluster cluster(WithCallbacks(
      R"([{"class_name": "ModelCheckpoint", "config": {"save_best_only": true,
           "monitor": "val_loss", "initial_value_threshold": 2.2}},
          {"class_name": "EarlyStopping", "config": {"start_from_epoch": 4, "patience": 9}}])"));
  ScriptedWorker& worker = cluster.Join(0);
  while (worker.evaluations.empty() || EpochOf(worker.evaluations.front()) < 4)
    ASSERT_EQ(Drive(&cluster, worker, 1), 1);
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(65, 52, 26)) << "two are kept in any case";
  Drive(&cluster, worker);
  EXPECT_TRUE(worker.job_done);
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(78, 65)) << "the fifth is better";
}

TEST(TrainingCallbacksTest, TheBestEpochsValuesAreTheResultWhereThatIsAskedFor) {
  ScriptedCluster cluster(WithCallbacks(
      R"([{"class_name": "EarlyStopping",
           "config": {"patience": 2, "restore_best_weights": true}}])"));
  Drive(&cluster, cluster.Join(0));
  EXPECT_THAT(SavedModel(cluster), HasSubstr(R"("steps":"26")"));
}

TEST(TrainingCallbacksTest, WhereTheBestIsDamagedTheLastValuesAreTheResult) {
  using Damage = std::function<void(const std::string& file)>;
  const std::vector<std::pair<const char*, Damage>> damages = {
      {"missing", [](const std::string& file) { std::filesystem::remove(file); }},
      {"cut off", [](const std::string& file) { std::filesystem::resize_file(file, 5); }},
      {"a wrong header",
       [](const std::string& file) {
         std::string content = FileContent(file);
         content[8] ^= 1;
         WriteAll(file, content);
       }},
  };
  for (const auto& [what, damage] : damages) {
    SCOPED_TRACE(what);
    ScriptedCluster cluster(WithCallbacks(
        R"([{"class_name": "EarlyStopping",
             "config": {"patience": 2, "restore_best_weights": true}}])"));
    ScriptedWorker& worker = cluster.Join(0);
    while (worker.evaluations.empty() || EpochOf(worker.evaluations.front()) < 3)
      ASSERT_EQ(Drive(&cluster, worker, 1), 1);
    const auto best = BestOf(RunPaths{cluster.run_dir()});
    ASSERT_TRUE(best.ok()) << best.status();
    bool damaged = false;
    for (const auto& each : std::filesystem::directory_iterator(best->checkpoint->directory)) {
      const std::string name = each.path().filename();
      if (damaged || !name.starts_with("model-")) continue;
      damage(each.path());
      damaged = true;
    }
    ASSERT_TRUE(damaged);
    Drive(&cluster, worker);
    EXPECT_TRUE(worker.job_done);
    EXPECT_THAT(SavedModel(cluster), HasSubstr(R"("steps":"52")"));
  }
}

// What comes of it is the same wherever a coordinator was killed, and whether the ps live or not.
TEST(TrainingCallbacksTest, ANewCoordinatorDecidesTheSame) {
  int actions = 0;
  for (int kill_after = 0; actions == std::max(0, kill_after - 4); kill_after += 4) {
    for (const bool ps_too : {false, true}) {
      SCOPED_TRACE(testing::Message() << "killed after " << kill_after << " steps and batches"
                                      << (ps_too ? ", the ps too" : ""));
      ScriptedCluster cluster(WithCallbacks(
          R"([{"class_name": "EarlyStopping",
               "config": {"patience": 2, "restore_best_weights": true}}])"));
      actions = Drive(&cluster, cluster.Join(0), kill_after);
      if (ps_too) cluster.ps[0]->Restart();
      cluster.StartCoordinator();
      cluster.Advance(seconds(3));
      if (cluster.run->Status().phase() != "finished") {
        ScriptedWorker& worker = cluster.Join(0);
        Drive(&cluster, worker);
        EXPECT_TRUE(worker.job_done);
        const proto::StatusReply status = cluster.run->Status();
        EXPECT_EQ(status.ended_after_epoch(), 3u);
        ASSERT_EQ(status.best_size(), 1);
        EXPECT_EQ(status.best(0).epoch(), 1u);
        EXPECT_THAT(status.best(0).directory(), HasSubstr("step-000000000026-"));
      }
      EXPECT_THAT(cluster.StoredSteps(), AllOf(Contains(26), Contains(52), Not(Contains(53))));
      EXPECT_THAT(SavedModel(cluster), HasSubstr(R"("steps":"26")"));
      const auto best = BestOf(RunPaths{cluster.run_dir()});
      ASSERT_TRUE(best.ok()) << best.status();
      EXPECT_EQ(best->checkpoint->manifest.cut_step, 2 * kEpochSteps);
    }
  }
  EXPECT_GT(actions, 4 * static_cast<int>(kEpochSteps)) << "up to the end";
}

// Without callbacks such a run has no result for its last epoch.
TEST(TrainingCallbacksTest, TheLastEpochIsEvaluatedAlsoAfterTheFinalCheckpoint) {
  ScriptedCluster::Options options =
      WithCallbacks(R"([{"class_name": "EarlyStopping", "config": {"start_from_epoch": 5}}])");
  ScriptedCluster cluster(options);
  ScriptedWorker& worker = cluster.Join(0);
  while (worker.evaluations.empty() || EpochOf(worker.evaluations.front()) < 5)
    ASSERT_EQ(Drive(&cluster, worker, 1), 1);
  ASSERT_THAT(cluster.StoredSteps(), Contains(78));
  cluster.ps[0]->Restart();
  cluster.StartCoordinator();
  cluster.Advance(seconds(3));
  EXPECT_NE(cluster.run->Status().phase(), "finished");
  ScriptedWorker& next = cluster.Join(0);
  EXPECT_THAT(next.leases, IsEmpty());
  ASSERT_THAT(next.evaluations, Not(IsEmpty()));
  Drive(&cluster, next);
  EXPECT_TRUE(next.job_done);
  EXPECT_THAT(FileContent(cluster.run_dir() + "/history.csv"), HasSubstr("\n6,"));
  EXPECT_EQ(cluster.run->Status().best(0).epoch(), 5u);
}

TEST(TrainingCallbacksTest, ARunThatIsToBeLongerGoesOn) {
  ScriptedCluster::Options options =
      WithCallbacks(R"([{"class_name": "ModelCheckpoint", "config": {"save_best_only": true}}])");
  options.epochs = 2;
  ScriptedCluster cluster(options);
  Drive(&cluster, cluster.Join(0));
  ASSERT_THAT(SavedModel(cluster), HasSubstr(R"("steps":"26")"));
  options.directory = cluster.directory.path();
  options.epochs = 3;
  options.ps_incarnation = 2;
  ScriptedCluster longer(options);
  ScriptedWorker& worker = longer.Join(0);
  EXPECT_THAT(worker.leases, Contains(2 * kEpochSteps));
  Drive(&longer, worker);
  EXPECT_TRUE(worker.job_done);
  EXPECT_THAT(SavedModel(cluster), HasSubstr(R"("steps":"39")"));
}

// A result that is not on disk is none: who takes over would not know it.
TEST(TrainingCallbacksTest, AResultThatIsNotOnDiskIsWaitedFor) {
  ScriptedCluster cluster(WithCallbacks(kEarlyStopping));
  ScriptedWorker& worker = cluster.Join(0);
  cluster.FinishAll(worker);
  const std::string history = cluster.run_dir() + "/history.csv";
  std::filesystem::remove(history);
  std::filesystem::create_directory(history);
  Drive(&cluster, worker);
  cluster.Advance(seconds(6));
  EXPECT_THAT(worker.leases, IsEmpty());
  EXPECT_THAT(cluster.run->Status().waiting(), Contains(HasSubstr("result")));
  std::filesystem::remove(history);
  cluster.Advance(seconds(6));
  EXPECT_THAT(worker.leases, Contains(kEpochSteps));
}

}  // namespace
}  // namespace shoal
