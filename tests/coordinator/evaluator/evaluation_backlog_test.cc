#include "coordinator/evaluator/evaluation_backlog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// Of epochs of 10 steps.
StoredCheckpoint CheckpointAt(uint64_t step) {
  StoredCheckpoint stored;
  stored.directory = "/run/step-" + std::to_string(step);
  stored.manifest.cut_step = step;
  stored.manifest.epoch = (step - 1) / 10;
  stored.manifest.epoch_position = (step - 1) % 10 + 1;
  stored.manifest.training_examples = 10;
  return stored;
}

class EvaluationBacklogTest : public testing::Test {
 protected:
  // Returns the steps in the order in which they are sent, if each is evaluated.
  std::vector<uint64_t> Order(uint64_t not_from = 1000) {
    std::vector<uint64_t> steps;
    EvaluationBacklog left = backlog_;
    while (const auto next = left.Next([not_from](const StoredCheckpoint& each) {
      return each.manifest.cut_step < not_from;
    })) {
      steps.push_back(next->manifest.cut_step);
      left.Remove(next->directory);
    }
    return steps;
  }
  EvaluationBacklog backlog_{4};
};

TEST_F(EvaluationBacklogTest, EndsOfEpochsComeFirstAndTheNewestOfThem) {
  for (const uint64_t step : {10, 15, 20, 25}) backlog_.Add(CheckpointAt(step));
  EXPECT_THAT(Order(), ElementsAre(20, 10, 25, 15));
  EXPECT_THAT(Order(20), ElementsAre(10, 15));
}

TEST_F(EvaluationBacklogTest, ARemovedCheckpointIsForgotten) {
  for (const uint64_t step : {10, 15, 20, 25})
    EXPECT_THAT(backlog_.Add(CheckpointAt(step)), IsEmpty());
  const auto passed_over = backlog_.Add(CheckpointAt(30));
  ASSERT_THAT(passed_over, SizeIs(1));
  EXPECT_EQ(passed_over[0].manifest.cut_step, 10u);
  EXPECT_FALSE(backlog_.Has(CheckpointAt(10).directory));
  EXPECT_THAT(Order(), ElementsAre(30, 20, 25, 15));
}

TEST_F(EvaluationBacklogTest, ACheckpointThatCrashesEvaluatorsIsTriedThreeTimes) {
  backlog_.Add(CheckpointAt(10));
  EXPECT_TRUE(backlog_.Failed(CheckpointAt(10).directory));
  EXPECT_TRUE(backlog_.Failed(CheckpointAt(10).directory));
  EXPECT_TRUE(backlog_.Has(CheckpointAt(10).directory));
  EXPECT_FALSE(backlog_.Failed(CheckpointAt(10).directory));
  EXPECT_FALSE(backlog_.Has(CheckpointAt(10).directory));
  EXPECT_FALSE(backlog_.Failed(CheckpointAt(10).directory)) << "it is not there";
}

}  // namespace
}  // namespace shoal
