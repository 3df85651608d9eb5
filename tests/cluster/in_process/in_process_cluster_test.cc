// Whole clusters inside one process, with the reference kernels.

#include "tests/cluster/in_process/in_process_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/run/evaluations.h"
#include "common/run/history.h"
#include "tests/cluster/in_process/small_job.h"
#include "tests/cluster/in_process/trained_alone.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/fakes/bare_file_system.h"
#include "worker/compute/registry/create_model_runner.h"

namespace shoal {
namespace {

// Epochs, or steps, of a job that is stopped before its end however fast the machine is.
constexpr int kEndless = 1'000'000;

class InProcessClusterTest : public testing::Test {
 protected:
  const TemporaryDirectory temporary_;
  const std::string& directory_ = temporary_.path();
  const std::string run_dir_ = directory_ + "/run";
};

// What the epochs of a run have come to on the test set, to the last digit.
std::vector<std::string> TestResults(const std::string& run_dir) {
  std::vector<std::string> results;
  const absl::StatusOr<History> read = ReadHistory(run_dir + "/history.csv");
  EXPECT_TRUE(read.ok()) << read.status();
  const History history = read.value_or(History());
  EXPECT_TRUE(history.damage.ok()) << history.damage;
  for (const proto::EpochResult& epoch : history.epochs) {
    std::string& result = results.emplace_back(absl::StrCat(ExactNumber(epoch.test_loss())));
    for (const proto::MetricValue& metric : epoch.test_metrics())
      absl::StrAppend(&result, " ", ExactNumber(metric.value()));
  }
  return results;
}

// Whoever evaluates, the results are the same to the last bit, and so is what is decided by them.
TEST_F(InProcessClusterTest, AnEvaluatorFindsWhatWorkersFind) {
  const Job job =
      SmallJob{.directory = directory_,
               .epochs = 40,
               .callbacks =
                   R"([{"class_name": "EarlyStopping", "config": {"patience": 3, "min_delta": 0.05,
                        "restore_best_weights": true}}])",
               .checkpoint = R"({"every_steps": 5, "keep": 2})"}
          .Load();
  InProcessCluster alone({.job = job, .ps = 2, .workers = 1, .run_dir = run_dir_});
  alone.StartAll();
  ASSERT_TRUE(alone.WaitForCoordinator().ok());

  const std::string other = directory_ + "/evaluated";
  InProcessCluster cluster({.job = job, .ps = 2, .workers = 1, .run_dir = other});
  cluster.StartCoordinator();
  cluster.StartPs(0);
  cluster.StartPs(1);
  cluster.StartEvaluator();
  ASSERT_TRUE(cluster.WaitForStatus([](const proto::StatusReply& status) {
    return std::any_of(status.tasks().begin(), status.tasks().end(), [](const auto& task) {
      return task.type() == "evaluator" && task.state() == "up";
    });
  }));
  cluster.StartWorker(0);
  // It is killed twice, and another one comes.
  for (const int lines : {2, 4}) {
    ASSERT_TRUE(cluster.WaitForStatus([lines](const proto::StatusReply& status) {
      return status.history_size() >= lines || status.phase() == "finished";
    }));
    cluster.StartEvaluator();
  }
  ASSERT_TRUE(cluster.WaitForCoordinator().ok());
  EXPECT_TRUE(cluster.WaitForEvaluator().ok());
  EXPECT_GT(TestResults(other).size(), 4u);
  EXPECT_EQ(TestResults(other), TestResults(run_dir_));
  ExpectSameBits(ReadModel(other), ReadModel(run_dir_));
  std::set<std::string> evaluated;
  const absl::StatusOr<Evaluations> evaluations = ReadEvaluations(other + "/evaluations.csv");
  ASSERT_TRUE(evaluations.ok()) << evaluations.status();
  EXPECT_TRUE(evaluations->damage.ok()) << evaluations->damage;
  for (const CheckpointResult& each : evaluations->results)
    EXPECT_TRUE(evaluated.insert(each.checkpoint).second) << each.checkpoint << " twice";
  EXPECT_GT(evaluated.size(), 4u);
}

