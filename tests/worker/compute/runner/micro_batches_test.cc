#include "worker/compute/runner/micro_batches.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "common/model/ops/add.h"
#include "common/model/ops/random_uniform.h"
#include "tests/worker/compute/backend_suite.h"
#include "tests/worker/compute/expect_near.h"
#include "tests/worker/compute/models/model_building.h"
#include "tests/worker/compute/models/random_batch.h"
#include "tests/worker/compute/models/sparse_loss.h"
#include "tests/worker/compute/runner/expect_equal_results.h"
#include "tests/worker/compute/suite_backends.h"
#include "worker/compute/runner/graph_runner.h"

namespace shoal {
namespace {

constexpr int64_t kBatchExamples = 7;

// All that is random: dropout of elements and of channels, numbers for each example.
Graph RandomModel() {
  ModelBuilding model({kBatch, 6, 6, 2});
  model.Conv2D(5, {.size = {3, 3}, .padding = Padding::kSame}).Relu();
  model.Dropout(0.4, {.block = 6 * 6 * 5, .period = 5});
  model.Pool2D(Pool2DOp::Kind::kMax, {.size = {2, 2}, .strides = {2, 2}});
  model.Flatten().Dropout(0.3).Dense(4);
  const ValueId logits = model.current();
  Graph graph = model.Build();
  auto numbers = std::make_shared<RandomUniformOp>();
  numbers->ranges = {{0, 1}, {0, 2}, {-1, 1}, {3, 4}};
  const ValueId random = *graph.Add(numbers, {logits}, "random");
  graph.SetOutputs({*graph.Add(std::make_shared<AddOp>(), {logits, random}, "sum")});
  return graph;
}

class MicroBatchesTest : public BackendSuite {
 protected:
  static std::unique_ptr<GraphRunner> MakeRunner(const Graph& model, int64_t micro_batch_size) {
    auto runner = GraphRunner::Create(
        {.model = model,
         .loss = kSparse,
         .metrics = *MakeMetrics({"sparse_categorical_accuracy"}, {"sparse_categorical_accuracy"}),
         .weighted = true,
         .class_weights = {{2, 0.25}},
         .micro_batch_size = micro_batch_size,
         .seed = 5},
        *CreateSuiteBackend(GetParam()));
    EXPECT_TRUE(runner.ok()) << runner.status();
    return *std::move(runner);
  }

