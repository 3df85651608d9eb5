#include "worker/job/dataset_pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "common/model/model_layout.h"
#include "tests/cluster/in_process/small_job.h"
#include "tests/common/base/temporary_directory.h"
#include "worker/compute/registry/create_model_runner.h"
#include "worker/job/job_data.h"
#include "worker/job/job_model.h"

namespace shoal {
namespace {

class DatasetPassTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto model = JobModel::Of(job_);
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *model;
    auto runner = CreateModelRunner(model_.RunnerOptions());
    ASSERT_TRUE(runner.ok()) << runner.status();
    runner_ = *std::move(runner);
    parameters_.resize(runner_->layout().size);
    for (size_t i = 0; i < parameters_.size(); ++i)
      parameters_[i] = 0.01f * static_cast<float>(i % 17) - 0.08f;
    dataset_ = *OpenJobData(job_.test, *model_.loss, model_.model.graph);
  }

  const TemporaryDirectory directory_;
  const Job job_ = SmallJob{.directory = directory_.path()}.Load();
  JobModel model_;
  std::unique_ptr<ModelRunner> runner_;
  std::vector<float> parameters_;
  std::shared_ptr<const Dataset> dataset_;
};

TEST_F(DatasetPassTest, EveryExampleCountsOnceAlsoThoseOfTheLastBatch) {
  DatasetPass pass(dataset_, 16);
  ASSERT_EQ(pass.batches(), 4u);
  EXPECT_EQ(pass.examples(), 50u);
  pass.Prefetch(0, pass.batches());
  BatchResult all{.metric_sums = {0}};
  for (uint64_t batch = 0; batch < pass.batches(); ++batch) {
    const auto result = pass.Evaluate(batch, parameters_, runner_.get());
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->examples, batch < 3 ? 16 : 2);
    all.examples += result->examples;
    all.loss_sum += result->loss_sum;
    all.metric_sums[0] += result->metric_sums[0];
  }
  EXPECT_EQ(all.examples, 50);
  const auto at_once = DatasetPass(dataset_, 64).Evaluate(0, parameters_, runner_.get());
  ASSERT_TRUE(at_once.ok()) << at_once.status();
  EXPECT_NEAR(all.loss_sum, at_once->loss_sum, 1e-4 * at_once->loss_sum);
  EXPECT_EQ(all.metric_sums, at_once->metric_sums);
}

TEST_F(DatasetPassTest, ABatchTakesTheMemoryOfAMicroBatch) {
  Job job = job_;
  job.micro_batch_size = 2;
  const auto parts = *CreateModelRunner(JobModel::Of(job)->RunnerOptions());
  EXPECT_LT(parts->MemoryOfBatch(64)->activations, runner_->MemoryOfBatch(64)->activations);
}

// The labels' file, of the numbers 0 to 3, serves as one of weights.
TEST_F(DatasetPassTest, ExamplesCountByTheWeightsThatTheJobNames) {
  Job job = job_;
  job.test.weights = job.test.labels;
  job.weighted_metrics = {"accuracy"};
  const JobModel model = *JobModel::Of(job);
  const auto runner = *CreateModelRunner(model.RunnerOptions());
  const std::shared_ptr<const Dataset> weighted =
      *OpenJobData(job.test, *model.loss, model.model.graph);
  const auto result = DatasetPass(weighted, 64).Evaluate(0, parameters_, runner.get());
  ASSERT_TRUE(result.ok()) << result.status();
  double loss = 0, weights = 0, right = 0;
  DatasetPass singly(dataset_, 1);
  std::vector<float> label(1);
  for (uint64_t i = 0; i < 50; ++i) {
    ASSERT_TRUE(dataset_->ReadLabel(i, label).ok());
    const auto one = singly.Evaluate(i, parameters_, runner_.get());
    ASSERT_TRUE(one.ok()) << one.status();
    loss += label[0] * one->loss_sum;
    right += label[0] * one->metric_sums[0];
    weights += label[0];
  }
  EXPECT_NEAR(result->loss_sum, loss, 1e-4 * loss);
  ASSERT_EQ(result->metric_sums.size(), 3u);
  EXPECT_EQ(result->metric_sums[1], right);
  EXPECT_EQ(result->metric_sums[2], weights);
  EXPECT_GT(weights, 50);
  // It has no part in what is predicted.
  EXPECT_TRUE(DatasetPass(weighted, 64).Predict(0, parameters_, runner.get()).ok());
}

TEST_F(DatasetPassTest, PredictionsComeInTheOrderOfTheDataSet) {
  DatasetPass pass(dataset_, 16);
  std::vector<float> rows;
  for (uint64_t batch = 0; batch < pass.batches(); ++batch) {
    EXPECT_EQ(pass.Range(batch).first, 16 * batch);
    const auto output = pass.Predict(batch, parameters_, runner_.get());
    ASSERT_TRUE(output.ok()) << output.status();
    rows.insert(rows.end(), output->begin(), output->end());
  }
  ASSERT_EQ(rows.size(), 50u * 4);
  std::vector<float> example(64), label(1);
  for (const uint64_t index : {0, 17, 49}) {
    ASSERT_TRUE(dataset_->Read(index, std::vector<FeatureSpan>{example}, label).ok());
    const auto alone =
        runner_->Predict({.examples = 1, .inputs = {example}}, parameters_, /*training=*/false);
    ASSERT_TRUE(alone.ok()) << alone.status();
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(rows[index * 4 + i], (*alone)[i], 1e-5) << index;
  }
}

}  // namespace
}  // namespace shoal