TEST_F(InProcessClusterTest, OneWorkerEqualsLocalTraining) {
  for (const char* optimizer :
       {R"({"class_name": "Adam", "config": {"learning_rate": 0.01}})",
        R"({"class_name": "SGD", "config": {"learning_rate": 0.05, "momentum": 0.9}})",
        R"({"class_name": "RMSprop", "config": {"global_clipnorm": 0.1, "learning_rate":
            {"class_name": "CosineDecay", "config": {"initial_learning_rate": 0.01,
                                                     "decay_steps": 15}}}})",
        R"({"class_name": "Adam", "config": {"use_ema": true, "ema_momentum": 0.8,
                                             "ema_overwrite_frequency": 7}})",
        R"({"class_name": "Lion", "config": {"clipnorm": 0.1, "weight_decay": 0.1}})",
        R"({"class_name": "Lamb", "config": {"clipnorm": 0.5, "weight_decay": 0.1,
                                             "use_ema": true}})",
        R"({"class_name": "Adam", "config": {"weight_decay": 1,
                                             "exclude_from_weight_decay": ["bias"]}})",
        R"({"class_name": "Lamb", "config": {"weight_decay": 1, "use_ema": true,
                                             "exclude_from_weight_decay": ["kernel"]}})"}) {
    for (const int ps : {1, 2, 3}) {
      SCOPED_TRACE(absl::StrCat(optimizer, ", ps: ", ps));
      const TemporaryDirectory directory;
      SmallJob small{.directory = directory.path(), .steps = 20, .optimizer = optimizer};
      const Job job = small.Load();
      InProcessCluster cluster(
          {.job = job, .ps = ps, .workers = 1, .run_dir = small.directory + "/run"});
      cluster.StartAll();
      ASSERT_TRUE(cluster.WaitForCoordinator().ok());
      EXPECT_THAT(cluster.WaitForWorkers(), testing::Each(WorkerSession::End::kJobDone));
      ExpectSameBits(ReadModel(small.directory + "/run"), TrainAlone(job, 20));
    }
  }
}

// Nothing else changes than what the codecs do: the ps hold float32, a step's gradient is encoded
// and applied once, and what it leaves out is added to the next.
TEST_F(InProcessClusterTest, OneWorkerWhoseTrafficIsCompressedEqualsLocalTraining) {
  for (const Job::Compression& compression : {Job::Compression{"bf16", "bf16"},
                                              {"int8", ""},
                                              {"int8", "int8"},
                                              {"e3m0", "bf16"},
                                              {R"({"fraction":0.05,"name":"top_k"})", ""}}) {
    SCOPED_TRACE(absl::StrCat(compression.push, ", ", compression.pull));
    const TemporaryDirectory directory;
    Job job =
        SmallJob{.directory = directory.path(), .steps = 20, .normalization = R"("momentum": 0.9)"}
            .Load();
    job.compression = compression;
    InProcessCluster cluster({.job = job, .ps = 2, .workers = 1, .run_dir = directory / "run"});
    cluster.StartAll();
    ASSERT_TRUE(cluster.WaitForCoordinator().ok());
    EXPECT_THAT(cluster.WaitForWorkers(), testing::Each(WorkerSession::End::kJobDone));
    ExpectSameBits(ReadModel(directory / "run"), TrainAlone(job, 20, 2));
  }
}