  std::mt19937 random_{3};
};

TEST(PartSizesTest, AreNearlyEqualAndNeverNone) {
  using Sizes = std::vector<int64_t>;
  EXPECT_EQ(PartSizes(7, 3), (Sizes{3, 2, 2}));
  EXPECT_EQ(PartSizes(8, 3), (Sizes{3, 3, 2}));
  EXPECT_EQ(PartSizes(6, 2), (Sizes{3, 3}));
  EXPECT_EQ(PartSizes(2, 3), (Sizes{1, 1}));
  EXPECT_EQ(PartSizes(5, 1), (Sizes{5}));
}

// 1, 3 and 6 leave a smaller last part or none; 7 and 20 are the whole batch.
TEST_P(MicroBatchesTest, PartsAreTheWholeBatch) {
  const Graph model = RandomModel();
  const auto whole = MakeRunner(model, 0);
  const RandomBatch data(random_, model, *kSparse, kBatchExamples);
  const std::vector<float> weights = {1, 0.5, 2, 0, 1, 3, 1};
  Batch batch = data.batch();
  batch.weights = weights;
  const std::vector<float> parameters = RandomFloats(random_, whole->layout().size, 0.3f);
  std::vector<float> expected(parameters.size());
  const auto trained = whole->Train(batch, 4, parameters, expected, nullptr);
  ASSERT_TRUE(trained.ok()) << trained.status();
  const auto evaluated = whole->Evaluate(batch, parameters);
  const auto predicted = whole->Predict(batch, parameters, /*training=*/true);

  for (const int64_t size : {1, 3, 6, 7, 20}) {
    SCOPED_TRACE(size);
    const auto parts = MakeRunner(model, size);
    std::vector<float> gradients(parameters.size());
    const auto result = parts->Train(batch, 4, parameters, gradients, nullptr);
    ASSERT_TRUE(result.ok()) << result.status();
    ExpectEqual(*result, *trained);
    ExpectNear(gradients, expected, 1e-5, 1e-6, "gradients");
    ExpectEqual(*parts->Evaluate(batch, parameters), *evaluated);
    // In training mode: the same dropped elements and random numbers.
    ExpectNear(*parts->Predict(batch, parameters, /*training=*/true), *predicted, 1e-5, 1e-6,
               "prediction");
  }
}

// What is done may be sent off and overwritten, and so is complete: nothing of the parts before is
// missing, and no part is still to come.
TEST_P(MicroBatchesTest, AVariableIsDoneOnceInTheLastPart) {
  const Graph model = RandomModel();
  const auto runner = MakeRunner(model, 3);
  const RandomBatch data(random_, model, *kSparse, kBatchExamples);
  std::vector<float> parameters = RandomFloats(random_, runner->layout().size, 0.3f);
  std::vector<float> expected(parameters.size(), kNan), gradients(parameters.size(), kNan);
  ASSERT_TRUE(runner->Train(data.batch(), 4, parameters, expected, nullptr).ok());
  std::map<int, int> calls;
  const auto on_done = [&](int variable) {
    ++calls[variable];
    const auto& extent = runner->layout().variables[variable];
    for (int64_t i = extent.offset; i < extent.offset + extent.size; ++i) {
      EXPECT_EQ(gradients[i], expected[i]);
      gradients[i] = parameters[i] = kNan;
    }
  };
  ASSERT_TRUE(runner->Train(data.batch(), 4, parameters, gradients, on_done).ok());
  for (size_t v = 0; v < runner->layout().variables.size(); ++v) EXPECT_EQ(calls[v], 1) << v;
}

// Each part is normalized by its own statistics; the moving averages take their mean, a part
// counting by its examples.
TEST_P(MicroBatchesTest, StatisticsAreThoseOfAPart) {
  ModelBuilding building({kBatch, 4, 4, 2});
  const Graph model = building.BatchNormalization().Flatten().Dense(4).Build();
  const auto parts = MakeRunner(model, 4), whole = MakeRunner(model, 0);
  const RandomBatch data(random_, model, *kSparse, kBatchExamples);
  std::vector<float> parameters = RandomFloats(random_, parts->layout().size, 0.3f);
  std::vector<float> pushed(parameters.size()), expected(parameters.size()), one(parameters.size());
  const Batch batch = data.batch();
  for (const auto& [first, count] : {std::pair{0, 4}, {4, 3}}) {
    ASSERT_TRUE(whole->Train(PartOf(batch, first, count), 0, parameters, one, nullptr).ok());
    for (size_t i = 0; i < one.size(); ++i)
      expected[i] += static_cast<float>(count) / kBatchExamples * one[i];
  }
  ASSERT_TRUE(parts->Train(batch, 0, parameters, pushed, nullptr).ok());
  ExpectNear(pushed, expected, 1e-5, 1e-6, "pushed");
}

TEST_P(MicroBatchesTest, ActivationsTakeTheMemoryOfAPart) {
  const Graph model = RandomModel();
  const auto parts = MakeRunner(model, 2), small = MakeRunner(model, 0);
  const auto of_parts = parts->MemoryOfBatch(64), of_small = small->MemoryOfBatch(2);
  ASSERT_TRUE(of_parts.ok() && of_small.ok());
  // A device has the sums of gradients, and they are no memory of this machine.
  const auto gradients = static_cast<int64_t>(parts->layout().size * sizeof(float));
  EXPECT_EQ(of_parts->activations,
            of_small->activations + (parts->backend().sums_parts() ? 0 : gradients));
  EXPECT_EQ(of_parts->data, 32 * of_small->data);
}

INSTANTIATE_TEST_SUITE_P(Backends, MicroBatchesTest, ::testing::ValuesIn(SuiteBackends()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace shoal
