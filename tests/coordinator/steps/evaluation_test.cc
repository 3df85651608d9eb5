#include "coordinator/steps/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coordinator/steps/dispatched_workers.h"

namespace shoal {
namespace {

using testing::ElementsAre;

TEST(EvaluationTest, MeansAreOverExamplesNotOverBatches) {
  Evaluation evaluation(/*epoch=*/3, /*cut_step=*/52, /*batches=*/2, /*metric_sum_count=*/2,
                        kTimeout);
  EXPECT_EQ(evaluation.epoch(), 3u);
  EXPECT_EQ(evaluation.cut_step(), 52u);
  EXPECT_EQ(evaluation.batches().Take(1, 5, kNow).count, 2u);
  evaluation.Done(1, 0, 30, 60.0, {15, 3}, kNow);
  EXPECT_FALSE(evaluation.finished());
  evaluation.Done(1, 1, 10, 40.0, {1, 5}, kNow);
  EXPECT_TRUE(evaluation.finished());
  EXPECT_DOUBLE_EQ(evaluation.loss(), 2.5);
  EXPECT_THAT(evaluation.metric_sums(), ElementsAre(16, 8));
  EXPECT_EQ(evaluation.examples(), 40u);
}

// Of numbers of which a sum depends on the order.
TEST(EvaluationTest, TheResultIsTheSameInWhicheverOrderBatchesAreDone) {
  const std::vector<double> losses = {1e16, 3.14, -1e16, 2.71, 1e-3, 7};
  const auto loss_in_order = [&losses](const std::vector<uint64_t>& order) {
    Evaluation evaluation(0, 13, losses.size(), 1, kTimeout);
    evaluation.batches().Take(1, losses.size(), kNow);
    for (const uint64_t batch : order)
      evaluation.Done(1, batch, 1, losses[batch], {losses[batch]}, kNow);
    EXPECT_TRUE(evaluation.finished());
    EXPECT_EQ(evaluation.metric_sums()[0] / 6, evaluation.loss());
    return evaluation.loss();
  };
  EXPECT_EQ(loss_in_order({5, 3, 4, 0, 2, 1}), loss_in_order({0, 1, 2, 3, 4, 5}));
}

TEST(EvaluationTest, ABatchCountsOnce) {
  Evaluation evaluation(0, 13, 2, 1, kTimeout);
  evaluation.batches().Take(1, 1, kNow);
  evaluation.Done(1, 0, 10, 20.0, {5}, kNow);
  evaluation.Done(2, 0, 10, 999.0, {9}, kNow);  // computed twice, after an expired lease
  evaluation.Done(2, 7, 10, 999.0, {9}, kNow);  // there is no such batch
  evaluation.Done(2, 1, 10, 999.0, {}, kNow);   // another number of metrics than the job has
  EXPECT_FALSE(evaluation.finished());
  evaluation.Done(2, 1, 10, 20.0, {7}, kNow);
  EXPECT_TRUE(evaluation.finished());
  EXPECT_DOUBLE_EQ(evaluation.loss(), 2.0);
  EXPECT_THAT(evaluation.metric_sums(), ElementsAre(12));
  EXPECT_EQ(evaluation.examples(), 20u);
}

TEST(EvaluationTest, ALostWorkersBatchesAreLeasedAgain) {
  Evaluation evaluation(0, 13, 3, 1, kTimeout);
  evaluation.batches().Take(1, 3, kNow);
  evaluation.Done(1, 1, 4, 4, {4}, kNow);
  evaluation.batches().Release(1);
  EXPECT_EQ(evaluation.batches().Take(2, 9, kNow).first, 0u);
  EXPECT_EQ(evaluation.batches().Take(2, 9, kNow).first, 2u);
}

}  // namespace
}  // namespace shoal
