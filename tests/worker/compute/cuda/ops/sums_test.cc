// What a device adds up of a batch itself, and what it leaves to the host.

#include "worker/compute/cuda/ops/sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/common/loss/loss_of.h"
#include "tests/worker/compute/cuda/cuda_on_cpu_backend.h"
#include "tests/worker/compute/models/model_building.h"
#include "tests/worker/compute/models/random_batch.h"
#include "tests/worker/compute/models/sparse_loss.h"
#include "worker/compute/runner/graph_runner.h"

namespace shoal {
namespace {

using ::testing::ElementsAre;

const auto kSquares = LossOf("MeanSquaredError");
constexpr int64_t kExamples = 3;

class SumsTest : public ::testing::Test {
 protected:
  // The copies that leave the device when it evaluates.
  std::vector<std::string> CopiesOf(const std::shared_ptr<const Loss>& loss,
                                    const std::vector<std::string>& metrics,
                                    const std::vector<std::string>& weighted = {}) {
    auto device = std::make_unique<FakeDevice>(1);
    FakeDevice& fake = *device;
    ModelBuilding building({kBatch, 6});
    building.Dense(5);
    const Graph model = building.Build();
    const auto runner = *GraphRunner::Create(
        {.model = model, .loss = loss, .metrics = *MakeMetrics(metrics, weighted)},
        std::make_unique<CudaOnCpuBackend>(std::move(device)));
    const RandomBatch data(random_, model, *loss, kExamples);
    const std::vector<float> parameters = RandomFloats(random_, runner->layout().size);
    const auto result = runner->Evaluate(data.batch(), parameters);
    EXPECT_TRUE(result.ok()) << result.status();
    std::vector<std::string> copies;
    for (const std::string& line : fake.log()) {
      if (line.starts_with("out: copy")) copies.push_back(line);
    }
    return copies;
  }

  std::mt19937 random_{5};
};

TEST_F(SumsTest, AFewBytesAreAllThatIsRead) {
  EXPECT_THAT(CopiesOf(kSparse, {}), ElementsAre("out: copy 8"));
  EXPECT_THAT(CopiesOf(kSparse, {"sparse_categorical_accuracy"}), ElementsAre("out: copy 16"));
  EXPECT_THAT(CopiesOf(kSparse, {"sparse_categorical_accuracy", "SparseTopKCategoricalAccuracy"}),
              ElementsAre("out: copy 24"));
}

// Losses and predictions.
TEST_F(SumsTest, AMetricWithoutAKernelIsTheHosts) {
  const std::string losses = "out: copy 12", prediction = "out: copy 60";
  EXPECT_THAT(CopiesOf(kSquares, {"mse", "Precision"}), ElementsAre(losses, prediction));
  // Of a weighted one without weights the host adds up ones.
  EXPECT_THAT(CopiesOf(kSparse, {}, {"sparse_categorical_accuracy"}),
              ElementsAre(losses, prediction));
}

}  // namespace
}  // namespace shoal
