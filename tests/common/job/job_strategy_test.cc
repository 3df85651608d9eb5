#include "common/job/job_strategy.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "tests/common/job/job_loading_fixture.h"

namespace shoal {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

class JobStrategyTest : public JobLoadingTest {};

TEST_F(JobStrategyTest, SyncHasRounds) {
  json root = MinimalJob();
  root["strategy"] = "sync";
  EXPECT_TRUE(Load(root).strategy.sync());
  EXPECT_EQ(Load(root).strategy.gradients_per_update, 0u) << "as many as workers are listed";
  EXPECT_THAT(Load(root).ResolvedText(), testing::Not(HasSubstr("gradients_per_update")));
  root["strategy"] = {{"name", "sync"}, {"gradients_per_update", 6}, {"speculate_after", 3}};
  const Job job = Load(root);
  EXPECT_EQ(job.strategy.gradients_per_update, 6u);
  const auto again = ParseResolvedJob(job.ResolvedText(), "job.json");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->ResolvedText(), job.ResolvedText());
}

TEST_F(JobStrategyTest, LocalHasStepsOfSeveralBatches) {
  json root = MinimalJob();
  root["strategy"] = "local";
  Job job = Load(root);
  EXPECT_TRUE(job.strategy.local());
  EXPECT_FALSE(job.strategy.in_rounds());
  EXPECT_EQ(job.strategy.batches_per_step, 50u);
  EXPECT_EQ(job.strategy.lease_timeout_seconds, 500);
  EXPECT_EQ(job.strategy.outer_optimizer, "") << "its momentum follows the number of workers";
  root["strategy"] = {{"name", "local"}, {"batches_per_step", 2}, {"gradients_per_update", 3}};
  job = Load(root);
  EXPECT_TRUE(job.strategy.in_rounds());
  EXPECT_EQ(job.strategy.lease_timeout_seconds, 60);
  const auto plain_mean = *MakePsOptimizer(job);
  EXPECT_EQ(plain_mean->LearningRate(1), 1);
  EXPECT_EQ(plain_mean->slot_names().size(), 0u);
  const auto again = ParseResolvedJob(job.ResolvedText(), "job.json");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->ResolvedText(), job.ResolvedText());
  const BatchPlan plan = BatchPlanOf(job, 100);
  EXPECT_EQ(plan.steps().batch_size(), 2u * job.batch_size);
  root["strategy"]["outer_optimizer"] = "adam";
  EXPECT_EQ((*MakePsOptimizer(Load(root)))->slot_names().size(), 2u);
}

TEST_F(JobStrategyTest, FragmentsAreOfLocalStepsThatAreAppliedWhenTheyCome) {
  json root = MinimalJob();
  root["strategy"] = "local";
  EXPECT_EQ(Load(root).strategy.fragments, 1u);
  EXPECT_THAT(Load(root).ResolvedText(), testing::Not(HasSubstr("fragments")))
      << "runs of before go on";
  root["strategy"] = {{"name", "local"}, {"fragments", 4}};
  const Job job = Load(root);
  EXPECT_EQ(job.strategy.fragments, 4u);
  EXPECT_EQ(ParseResolvedJob(job.ResolvedText(), "job.json")->strategy.fragments, 4u);

  EXPECT_THAT(ErrorWith("/strategy", {{"name", "local"}, {"fragments", 0}}),
              HasSubstr("$.strategy.fragments: is 0"));
  EXPECT_THAT(ErrorWith("/strategy", {{"name", "async"}, {"fragments", 2}}),
              HasSubstr("$.strategy.fragments: is 2"));
  EXPECT_THAT(
      ErrorWith("/strategy", {{"name", "local"}, {"fragments", 2}, {"gradients_per_update", 4}}),
      HasSubstr("$.strategy.fragments: is 2"));
  EXPECT_THAT(ErrorWith("/strategy", {{"name", "local"}, {"fragments", 2}, {"max_staleness", 4}}),
              HasSubstr("$.strategy.fragments: is 2"));
  EXPECT_THAT(ErrorWith("/strategy", {{"name", "local"},
                                      {"fragments", 2},
                                      {"outer_optimizer",
                                       {{"class_name", "SGD"}, {"config", {{"clipnorm", 1}}}}}}),
              HasSubstr("$.strategy.outer_optimizer: "));
}

