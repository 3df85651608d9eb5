// Inputs of whole numbers from 0 to 255, which are copied to a device as bytes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/common/loss/loss_of.h"
#include "tests/fakes/test_seed.h"
#include "tests/worker/compute/cuda/cuda_on_cpu_backend.h"
#include "tests/worker/compute/device/fake_device.h"
#include "tests/worker/compute/device/fake_device_backend.h"
#include "tests/worker/compute/model_building.h"
#include "tests/worker/compute/random_batch.h"
#include "worker/compute/graph_runner.h"
#include "worker/compute/reference/reference_backend.h"

namespace shoal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const auto kSparse = LossOf("SparseCategoricalCrossentropy", R"({"from_logits": true})");
constexpr int64_t kExamples = 5;

class ByteInputsTest : public ::testing::Test {
 protected:
  static GraphRunner::Options Options(int64_t micro_batch_size = 0) {
    ModelBuilding model({kBatch, 3, 3, 2});
    model.Rescale({1 / 255.0}, {0.0}).Conv2D(3, {.size = {2, 2}}).Relu().Flatten().Dense(4);
    return {.model = model.Build(),
            .loss = kSparse,
            .metrics = {},
            .micro_batch_size = micro_batch_size,
            .byte_inputs = {0}};
  }
  std::unique_ptr<GraphRunner> MakeRunner(std::unique_ptr<Backend> backend,
                                          int64_t micro_batch_size = 0) {
    auto runner = GraphRunner::Create(Options(micro_batch_size), std::move(backend));
    EXPECT_TRUE(runner.ok()) << runner.status();
    return *std::move(runner);
  }

  void DrawBatch() {
    pixels_.resize(kExamples * 3 * 3 * 2);
    for (float& pixel : pixels_) pixel = static_cast<float>(random_() % 256);
    labels_.resize(kExamples);
    for (float& label : labels_) label = static_cast<float>(random_() % 4);
  }
  Batch DrawnBatch() const {
    return {.examples = kExamples, .inputs = {pixels_}, .target = labels_};
  }
  absl::StatusOr<std::vector<float>> Train(GraphRunner& runner,
                                           std::span<const float> parameters) const {
    std::vector<float> gradients(parameters.size());
    const auto result = runner.Train(DrawnBatch(), 1, parameters, gradients, nullptr);
    if (!result.ok()) return result.status();
    return gradients;
  }

  const uint64_t seed_ = TestSeed();
  std::mt19937 random_{static_cast<uint32_t>(seed_)};
  const testing::ScopedTrace trace_{__FILE__, __LINE__, SeedText(seed_)};
  std::vector<float> pixels_, labels_;
};

// To the last bit what floats give, in the first run, which is not recorded, and in those that are.
TEST_F(ByteInputsTest, GiveWhatFloatsGive) {
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

TEST_F(ByteInputsTest, TheKernelsOfTheGpuDoToo) {
  DrawBatch();
  GraphRunner::Options floats = Options();
  floats.byte_inputs = {};
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
TEST_F(ByteInputsTest, AreAQuarterAsLongOnTheirWay) {
  DrawBatch();
  auto device = std::make_unique<FakeDevice>(seed_);
  FakeDevice& log = *device;
  const auto runner = MakeRunner(std::make_unique<FakeDeviceBackend>(std::move(device), 64));
  ASSERT_TRUE(Train(*runner, RandomFloats(random_, runner->layout().size)).ok());
  const int64_t size_bytes = 256 + 256 + kExamples * static_cast<int64_t>(sizeof(float));
  EXPECT_THAT(log.log(), testing::Contains("in: copy " + std::to_string(size_bytes)));
}

TEST_F(ByteInputsTest, AValueThatIsNoByteIsAnError) {
  const auto runner =
      MakeRunner(std::make_unique<FakeDeviceBackend>(std::make_unique<FakeDevice>(seed_), 64));
  const std::vector<float> parameters(runner->layout().size);
  for (const float wrong :
       {0.5f, -1.0f, -0.5f, -1e-9f, 254.5f, 255.5f, 256.0f, 8388608.0f, 8388609.0f, 33554432.0f,
        -8388608.0f, 1e30f, -1e30f, std::numeric_limits<float>::quiet_NaN(),
        std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
    SCOPED_TRACE(wrong);
    DrawBatch();
    pixels_[random_() % pixels_.size()] = wrong;
    const absl::Status status = Train(*runner, parameters).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("input"), HasSubstr("no whole number from 0 to 255")));
  }
  DrawBatch();
  EXPECT_TRUE(Train(*runner, parameters).ok());
}

}  // namespace
}  // namespace shoal
