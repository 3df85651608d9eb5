// Inputs of whole numbers from 0 to 255, which a device takes as bytes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/fakes/test_seed.h"
#include "tests/worker/compute/cuda/cuda_on_cpu_backend.h"
#include "tests/worker/compute/device/fake_device.h"
#include "tests/worker/compute/device/fake_device_backend.h"
#include "tests/worker/compute/models/model_building.h"
#include "tests/worker/compute/models/random_batch.h"
#include "tests/worker/compute/models/sparse_loss.h"
#include "worker/compute/reference/reference_backend.h"
#include "worker/compute/runner/graph_runner.h"

namespace shoal {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kExamples = 5;

class Uint8InputsTest : public ::testing::Test {
 protected:
  static GraphRunner::Options Options(int64_t micro_batch_size = 0) {
    ModelBuilding model({kBatch, 3, 3, 2});
    model.Rescale({1 / 255.0}, {0.0}).Conv2D(3, {.size = {2, 2}}).Relu().Flatten().Dense(4);
    return {.model = model.Build(),
            .loss = kSparse,
            .metrics = {},
            .micro_batch_size = micro_batch_size,
            .uint8_inputs = {0}};
  }
  std::unique_ptr<GraphRunner> MakeRunner(std::unique_ptr<Backend> backend,
                                          int64_t micro_batch_size = 0) {
    auto runner = GraphRunner::Create(Options(micro_batch_size), std::move(backend));
    EXPECT_TRUE(runner.ok()) << runner.status();
    return *std::move(runner);
  }

  void DrawBatch() {
    pixels_.resize(kExamples * 3 * 3 * 2);
    for (uint8_t& pixel : pixels_) pixel = static_cast<uint8_t>(random_() % 256);
    floats_.assign(pixels_.begin(), pixels_.end());
    labels_.resize(kExamples);
    for (float& label : labels_) label = static_cast<float>(random_() % 4);
  }
  // As the runner takes it.
  Batch DrawnBatch(const GraphRunner& runner) const {
    Batch batch = {.examples = kExamples, .inputs = {floats_}, .target = labels_};
    if (runner.uint8_inputs().contains(0)) batch.inputs = {pixels_};
    return batch;
  }
  absl::StatusOr<std::vector<float>> Train(GraphRunner& runner,
                                           std::span<const float> parameters) const {
    std::vector<float> gradients(parameters.size());
    const auto result = runner.Train(DrawnBatch(runner), 1, parameters, gradients, nullptr);
    if (!result.ok()) return result.status();
    return gradients;
  }

  const uint64_t seed_ = TestSeed();
  std::mt19937 random_{static_cast<uint32_t>(seed_)};
  const testing::ScopedTrace trace_{__FILE__, __LINE__, SeedText(seed_)};
  std::vector<uint8_t> pixels_;
  std::vector<float> floats_, labels_;
};

// To the last bit what floats give, in the first run, which is not recorded, and in those that are.
TEST_F(Uint8InputsTest, GiveWhatFloatsGive) {
  for (const int64_t micro_batch_size : {0, 2}) {
    const auto reference = MakeRunner(CreateReferenceBackend(), micro_batch_size);
    const auto runner =
        MakeRunner(std::make_unique<FakeDeviceBackend>(std::make_unique<FakeDevice>(seed_), 64),
                   micro_batch_size);
    for (int run = 0; run < 5; ++run) {
      SCOPED_TRACE(run);
      DrawBatch();
      const std::vector<float> parameters = RandomFloats(random_, reference->layout().size, 0.3f);
      const auto expected = Train(*reference, parameters), actual = Train(*runner, parameters);
      ASSERT_TRUE(expected.ok()) << expected.status();
      ASSERT_TRUE(actual.ok()) << actual.status();
      EXPECT_EQ(*actual, *expected);
    }
  }
}

TEST_F(Uint8InputsTest, GpuKernelsGiveTheSameForBytes) {
  DrawBatch();
  GraphRunner::Options floats = Options();
  floats.uint8_inputs = {};
  const auto of_floats = *GraphRunner::Create(
      std::move(floats), std::make_unique<CudaOnCpuBackend>(std::make_unique<FakeDevice>(seed_)));
  const auto of_bytes =
      MakeRunner(std::make_unique<CudaOnCpuBackend>(std::make_unique<FakeDevice>(seed_)));
  const std::vector<float> parameters = RandomFloats(random_, of_bytes->layout().size, 0.3f);
  const auto expected = Train(*of_floats, parameters), actual = Train(*of_bytes, parameters);
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_TRUE(actual.ok()) << actual.status();
  EXPECT_EQ(*actual, *expected);
}

// 90 bytes of pixels end with the slot's 256 bytes behind the context's, and then come labels.
TEST_F(Uint8InputsTest, BytesAreCopiedAsBytes) {
  DrawBatch();
  auto device = std::make_unique<FakeDevice>(seed_);
  FakeDevice& log = *device;
  const auto runner = MakeRunner(std::make_unique<FakeDeviceBackend>(std::move(device), 64));
  ASSERT_TRUE(Train(*runner, RandomFloats(random_, runner->layout().size)).ok());
  const int64_t size_bytes = 256 + 256 + kExamples * static_cast<int64_t>(sizeof(float));
  EXPECT_THAT(log.log(), testing::Contains("in: copy " + std::to_string(size_bytes)));
}

TEST_F(Uint8InputsTest, TheMachineItselfTakesFloats) {
  EXPECT_EQ(MakeRunner(CreateReferenceBackend())->uint8_inputs(), std::set<size_t>{});
  EXPECT_EQ(MakeRunner(std::make_unique<FakeDeviceBackend>(std::make_unique<FakeDevice>(seed_), 64))
                ->uint8_inputs(),
            std::set<size_t>{0});
}

TEST_F(Uint8InputsTest, ABatchOfTheOtherKindIsAnError) {
  DrawBatch();
  const auto device =
      MakeRunner(std::make_unique<FakeDeviceBackend>(std::make_unique<FakeDevice>(seed_), 64));
  const auto host = MakeRunner(CreateReferenceBackend());
  std::vector<float> parameters(host->layout().size), gradients(parameters.size());
  const auto error = [&](GraphRunner& runner, const Batch& batch) {
    return std::string(runner.Train(batch, 1, parameters, gradients, nullptr).status().message());
  };
  EXPECT_THAT(error(*device, DrawnBatch(*host)), HasSubstr("takes bytes"));
  EXPECT_THAT(error(*host, DrawnBatch(*device)), HasSubstr("takes floats"));
}

}  // namespace
}  // namespace shoal