TEST_F(JobStrategyTest, AnOptionUnfitForStepsOfSeveralBatchesIsNamed) {
  EXPECT_THAT(ErrorWith("/strategy", {{"name", "local"}, {"batches_per_step", 0}}),
              HasSubstr("$.strategy.batches_per_step: is 0"));
  EXPECT_THAT(ErrorWith("/strategy", {{"name", "sync"}, {"batches_per_step", 4}}),
              HasSubstr("$.strategy.batches_per_step: is 4"));
  EXPECT_THAT(ErrorWith("/strategy", {{"outer_optimizer", "sgd"}}),
              HasSubstr("$.strategy.outer_optimizer: is \"sgd\""));
  EXPECT_THAT(ErrorWith("/strategy", {{"name", "local"}, {"outer_optimizer", "sdg"}}),
              AllOf(HasSubstr("$.strategy.outer_optimizer: is \"sdg\""), HasSubstr("\"SGD\"")));
  EXPECT_THAT(ErrorWith("/strategy", {{"name", "local"}, {"outer_optimizer", "ftrl"}}),
              HasSubstr("$.strategy.outer_optimizer: "));
  EXPECT_THAT(ErrorWith("/strategy", {{"name", "local"}, {"learning_rate_by_staleness", true}}),
              HasSubstr("$.strategy.learning_rate_by_staleness: is true"));
  EXPECT_THAT(ErrorWith("/strategy",
                        {{"name", "local"}, {"gradients_per_update", 4}, {"max_staleness", 2}}),
              HasSubstr("$.strategy.max_staleness: is 2"));
  json root = MinimalJob();
  root["strategy"] = {{"name", "local"}, {"batches_per_step", 1 << 20}};
  root["batch_size"] = 1 << 13;
  EXPECT_THAT(LoadError(root),
              AllOf(HasSubstr("$.strategy.batches_per_step: is 1048576"), HasSubstr("4294967295")));
  root = MinimalJob();
  root["strategy"] = "local";
  root["optimizer"] = {{"class_name", "SGD"}, {"config", {{"use_ema", true}}}};
  EXPECT_THAT(LoadError(root), HasSubstr("$.optimizer.config.use_ema: is true"));
}

TEST_F(JobStrategyTest, TheOuterMomentumIsResolvedFromTheWorkersThatAreListed) {
  Job job;
  job.strategy.name = "local";
  EXPECT_TRUE(DependsOnWorkerCount(job));
  const Job unresolved = job;
  ASSERT_TRUE(ResolveStrategy(3, &job).ok());
  EXPECT_THAT(job.strategy.outer_optimizer, HasSubstr(R"("momentum_every":6)"));
  EXPECT_THAT(job.strategy.outer_optimizer, HasSubstr(R"("learning_rate":0.7)"));
  EXPECT_EQ(job.strategy.gradients_per_update, 0u);
  Job later = unresolved;
  TakeResolvedFrom(job, &later);
  ASSERT_TRUE(ResolveStrategy(8, &later).ok());
  EXPECT_EQ(later.strategy.outer_optimizer, job.strategy.outer_optimizer) << "it stays";
  Job in_rounds = job;
  in_rounds.strategy.gradients_per_update = 4;
  later = unresolved;
  TakeResolvedFrom(in_rounds, &later);
  EXPECT_EQ(later.strategy.gradients_per_update, 0u) << "a run in rounds is another run";
  later = unresolved;
  EXPECT_THAT(std::string(ResolveStrategy(0, &later).message()),
              HasSubstr("$.strategy.outer_optimizer "));
}

// Of the optimizer that the ps apply.
double OptionOfPs(const Job& job, const char* option) {
  return json::parse((*MakePsOptimizer(job))->config())["config"][option];
}