// To the last bit what its devices compute without a cluster, and nearly what one device does.
TEST_F(InProcessClusterTest, OneWorkerOnTwoDevicesEqualsLocalTraining) {
  const Job job = SmallJob{.directory = directory_, .steps = 20}.Load();
  InProcessCluster cluster(
      {.job = job, .ps = 2, .workers = 1, .run_dir = run_dir_, .backend = "reference,reference"});
  cluster.StartAll();
  ASSERT_TRUE(cluster.WaitForCoordinator().ok());
  EXPECT_THAT(cluster.WaitForWorkers(), testing::Each(WorkerSession::End::kJobDone));
  const auto on_two = [](ModelRunner::Options options) {
    options.backend = "reference,reference";
    return CreateModelRunner(std::move(options));
  };
  ExpectSameBits(ReadModel(run_dir_), TrainAlone(job, 20, 2, on_two));
  ExpectClose(ReadModel(run_dir_), TrainAlone(job, 20, 2));
}

// The same examples in the same batches: what one worker adds up of two devices crosses the network
// once, and that of two workers twice. (What these pull depends on who computes how many steps of a
// round.)
TEST_F(InProcessClusterTest, AWorkerOnTwoDevicesSendsHalfOfWhatTwoWorkersSend) {
  const auto sent = [](int workers, const std::string& backend, int batch_size,
                       const std::string& strategy) {
    const TemporaryDirectory directory;
    const Job job =
        SmallJob{.directory = directory.path(),
                 .training_examples = 256,
                 .batch_size = batch_size,
                 .epochs = 4,
                 .optimizer = R"({"class_name": "SGD", "config": {"learning_rate": 0.1}})",
                 .strategy = strategy}
            .Load();
    InProcessCluster cluster({.job = job,
                              .ps = 2,
                              .workers = workers,
                              .run_dir = directory / "run",
                              .backend = backend});
    cluster.StartAll();
    EXPECT_TRUE(cluster.WaitForCoordinator().ok());
    EXPECT_THAT(cluster.WaitForWorkers(), testing::Each(WorkerSession::End::kJobDone));
    double bytes = 0;
    for (int worker = 0; worker < workers; ++worker) {
      MetricSamples samples;
      cluster.worker(worker).Collect(&samples);
      for (const MetricSamples::Sample& sample : samples.samples()) {
        const bool is_payload =
            std::string(sample.metric.description().name) == "shoal_worker_payload_bytes_total";
        if (is_payload && sample.labels[1] == "sent") bytes += sample.value;
      }
    }
    return std::pair(bytes, ReadModel(directory / "run"));
  };
  const auto [by_one, model] = sent(1, "reference,reference", 32, R"("async")");
  const auto [by_two, model_of_two] =
      sent(2, "reference", 16, R"({"name": "sync", "gradients_per_update": 2})");
  EXPECT_GT(by_one, 0);
  EXPECT_EQ(by_two, 2 * by_one);
  ExpectClose(model, model_of_two);
}

// Of gradients that are clipped to nothing, an update is the decay of the weights, by its learning
// rate: what is left of them says what the rates add up to.
class LearningRatesTest : public InProcessClusterTest {
 protected:
  static constexpr double kDecay = 0.001;

  static Job MakeJob(const std::string& directory, int steps, const std::string& strategy) {
    return SmallJob{
        .directory = directory,
        .steps = steps,
        .optimizer = absl::StrCat(R"({"class_name": "SGD", "config": {"learning_rate": 1,
                                  "clipvalue": 1e-30, "weight_decay": )",
                                  kDecay, "}}"),
        .strategy = strategy}
        .Load();
  }
  // Trains, or goes on, in `directory`; what is left of the weights.
  static double Train(const std::string& directory, const Job& job, int workers) {
    InProcessCluster cluster(
        {.job = job, .ps = 2, .workers = workers, .run_dir = directory + "/run"});
    cluster.StartAll();
    EXPECT_TRUE(cluster.WaitForCoordinator().ok());
    const Variables trained = ReadModel(directory + "/run");
    double before = 0, after = 0;
    for (const auto& [name, values] : TrainAlone(job, 0)) {
      for (const float value : values) before += std::abs(value);
      for (const float value : trained.at(name)) after += std::abs(value);
    }
    return after / before;
  }
};

