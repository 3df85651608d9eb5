#include "tests/simulation/workload/draw_workload.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "common/job/job_strategy.h"
#include "common/model/keras_model.h"
#include "tests/simulation/workload/draw_job.h"
#include "tests/simulation/workload/draw_model.h"

namespace shoal {
namespace {

TEST(WorkloadTest, SeedsDrawEveryKindOfFault) {
  std::set<Fault::Kind> kinds;
  int without = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Workload workload = DrawWorkload(seed);
    without += workload.faults.empty() ? 1 : 0;
    for (const Fault& fault : workload.faults) kinds.insert(fault.kind);
  }
  EXPECT_EQ(kinds.size(), static_cast<size_t>(Fault::Kind::kNewCertificates) + 1);
  EXPECT_GT(without, 10);
}

TEST(WorkloadTest, SeedsReplaceCertificates) {
  int replaced = 0, alone = 0, end_old_streams = 0, of_all = 0;
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    const Workload workload = DrawWorkload(seed);
    std::set<std::string> tasks;
    bool ends = false;
    for (const Fault& fault : workload.faults) {
      if (fault.kind != Fault::Kind::kNewCertificates) continue;
      tasks.insert(fault.task);
      ends = ends || fault.duration > Time{};
    }
    if (tasks.empty()) continue;
    ++replaced;
    alone += workload.OnlyCertificates() ? 1 : 0;
    end_old_streams += ends ? 1 : 0;
    of_all += tasks.size() == static_cast<size_t>(1 + workload.ps + workload.workers) ? 1 : 0;
    // Its seeds lose no worker.
    EXPECT_FALSE(ends && workload.orderly && seed % 2 == 0) << seed;
  }
  EXPECT_GT(replaced, 70);
  EXPECT_LT(replaced, 130);
  EXPECT_GT(alone, 8);
  EXPECT_GT(end_old_streams, 20);
  EXPECT_GT(of_all, 30);
}

TEST(WorkloadTest, SeedsDrawVariablesOfEveryUpdateRule) {
  std::map<UpdateRule, int> models;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const absl::StatusOr<KerasModel> model = ParseKerasModel(DrawWorkload(seed).job.model_json);
    ASSERT_TRUE(model.ok()) << model.status();
    std::set<UpdateRule> rules;
    for (const Variable& variable : model->graph.variables()) rules.insert(variable.rule);
    for (const UpdateRule rule : rules) ++models[rule];
  }
  EXPECT_EQ(models[UpdateRule::kOptimizer], 200);
  EXPECT_GT(models[UpdateRule::kMovingAverage], 40);
  EXPECT_GT(models[UpdateRule::kFrozen], 40);
}

TEST(WorkloadTest, SeedsDrawTrainingsThatCallbacksEnd) {
  int with_callbacks = 0, early = 0, restored = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Workload workload = DrawWorkload(seed);
    const Workload::Ending& ending = workload.ending;
    const uint64_t all = workload.plan().total_steps();
    with_callbacks += workload.job.callbacks.empty() ? 0 : 1;
    early += ending.last_step < all ? 1 : 0;
    restored += ending.result_step < ending.last_step ? 1 : 0;
  }
  EXPECT_GT(with_callbacks, 30);
  EXPECT_GT(early, 15);
  EXPECT_GT(restored, 10);
}

TEST(WorkloadTest, SeedsDrawJobsThatTakeAnothersPlace) {
  int longer = 0, others = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Workload workload = DrawWorkload(seed);
    if (workload.next == nullptr) continue;
    const Workload& next = *workload.next;
    EXPECT_NE(next.job.Fingerprint(), workload.job.Fingerprint());
    longer += next.run_dir == workload.run_dir && next.job.epochs > workload.job.epochs ? 1 : 0;
    others += next.run_dir != workload.run_dir && next.job.seed != workload.job.seed ? 1 : 0;
  }
  EXPECT_GT(longer, 5);
  EXPECT_GT(others, 15);
}