TEST_F(JobStrategyTest, OptionsByWorkersAreResolvedFromTheListedOnes) {
  Job job;
  ASSERT_TRUE(ResolveStrategy(4, &job).ok());
  EXPECT_EQ(job.strategy.workers, 0u) << "nothing goes by them";
  job.optimizer = R"({"class_name": "SGD", "config": {"learning_rate": 0.5, "momentum": 0.9}})";
  job.strategy.momentum_by_workers = true;
  job.strategy.scale_learning_rate = "sqrt";
  job.strategy.warmup_steps = 7;
  const Job unresolved = job;
  ASSERT_TRUE(ResolveStrategy(4, &job).ok());
  EXPECT_EQ(job.strategy.workers, 4u);
  EXPECT_EQ(RateScaleOf(job).factor, 2);
  EXPECT_EQ(RateScaleOf(job).warmup_updates, 7u);
  Job later = unresolved;
  TakeResolvedFrom(job, &later);
  ASSERT_TRUE(ResolveStrategy(9, &later).ok());
  EXPECT_EQ(later.ResolvedText(), job.ResolvedText()) << "it stays";
  later = unresolved;
  EXPECT_THAT(std::string(ResolveStrategy(0, &later).message()), HasSubstr("$.strategy.workers "));
  for (const auto& [workers, momentum] :
       {std::pair{1, 0.9}, {2, 0.9}, {4, 0.7}, {8, 0.5}, {1000, 0.1}}) {
    job.strategy.workers = workers;
    EXPECT_NEAR(OptionOfPs(job, "momentum"), momentum, 1e-9) << workers;
  }
  for (const char* optimizer : {"adam", "lion", "lamb", "nadam", "adamax"}) {
    job.optimizer = (*MakeOptimizer(json(optimizer).dump()))->config();
    EXPECT_NEAR(OptionOfPs(job, "beta_1"), 0.1, 1e-9) << optimizer;
  }
}

TEST_F(JobStrategyTest, TheLearningRateOfRoundsScalesWithTheirGradients) {
  Job job;
  job.strategy.name = "sync";
  job.strategy.gradients_per_update = 8;
  job.strategy.scale_learning_rate = "linear";
  job.strategy.warmup_steps = 50;
  EXPECT_EQ(RateScaleOf(job).factor, 8);
  EXPECT_EQ(RateScaleOf(job).warmup_updates, 7u) << "rounds in which 50 steps are";
}

TEST_F(JobStrategyTest, AnOptionThatCannotGoByWorkersIsNamed) {
  EXPECT_THAT(ErrorWith("/strategy", {{"scale_learning_rate", "cubic"}}),
              HasSubstr("$.strategy.scale_learning_rate: is \"cubic\""));
  EXPECT_THAT(ErrorWith("/strategy", {{"workers", 4}}), HasSubstr("$.strategy.workers: is 4"));
  EXPECT_THAT(ErrorWith("/strategy", {{"momentum_by_workers", true}}),
              HasSubstr("$.strategy.momentum_by_workers: is true"));
  EXPECT_THAT(ErrorWith("/strategy", {{"name", "sync"}, {"worker_momentum", 0.9}}),
              HasSubstr("$.strategy.worker_momentum: is 0.9"));
  EXPECT_THAT(ErrorWith("/strategy", {{"name", "sync"}, {"warmup_steps", 9}}),
              HasSubstr("$.strategy.warmup_steps: is 9"));
  EXPECT_THAT(ErrorWith("/strategy", {{"name", "local"}, {"scale_learning_rate", "linear"}}),
              HasSubstr("$.strategy.scale_learning_rate: is \"linear\""));
  EXPECT_THAT(ErrorWith("/strategy", {{"look_ahead", 3}}),
              HasSubstr("$.strategy.look_ahead: is 3"));
  json root = MinimalJob();
  root["strategy"] = {{"worker_momentum", 0.9}};
  EXPECT_EQ(Load(root).strategy.worker_momentum, 0.9);
  root["optimizer"] = "adam";
  EXPECT_THAT(LoadError(root), HasSubstr("$.strategy.worker_momentum: is 0.9"));
  root["strategy"] = {{"momentum_by_workers", true}, {"workers", 4}};
  EXPECT_NEAR(OptionOfPs(Load(root), "beta_1"), 0.7, 1e-9);
}