TEST_F(LearningRatesTest, TheOlderAGradientTheSmallerItIs) {
  const int steps = 400;
  const auto what_is_left = [&](const char* strategy, int workers) {
    const TemporaryDirectory directory;
    const Job job = MakeJob(directory.path(), steps, strategy);
    const double left = Train(directory.path(), job, workers);
    if (workers == 1) ExpectSameBits(ReadModel(directory / "run"), TrainAlone(job, steps));
    return left;
  };
  const double undivided = std::pow(1 - kDecay, steps);
  const char* const by_staleness = R"({"name": "async", "learning_rate_by_staleness": true})";
  EXPECT_NEAR(what_is_left("\"async\"", 4), undivided, 1e-4);
  EXPECT_NEAR(what_is_left(by_staleness, 1), undivided, 1e-4) << "no gradient is old";
  // Of four workers some are, however seldom they take turns.
  const double left = what_is_left(by_staleness, 4);
  EXPECT_GT(left, undivided + 1e-3);
  EXPECT_LT(left, 1);
}

TEST_F(LearningRatesTest, TheyScaleWithTheWorkersAfterAWarmUp) {
  const int steps = 400;
  const Job job = MakeJob(directory_, steps, R"({"name": "async", "scale_learning_rate": "linear",
                                                "workers": 4, "warmup_steps": 100})");
  double undivided = 1;
  for (int step = 0; step < steps; ++step)
    undivided *= 1 - kDecay * (1 + 3 * std::min(step, 100) / 100.0);
  EXPECT_NEAR(Train(directory_, job, 3), undivided, 1e-4);
}

// Its own momentum, and plain SGD at the ps, are Nesterov's.
TEST_F(InProcessClusterTest, OneWorkersOwnMomentumIsTheOptimizers) {
  const auto job_with = [&](const char* optimizer, const char* strategy) {
    return SmallJob{.directory = directory_,
                    .steps = 40,
                    .optimizer = optimizer,
                    .strategy = strategy,
                    .normalization = R"("momentum": 0.9)"}
        .Load();
  };
  const Job job = job_with(R"({"class_name": "SGD", "config": {"learning_rate": 0.02}})",
                           R"({"name": "async", "worker_momentum": 0.9})");
  InProcessCluster cluster({.job = job, .ps = 2, .workers = 1, .run_dir = run_dir_});
  cluster.StartAll();
  ASSERT_TRUE(cluster.WaitForCoordinator().ok());
  const Job nesterov = job_with(R"({"class_name": "SGD", "config": {"learning_rate": 0.02,
                                    "momentum": 0.9, "nesterov": true}})",
                                R"("async")");
  ExpectClose(ReadModel(run_dir_), TrainAlone(nesterov, 40));
}

// One worker that looks ahead by one update computes on other values than one that does not, and
// the model has none of them: so the two end apart, and both learn.
TEST_F(InProcessClusterTest, LookingAheadIsForWorkersAlone) {
  std::vector<Variables> models;
  for (const char* strategy : {R"("async")", R"({"name": "async", "look_ahead": 2})"}) {
    const TemporaryDirectory directory;
    const Job job =
        SmallJob{.directory = directory.path(), .epochs = 4, .strategy = strategy}.Load();
    InProcessCluster cluster({.job = job, .ps = 2, .workers = 1, .run_dir = directory / "run"});
    cluster.StartAll();
    ASSERT_TRUE(cluster.WaitForCoordinator().ok());
    EXPECT_GT(cluster.Status().history(3).test_metrics(0).value(), 0.9);
    models.push_back(ReadModel(directory / "run"));
  }
  EXPECT_NE(models[0], models[1]);
}

