#include "worker/dataset_pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "common/model/model_layout.h"
#include "tests/cluster/small_job.h"
#include "tests/common/base/temporary_directory.h"
#include "worker/job_data.h"
#include "worker/job_model.h"

namespace shoal {
namespace {

class DatasetPassTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto model = JobModel::Of(job_);
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *model;
    auto runner = ModelRunner::Create(model_.RunnerOptions());
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
  pass.Expect(0, pass.batches());
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
    ASSERT_TRUE(dataset_->Read(index, std::vector<std::span<float>>{example}, label).ok());
    const auto alone =
        runner_->Predict({.examples = 1, .inputs = {example}}, parameters_, /*training=*/false);
    ASSERT_TRUE(alone.ok()) << alone.status();
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(rows[index * 4 + i], (*alone)[i], 1e-5) << index;
  }
}

}  // namespace
}  // namespace shoal