TEST_F(JobStrategyTest, AMovingAverageTakesOneSampleOfAllBatchesOfAStep) {
  Job job;
  job.strategy.batches_per_step = 3;
  const std::vector<Variable> variables = VariablesOfPs(
      job,
      {{.name = "kernel"}, {.name = "mean", .rule = UpdateRule::kMovingAverage, .momentum = 0.5}});
  EXPECT_EQ(variables[0].momentum, 0);
  EXPECT_DOUBLE_EQ(variables[1].momentum, 0.125);
}

TEST_F(JobStrategyTest, AnOptionOfAnotherStrategyIsNamed) {
  EXPECT_THAT(ErrorWith("/strategy", {{"name", "sync"}, {"max_staleness", 4}}),
              HasSubstr("$.strategy.max_staleness: is 4"));
  EXPECT_THAT(ErrorWith("/strategy", {{"name", "sync"}, {"learning_rate_by_staleness", true}}),
              HasSubstr("$.strategy.learning_rate_by_staleness: is true"));
  EXPECT_THAT(ErrorWith("/strategy", {{"gradients_per_update", 4}}),
              HasSubstr("$.strategy.gradients_per_update: is 4"));
  EXPECT_THAT(
      ErrorWith("/strategy", {{"name", "sync"}, {"window_steps", 5}, {"gradients_per_update", 6}}),
      HasSubstr("$.strategy.gradients_per_update: is 6"));
  json root = MinimalJob();
  root["strategy"] = "sync";
  root["compression"] = {{"push", "top_k"}};
  EXPECT_THAT(LoadError(root), HasSubstr("$.compression.push: is \"top_k\""));
  root["compression"] = {{"push", "int8"}};
  Load(root);
}

TEST_F(JobStrategyTest, ALearningRateByStalenessIsNamedWhereItCannotBe) {
  EXPECT_THAT(ErrorWith("/strategy", {{"learning_rate_by_staleness", 1}}),
              HasSubstr("$.strategy.learning_rate_by_staleness: is 1"));
  EXPECT_THAT(ErrorWith("/strategy", {{"learning_rate_by_stalness", true}}),
              HasSubstr("\"learning_rate_by_staleness\""));
  json root = MinimalJob();
  root["strategy"] = {{"learning_rate_by_staleness", true}};
  root["optimizer"] = "ftrl";
  EXPECT_THAT(LoadError(root), AllOf(HasSubstr("$.strategy.learning_rate_by_staleness: is true"),
                                     HasSubstr("\"Ftrl\"")));
  root["strategy"] = {{"learning_rate_by_staleness", false}};
  EXPECT_THAT(Load(root).ResolvedText(), testing::Not(HasSubstr("by_staleness")));
}

TEST_F(JobStrategyTest, RoundsAreResolvedFromTheWorkersThatAreListed) {
  Job job;
  EXPECT_TRUE(ResolveStrategy(5, &job).ok());
  EXPECT_EQ(job.strategy.gradients_per_update, 0u) << "async has none";
  EXPECT_TRUE(CheckRounds(job, 1).ok());
  EXPECT_THAT(job.ResolvedText(), testing::Not(HasSubstr("gradients_per_update")));
  job.strategy.name = "sync";
  job.strategy.window_steps = 8;
  const Job sync = job;
  EXPECT_TRUE(ResolveStrategy(5, &job).ok());
  EXPECT_EQ(job.strategy.gradients_per_update, 5u);
  EXPECT_THAT(job.ResolvedText(), HasSubstr(R"("gradients_per_update":5)"));
  EXPECT_TRUE(ResolveStrategy(3, &job).ok());
  EXPECT_EQ(job.strategy.gradients_per_update, 5u) << "it says so already";
  EXPECT_TRUE(CheckRounds(job, 5).ok());
  EXPECT_THAT(std::string(CheckRounds(job, 4).message()),
              AllOf(HasSubstr("$.strategy.gradients_per_update is 5"), HasSubstr(" 4 steps")));
  job = sync;
  EXPECT_THAT(std::string(ResolveStrategy(0, &job).message()),
              HasSubstr("$.strategy.gradients_per_update "));
  EXPECT_THAT(std::string(ResolveStrategy(9, &job).message()),
              AllOf(HasSubstr(" 9 workers"), HasSubstr("$.strategy.window_steps, 8")));
}

}  // namespace
}  // namespace shoal