TEST_F(InProcessClusterTest, WorkersThatWarmUpDoEveryStepOnce) {
  const Job job =
      SmallJob{.directory = directory_,
               .steps = 200,
               .strategy = R"({"name": "async", "warmup_steps": 150, "momentum_by_workers": true})"}
          .Load();
  InProcessCluster cluster({.job = job, .ps = 2, .workers = 3, .run_dir = run_dir_});
  cluster.StartAll();
  ASSERT_TRUE(cluster.WaitForCoordinator().ok());
  std::multiset<uint64_t> steps;
  for (const auto& finished : cluster.finished_steps()) steps.insert(finished.step);
  EXPECT_EQ(steps.size(), 200u);
  EXPECT_EQ(std::set<uint64_t>(steps.begin(), steps.end()).size(), 200u);
}

TEST_F(InProcessClusterTest, OneWorkerAveragesStatisticsAsLocalTraining) {
  const Job job =
      SmallJob{.directory = directory_, .steps = 20, .normalization = R"("momentum": 0.9)"}.Load();
  InProcessCluster cluster({.job = job, .ps = 2, .workers = 1, .run_dir = run_dir_});
  cluster.StartAll();
  ASSERT_TRUE(cluster.WaitForCoordinator().ok());
  const Variables model = ReadModel(run_dir_);
  EXPECT_NE(model.at("norm/moving_mean")[0], 0);
  EXPECT_NE(model.at("norm/moving_variance")[0], 1);
  ExpectSameBits(model, TrainAlone(job, 20));
}

// With this momentum the moving statistics are the sum of those of all batches, over 2^30, whatever
// the order: each step's are in there once, also of those that were done before the cluster was
// killed, and of those that were taken back to the checkpoint.
TEST_F(InProcessClusterTest, StatisticsOfEveryStepCountOnceAfterAKill) {
  const Job job = SmallJob{.directory = directory_,
                           .steps = 400,
                           .normalization = R"("momentum": 0.99999999906867743,
                               "moving_variance_initializer": "zeros")"}
                      .Load();
  {
    InProcessCluster cluster({.job = job, .ps = 2, .workers = 3, .run_dir = run_dir_});
    cluster.StartAll();
    ASSERT_TRUE(cluster.WaitForStatus(
        [](const proto::StatusReply& status) { return status.last_checkpoint().step() >= 20; }));
  }
  InProcessCluster cluster({.job = job, .ps = 3, .workers = 2, .run_dir = run_dir_});
  cluster.StartAll();
  ASSERT_TRUE(cluster.WaitForCoordinator().ok());
  const Variables model = ReadModel(run_dir_), want = TrainAlone(job, 400);
  for (const char* name : {"norm/moving_mean", "norm/moving_variance"}) {
    const float expected = want.at(name)[0];
    EXPECT_GT(expected, 0) << name;
    // A step's part is 1 / 400.
    EXPECT_NEAR(model.at(name)[0], expected, 1e-4 * expected) << name;
  }
}

// Also from a length that ends within an epoch, by another number of ps.
TEST_F(InProcessClusterTest, AJobThatTrainsOnEqualsOneThatWasSoLong) {
  int ps = 1;
  for (const int steps : {7, 20}) {
    const Job job = SmallJob{.directory = directory_, .steps = steps}.Load();
    InProcessCluster cluster({.job = job, .ps = ps++, .workers = 1, .run_dir = run_dir_});
    cluster.StartAll();
    ASSERT_TRUE(cluster.WaitForCoordinator().ok());
    EXPECT_EQ(cluster.finished_steps().size(), steps == 7 ? 7u : 13u);
    ExpectSameBits(ReadModel(run_dir_), TrainAlone(job, steps));
  }
}