TEST(WorkloadTest, SeedsDrawEveryStrategy) {
  int bounded = 0, rounds_of_several = 0, speculates = 0, rates_by_staleness = 0, local = 0,
      local_in_rounds = 0, fragments = 0, delayed = 0, scaled = 0, warm_ups = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Workload workload = DrawWorkload(seed);
    const Job::Strategy& strategy = workload.job.strategy;
    bounded += strategy.max_staleness.has_value() ? 1 : 0;
    rounds_of_several += strategy.gradients_per_update > 2 ? 1 : 0;
    speculates += strategy.speculate_after > 0 ? 1 : 0;
    rates_by_staleness += strategy.learning_rate_by_staleness ? 1 : 0;
    scaled += strategy.scale_learning_rate.empty() ? 0 : 1;
    warm_ups += strategy.warmup_steps > 0 ? 1 : 0;
    EXPECT_EQ(strategy.in_rounds(), strategy.gradients_per_update > 0);
    local += strategy.local() && strategy.batches_per_step > 1 ? 1 : 0;
    local_in_rounds += strategy.local() && strategy.in_rounds() ? 1 : 0;
    fragments += strategy.fragments > 1 ? 1 : 0;
    delayed += workload.momentum_every > 1 ? 1 : 0;
    EXPECT_TRUE(CheckRounds(workload.job, workload.plan().steps_per_epoch()).ok());
  }
  EXPECT_GT(bounded, 20);
  EXPECT_GT(rounds_of_several, 20) << "of fewer than three the sum shows no order";
  EXPECT_GT(speculates, 20);
  EXPECT_GT(rates_by_staleness, 10);
  EXPECT_GT(scaled, 5);
  EXPECT_GT(warm_ups, 10);
  EXPECT_GT(local, 20);
  EXPECT_GT(local_in_rounds, 5);
  EXPECT_GT(fragments, 5);
  EXPECT_GT(delayed, 10);
}

TEST(WorkloadTest, SeedsDrawStepsThatComeToNothing) {
  int overflowing = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Workload workload = DrawWorkload(seed);
    if (workload.overflows_one_in == 0) continue;
    ++overflowing;
    EXPECT_FALSE(workload.job.strategy.in_rounds() || workload.job.strategy.local());
  }
  EXPECT_GT(overflowing, 15);
}

// GCC and clang evaluate arguments in different orders. A seed means the same for both.
TEST(WorkloadTest, TheOrderOfDrawsDependsOnNoCompiler) {
  struct Drawn {
    bool scale, center, trainable;
  };
  const std::map<uint64_t, Drawn> expected = {
      {3, {true, false, true}}, {11, {false, true, false}}, {26, {false, false, false}}};
  for (const auto& [seed, drawn] : expected) {
    Random random(seed);
    const auto model = nlohmann::json::parse(DrawModel(random, seed));
    bool found = false;
    for (const auto& layer : model["config"]["layers"]) {
      if (layer["config"]["name"] != "norm") continue;
      found = true;
      EXPECT_EQ(layer["config"]["scale"], drawn.scale) << seed;
      EXPECT_EQ(layer["config"]["center"], drawn.center) << seed;
      EXPECT_EQ(layer["config"]["trainable"], drawn.trainable) << seed;
    }
    EXPECT_TRUE(found) << seed;
  }
}

TEST(WorkloadTest, CallbacksDrawTheRestoreBeforeThePatience) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Workload workload;
    workload.test_examples = 1;
    Random random(seed), again(seed);
    DrawCallbacks(random, &workload);
    for (int i = 0; i < 3; ++i) again.Next();  // examples, epochs or steps, and their number
    if (again.OneIn(4)) continue;              // no early stopping
    const bool restores_best = again.Coin();
    const uint64_t patience = again.Below(4);
    EXPECT_EQ(workload.job.callbacks.front().restores_best, restores_best) << seed;
    EXPECT_EQ(workload.job.callbacks.front().monitor.patience, patience) << seed;
  }
}

}  // namespace
}  // namespace shoal
