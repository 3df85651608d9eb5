#include "common/job/job_strategy.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "tests/common/job/job_loading_fixture.h"

namespace shoal {
namespace {

using nlohmann::json;
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

  EXPECT_EQ(ErrorWith("/strategy", {{"name", "local"}, {"fragments", 0}}),
            "$.strategy.fragments: is 0; must be an integer from 1 to 1024");
  EXPECT_EQ(ErrorWith("/strategy", {{"name", "async"}, {"fragments", 2}}),
            "$.strategy.fragments: is 2; must be absent under \"async\", where workers push "
            "gradients; is the strategy to be \"local\"?");
  EXPECT_EQ(
      ErrorWith("/strategy", {{"name", "local"}, {"fragments", 2}, {"gradients_per_update", 4}}),
      "$.strategy.fragments: is 2; must be absent with $.strategy.gradients_per_update, where all "
      "of a step is of one version");
  EXPECT_EQ(ErrorWith("/strategy", {{"name", "local"}, {"fragments", 2}, {"max_staleness", 4}}),
            "$.strategy.fragments: is 2; must be absent with $.strategy.max_staleness, where a "
            "step begins with values that are pulled");
  EXPECT_EQ(
      ErrorWith("/strategy",
                {{"name", "local"},
                 {"fragments", 2},
                 {"outer_optimizer", {{"class_name", "SGD"}, {"config", {{"clipnorm", 1}}}}}}),
      "$.strategy.outer_optimizer: clips differences, which with $.strategy.fragments are never "
      "there as a whole; leave the clipping to $.optimizer");
}

TEST_F(JobStrategyTest, WhatCannotBeInStepsOfSeveralBatchesIsNamed) {
  EXPECT_EQ(ErrorWith("/strategy", {{"name", "local"}, {"batches_per_step", 0}}),
            "$.strategy.batches_per_step: is 0; must be an integer from 1 to 1048576");
  EXPECT_EQ(ErrorWith("/strategy", {{"name", "sync"}, {"batches_per_step", 4}}),
            "$.strategy.batches_per_step: is 4; must be absent under \"sync\", where workers push "
            "gradients; is the strategy to be \"local\"?");
  EXPECT_THAT(ErrorWith("/strategy", {{"outer_optimizer", "sgd"}}),
              HasSubstr("$.strategy.outer_optimizer: is \"sgd\"; must be absent under \"async\""));
  EXPECT_THAT(ErrorWith("/strategy", {{"name", "local"}, {"outer_optimizer", "sdg"}}),
              HasSubstr("$.strategy.outer_optimizer: is \"sdg\", an optimizer that Shoal lacks; "
                        "did you mean \"SGD\"?"));
  EXPECT_EQ(ErrorWith("/strategy", {{"name", "local"}, {"outer_optimizer", "ftrl"}}),
            "$.strategy.outer_optimizer: computes the variables anew from its sums, and would lose "
            "the values that they begin with; choose another, \"SGD\" say");
  EXPECT_THAT(ErrorWith("/strategy", {{"name", "local"}, {"learning_rate_by_staleness", true}}),
              HasSubstr("must be absent under \"local\", where the ps apply an outer optimizer"));
  EXPECT_THAT(ErrorWith("/strategy",
                        {{"name", "local"}, {"gradients_per_update", 4}, {"max_staleness", 2}}),
              HasSubstr("$.strategy.max_staleness: is 2; must be absent under \"local\" with "
                        "$.strategy.gradients_per_update, where no gradient is of old parameters"));
  json root = MinimalJob();
  root["strategy"] = {{"name", "local"}, {"batches_per_step", 1 << 20}};
  root["batch_size"] = 1 << 13;
  EXPECT_THAT(LoadError(root), HasSubstr("a step may have 4294967295 examples"));
  root = MinimalJob();
  root["strategy"] = "local";
  root["optimizer"] = {{"class_name", "SGD"}, {"config", {{"use_ema", true}}}};
  EXPECT_THAT(LoadError(root), HasSubstr("$.optimizer.config.use_ema: is true, but under"));
}

TEST_F(JobStrategyTest, TheOuterMomentumIsResolvedFromTheWorkersThatAreListed) {
  Job job;
  job.strategy.name = "local";
  EXPECT_TRUE(LeavesToWorkers(job));
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
              HasSubstr("$.strategy.outer_optimizer is missing, and the cluster spec lists no"));
}

// Of the optimizer that the ps apply.
double OptionOfPs(const Job& job, const char* option) {
  return json::parse((*MakePsOptimizer(job))->config())["config"][option];
}