TEST_F(InProcessClusterTest, TrainsEveryStepOnceAndLearns) {
  const Job job = SmallJob{.directory = directory_, .epochs = 4}.Load();
  InProcessCluster cluster({.job = job, .ps = 2, .workers = 3, .run_dir = run_dir_});
  cluster.StartAll();
  ASSERT_TRUE(cluster.WaitForCoordinator().ok());
  EXPECT_THAT(cluster.WaitForWorkers(), testing::Each(WorkerSession::End::kJobDone));

  std::multiset<uint64_t> steps;
  for (const auto& finished : cluster.finished_steps()) steps.insert(finished.step);
  EXPECT_EQ(steps.size(), 4u * 13u);
  for (uint64_t step = 0; step < 4 * 13; ++step) EXPECT_EQ(steps.count(step), 1u) << step;

  const proto::StatusReply status = cluster.Status();
  ASSERT_EQ(status.history_size(), 4);
  for (const proto::EpochResult& epoch : status.history()) {
    EXPECT_TRUE(epoch.has_test_loss()) << epoch.epoch();
  }
  EXPECT_LT(status.history(3).loss(), status.history(0).loss());
  EXPECT_GT(status.history(3).test_metrics(0).value(), 0.9);
  EXPECT_EQ(status.last_checkpoint().step(), 4u * 13u);
}

// 16 MiB of variables, of which no stream may have more than 1 MiB waiting. A ps that sees the
// directory writes them there, one that does not sends them.
TEST_F(InProcessClusterTest, AModelLargerThanTheQueuesTrains) {
  BareFileSystem elsewhere;
  for (FileSystem* files : {RealFileSystem(), static_cast<FileSystem*>(&elsewhere)}) {
    const TemporaryDirectory directory;
    const std::string run_dir = directory / "run";
    const Job job =
        SmallJob{.directory = directory.path(),
                 .batch_size = 2,
                 .steps = 4,
                 .optimizer = R"({"class_name": "SGD", "config": {"learning_rate": 0.01}})",
                 .checkpoint = R"({"every_steps": 2, "keep": 2})",
                 .strategy = R"({"name": "async", "chunk_bytes": 65536})",
                 .units = 60000}
            .Load();
    InProcessCluster cluster(
        {.job = job,
         .run_dir = run_dir,
         .network = {.max_message_bytes = 1 << 20, .max_queued_bytes = 1 << 20},
         .ps_files = {files}});
    cluster.StartAll();
    const absl::Status over = cluster.WaitForCoordinator();
    ASSERT_TRUE(over.ok()) << over;
    EXPECT_THAT(cluster.WaitForWorkers(), testing::Each(WorkerSession::End::kJobDone));
    ExpectSameBits(ReadModel(run_dir), TrainAlone(job, 4));
  }
}

TEST_F(InProcessClusterTest, AStoppedJobResumesWhereItWas) {
  std::multiset<uint64_t> steps;
  uint64_t stopped_at = 0;
  {
    const Job job = SmallJob{.directory = directory_, .epochs = kEndless}.Load();
    InProcessCluster cluster({.job = job, .ps = 2, .workers = 2, .run_dir = run_dir_});
    cluster.StartAll();
    ASSERT_TRUE(cluster.WaitForStatus(
        [](const proto::StatusReply& status) { return status.steps_done() >= 20; }));
    cluster.StopCoordinator();
    EXPECT_TRUE(absl::IsCancelled(cluster.WaitForCoordinator()));
    stopped_at = cluster.Status().last_checkpoint().step();
    EXPECT_GE(stopped_at, 20u);
    for (const auto& finished : cluster.finished_steps()) steps.insert(finished.step);
  }
  ASSERT_EQ(steps.size(), stopped_at) << "the checkpoint has exactly the finished steps";
  const int epochs = static_cast<int>(stopped_at / 13) + 1;
  const Job job = SmallJob{.directory = directory_, .epochs = epochs}.Load();
  InProcessCluster cluster({.job = job, .ps = 3, .workers = 1, .run_dir = run_dir_});
  cluster.StartAll();
  ASSERT_TRUE(cluster.WaitForCoordinator().ok());
  for (const auto& finished : cluster.finished_steps()) steps.insert(finished.step);
  EXPECT_EQ(steps.size(), epochs * 13u);
  for (uint64_t step = 0; step < steps.size(); ++step) EXPECT_EQ(steps.count(step), 1u) << step;
  EXPECT_EQ(cluster.Status().history_size(), epochs);
}

