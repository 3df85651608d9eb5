#include <limits>

#include "common/training_metric/metric.h"
#include "tests/worker/compute/cuda/kernels/kernel_test.h"
#include "worker/compute/cuda/kernels/batch_sums.h"

namespace shoal::cuda {
namespace {

class BatchSumsKernelsTest : public KernelTest {
 protected:
  // What the host adds up is what kernels make of the same batch.
  void ExpectTheSame(const char* config, int64_t columns) {
    SCOPED_TRACE(config);
    const auto metric = MakeMetrics({config})->front();
    ASSERT_TRUE(metric->row_score().has_value());
    const RowScore score = *metric->row_score();
    const int64_t examples = Pick(1, 40), rows_of_example = Flip() ? 1 : Pick(2, 20);
    const int64_t rows = examples * rows_of_example;
    // With equal ones, and some that are not numbers.
    const auto prediction = Classes(rows * columns, 9);
    const auto target = score.of_class() ? Classes(rows, columns) : Classes(rows * columns, 2);
    for (int64_t i = 0; i < rows * columns; i += Pick(1, 60)) {
      prediction[i] = std::numeric_limits<float>::quiet_NaN();
    }
    const auto weights = Normal<float>(examples, 1);
    const bool weighted = Flip();
    const auto scores = Empty<double>(rows), sum = Empty<double>(1);
    WithGroup(columns, [&](auto group) {
      Run(RowScoreKernel<group>{score, score.of_class(), prediction.data(), target.data(),
                                weighted ? weights.data() : nullptr, rows, columns, rows_of_example,
                                scores.data()});
    });
    const auto divisor = static_cast<double>(rows_of_example);
    Run(SumKernel<double>{scores.data(), rows, 1, divisor, sum.data()});
    PredictedBatch batch = {.shape = {examples, rows_of_example, columns},
                            .prediction = {prediction.data(), static_cast<size_t>(rows * columns)},
                            .target = {target.data(), static_cast<size_t>(target.size())}};
    if (weighted) batch.weights = {weights.data(), static_cast<size_t>(examples)};
    double expected = 0;
    metric->Add(batch, {&expected, 1});
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(sum[0]));
    } else {
      EXPECT_NEAR(sum[0], expected, 1e-12 * static_cast<double>(rows * columns));
    }
  }
};
SHOAL_KERNEL_TEST_SUITE(BatchSumsKernelsTest);

TEST_P(BatchSumsKernelsTest, ScoresAreThoseOfTheMetrics) {
  for (int i = 0; i < 10; ++i) {
    const int64_t columns = Flip() ? Pick(1, 20) : Pick(60, 300);
    for (const char* config :
         {"sparse_categorical_accuracy", "categorical_accuracy", "binary_accuracy", "mse", "mae",
          "RootMeanSquaredError", R"({"class_name": "BinaryAccuracy", "config": {"threshold": 3}})",
          R"({"class_name": "TopKCategoricalAccuracy", "config": {"k": 2}})",
          R"({"class_name": "SparseTopKCategoricalAccuracy", "config": {"k": 3}})"}) {
      ExpectTheSame(config, columns);
    }
  }
}

// As an id of no class is rejected by others.
TEST_P(BatchSumsKernelsTest, AClassThatIsNotThereIsNotAmongTheLargest) {
  const auto prediction = Normal<float>(4), target = Empty<float>(2);
  const auto scores = Empty<double>(2);
  target[0] = -1;
  target[1] = 2;
  for (const RowScore::Kind kind :
       {RowScore::Kind::kClassInTopK, RowScore::Kind::kClassIsLargest}) {
    Run(RowScoreKernel<8>{
        {kind, 5}, true, prediction.data(), target.data(), nullptr, 2, 2, 1, scores.data()});
    EXPECT_EQ(scores[0], 0);
    EXPECT_EQ(scores[1], 0);
  }
}

TEST_P(BatchSumsKernelsTest, SumsOfManyBlocksAreOneSum) {
  for (int i = 0; i < 10; ++i) {
    const int64_t count = Pick(1, 20000), grid = Pick(1, 20);
    const auto numbers = Normal<float>(count);
    const auto partial = Empty<double>(grid), sum = Empty<double>(1);
    Run(SumKernel<float>{numbers.data(), count, grid, 1, partial.data()});
    Run(SumKernel<double>{partial.data(), grid, 1, 4, sum.data()});
    double expected = 0;
    for (int64_t j = 0; j < count; ++j) expected += numbers[j];
    EXPECT_NEAR(sum[0], expected / 4, 1e-12 * static_cast<double>(count));
  }
}

}  // namespace
}  // namespace shoal::cuda