TEST_F(JobStrategyTest, WhatGoesByWorkersIsResolvedFromThoseThatAreListed) {
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
  EXPECT_THAT(std::string(ResolveStrategy(0, &later).message()),
              HasSubstr("$.strategy.workers is missing, and the cluster spec lists no workers"));
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

TEST_F(JobStrategyTest, WhatCannotGoByWorkersIsNamed) {
  EXPECT_EQ(ErrorWith("/strategy", {{"scale_learning_rate", "cubic"}}),
            "$.strategy.scale_learning_rate: is \"cubic\"; must be \"linear\" or \"sqrt\"");
  EXPECT_EQ(ErrorWith("/strategy", {{"workers", 4}}),
            "$.strategy.workers: is 4; must be absent without \"scale_learning_rate\", "
            "\"momentum_by_workers\" and \"warmup_steps\", which go by it");
  EXPECT_EQ(ErrorWith("/strategy", {{"momentum_by_workers", true}}),
            "$.strategy.momentum_by_workers: is true, but $.optimizer, \"SGD\", has no momentum; "
            "leave the field out, or give one that has");
  EXPECT_EQ(ErrorWith("/strategy", {{"name", "sync"}, {"worker_momentum", 0.9}}),
            "$.strategy.worker_momentum: is 0.9; must be absent under \"sync\": it is an option of "
            "\"async\"");
  EXPECT_THAT(ErrorWith("/strategy", {{"name", "sync"}, {"warmup_steps", 9}}),
              HasSubstr("must be absent under \"sync\" without \"scale_learning_rate\""));
  EXPECT_THAT(ErrorWith("/strategy", {{"name", "local"}, {"scale_learning_rate", "linear"}}),
              HasSubstr("must be absent under \"local\", where a schedule of the outer optimizer"));
  EXPECT_EQ(ErrorWith("/strategy", {{"look_ahead", 3}}),
            "$.strategy.look_ahead: is 3, but $.optimizer is \"SGD\", whose next updates are not "
            "known from its last: SGD with momentum, Adam and AdamW look ahead");
  json root = MinimalJob();
  root["strategy"] = {{"worker_momentum", 0.9}};
  EXPECT_EQ(Load(root).strategy.worker_momentum, 0.9);
  root["optimizer"] = "adam";
  EXPECT_THAT(LoadError(root),
              HasSubstr("$.strategy.worker_momentum: is 0.9, but $.optimizer is \"Adam\"; what "
                        "workers push with it is for plain SGD, without momentum"));
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

TEST_F(JobStrategyTest, WhatIsOfAnotherStrategyIsNamed) {
  EXPECT_EQ(
      ErrorWith("/strategy", {{"name", "sync"}, {"max_staleness", 4}}),
      "$.strategy.max_staleness: is 4; must be absent under \"sync\", where no gradient is of "
      "old parameters");
  EXPECT_EQ(ErrorWith("/strategy", {{"name", "sync"}, {"learning_rate_by_staleness", true}}),
            "$.strategy.learning_rate_by_staleness: is true; must be absent under \"sync\", where "
            "no gradient is of old parameters");
  EXPECT_EQ(ErrorWith("/strategy", {{"gradients_per_update", 4}}),
            "$.strategy.gradients_per_update: is 4; must be absent under \"async\", where each "
            "gradient is an update; is the strategy to be \"sync\"?");
  EXPECT_EQ(
      ErrorWith("/strategy", {{"name", "sync"}, {"window_steps", 5}, {"gradients_per_update", 6}}),
      "$.strategy.gradients_per_update: is 6; must be at most $.strategy.window_steps, 5, as "
      "a round lies in the window");
  json root = MinimalJob();
  root["strategy"] = "sync";
  root["compression"] = {{"push", "top_k"}};
  EXPECT_THAT(LoadError(root),
              HasSubstr("$.compression.push: is \"top_k\", which adds what it left out of a step's "
                        "gradient to the worker's next one; under the strategy sync"));
  root["compression"] = {{"push", "int8"}};
  Load(root);
}

TEST_F(JobStrategyTest, ALearningRateByStalenessIsNamedWhereItCannotBe) {
  EXPECT_EQ(ErrorWith("/strategy", {{"learning_rate_by_staleness", 1}}),
            "$.strategy.learning_rate_by_staleness: is 1; must be true or false");
  EXPECT_THAT(ErrorWith("/strategy", {{"learning_rate_by_stalness", true}}),
              HasSubstr("did you mean \"learning_rate_by_staleness\"?"));
  json root = MinimalJob();
  root["strategy"] = {{"learning_rate_by_staleness", true}};
  root["optimizer"] = "ftrl";
  EXPECT_THAT(LoadError(root),
              HasSubstr("$.strategy.learning_rate_by_staleness: is true, but $.optimizer is "
                        "\"Ftrl\", which computes the variables anew in each update"));
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
              HasSubstr("$.strategy.gradients_per_update is 5, but an epoch has only 4 steps"));
  job = sync;
  EXPECT_THAT(std::string(ResolveStrategy(0, &job).message()), HasSubstr("lists no workers"));
  EXPECT_THAT(std::string(ResolveStrategy(9, &job).message()),
              HasSubstr("lists 9 workers; must be at most $.strategy.window_steps, 8"));
}

}  // namespace
}  // namespace shoal