// The rows of the others come and go by their streams; what is computed is the same.
TEST_F(InProcessClusterTest, OneOfThePsSeesTheDirectory) {
  BareFileSystem elsewhere;
  SmallJob small{.directory = directory_,
                 .steps = kEndless,
                 .optimizer = R"({"class_name": "Adam", "config": {"learning_rate": 0.01}})"};
  {
    InProcessCluster cluster({.job = small.Load(),
                              .ps = 2,
                              .workers = 1,
                              .run_dir = run_dir_,
                              .ps_files = {RealFileSystem(), &elsewhere}});
    cluster.StartAll();
    ASSERT_TRUE(cluster.WaitForStatus(
        [](const proto::StatusReply& status) { return status.steps_done() >= 10; }));
    cluster.StopCoordinator();
    ASSERT_TRUE(absl::IsCancelled(cluster.WaitForCoordinator()));
  }
  const auto stored = CheckpointStore(run_dir_ + "/checkpoints").List(nullptr);
  ASSERT_TRUE(stored.ok()) << stored.status();
  ASSERT_FALSE(stored->empty());
  const uint64_t stopped_at = stored->front().manifest.cut_step;
  EXPECT_GE(stopped_at, 10u);
  small.steps = static_cast<int>(stopped_at) + 50;
  const Job job = small.Load();
  InProcessCluster cluster({.job = job,
                            .ps = 3,
                            .workers = 1,
                            .run_dir = run_dir_,
                            .ps_files = {&elsewhere, &elsewhere, RealFileSystem()}});
  cluster.StartAll();
  ASSERT_TRUE(cluster.WaitForCoordinator().ok());
  EXPECT_EQ(cluster.finished_steps().size(), 50u);
  ExpectSameBits(ReadModel(run_dir_), TrainAlone(job, stopped_at + 50));
}

TEST_F(InProcessClusterTest, AFinishedJobIsLeftAsItIs) {
  const Job job = SmallJob{.directory = directory_, .epochs = 1}.Load();
  for (int run = 0; run < 2; ++run) {
    InProcessCluster cluster({.job = job, .ps = 1, .workers = 1, .run_dir = run_dir_});
    cluster.StartAll();
    ASSERT_TRUE(cluster.WaitForCoordinator().ok());
    EXPECT_EQ(cluster.finished_steps().size(), run == 0 ? 13u : 0u);
    EXPECT_THAT(cluster.WaitForWorkers(), testing::Each(WorkerSession::End::kJobDone));
  }
}

TEST_F(InProcessClusterTest, AWorkerThatLacksTheDataLeavesAndHarmsNobody) {
  const Job job = SmallJob{.directory = directory_, .epochs = kEndless}.Load();
  // Both workers read the same paths, so one with its own copy of the job's data is the
  // coordinator's job with the files gone after the first worker has opened them.
  InProcessCluster cluster({.job = job, .ps = 1, .workers = 2, .run_dir = run_dir_});
  cluster.StartPs(0);
  cluster.StartCoordinator();
  cluster.StartWorker(0);
  ASSERT_TRUE(cluster.WaitForStatus(
      [](const proto::StatusReply& status) { return status.steps_done() > 0; }));
  ASSERT_EQ(std::remove((directory_ + "/train-images.idx").c_str()), 0);
  cluster.StartWorker(1);
  EXPECT_EQ(cluster.WaitForWorker(1), WorkerSession::End::kFailed);
  const uint64_t done = cluster.Status().steps_done();
  EXPECT_TRUE(cluster.WaitForStatus(
      [done](const proto::StatusReply& status) { return status.steps_done() > done; }));
}

}  // namespace
}  // namespace shoal
