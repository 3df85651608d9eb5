// What becomes of convolutions that cuDNN does not compute.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/worker/compute/cuda/cuda_on_cpu_backend.h"
#include "tests/worker/compute/expect_near.h"
#include "tests/worker/compute/models/model_building.h"
#include "tests/worker/compute/models/random_batch.h"
#include "tests/worker/compute/models/sparse_loss.h"
#include "worker/compute/reference/reference_backend.h"
#include "worker/compute/runner/graph_runner.h"

namespace shoal {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Fails for everything, with a text that tells of the graph, and notes in `trains` what of each it
// is told.
class NoConvolutions : public cuda::Convolutions {
 public:
  NoConvolutions(absl::StatusCode code, std::vector<bool>* trains) : code_(code), trains_(trains) {}
  absl::StatusOr<Made> Make(const cuda::ConvolutionGraph& graph, bool trains,
                            const cuda::NodeName&) override {
    trains_->push_back(trains);
    return absl::Status(code_, "CUDNN_STATUS_NOT_SUPPORTED: " + GraphText(graph));
  }
  absl::StatusOr<std::string> Library() override { return "none 1"; }

 private:
  const absl::StatusCode code_;
  std::vector<bool>* const trains_;
};

// As a library's are that holds something of a device.
class ConvolutionsOfDevice : public NoConvolutions {
 public:
  ConvolutionsOfDevice(std::unique_ptr<Device::Event> held, std::vector<bool>* trains)
      : NoConvolutions(absl::StatusCode::kUnimplemented, trains), held_(std::move(held)) {}

 private:
  const std::unique_ptr<Device::Event> held_;
};

class PlainConvolutionsTest : public ::testing::Test {
 protected:
  static GraphRunner::Options Options() {
    ModelBuilding model({kBatch, 5, 5, 2});
    model.Conv2D(3, {.size = {3, 3}, .padding = Padding::kSame}).Relu();
    model.Conv2D(4, {.size = {2, 2}}).Flatten().Dense(4);
    return {.model = model.Build(), .loss = kSparse, .metrics = {}, .seed = 3};
  }
  std::unique_ptr<GraphRunner> MakeRunner(absl::StatusCode code) {
    auto runner = GraphRunner::Create(
        Options(),
        std::make_unique<CudaOnCpuBackend>(
            std::make_unique<FakeDevice>(1),
            CudaOnCpuBackend::Parts{
                .convolutions = std::make_unique<NoConvolutions>(code, &trains_),
                .on_warning = [this](const std::string& text) { warnings_.push_back(text); }}));
    EXPECT_TRUE(runner.ok()) << runner.status();
    return *std::move(runner);
  }

  std::mt19937 random_{5};
  std::vector<std::string> warnings_;
  std::vector<bool> trains_;  // of each convolution
};

TEST_F(PlainConvolutionsTest, AreSaidOnceByOpAndLayerWithTheStatus) {
  const auto runner = MakeRunner(absl::StatusCode::kUnimplemented);
  const auto reference = *GraphRunner::Create(Options(), CreateReferenceBackend());
  const std::vector<float> parameters = RandomFloats(random_, runner->layout().size, 0.3f);
  for (const int64_t examples : {3, 2}) {
    const RandomBatch data(random_, Options().model, *kSparse, examples);
    std::vector<float> gradients(parameters.size()), expected(parameters.size());
    const auto trained = runner->Train(data.batch(), 1, parameters, gradients, nullptr);
    ASSERT_TRUE(trained.ok()) << trained.status();
    ASSERT_TRUE(reference->Train(data.batch(), 1, parameters, expected, nullptr).ok());
    ExpectNear(gradients, expected, 1e-4, 1e-6, "gradients");
    ASSERT_TRUE(runner->Evaluate(data.batch(), parameters).ok());
  }
  const auto of = [](const std::string& op, const std::string& layer) {
    return AllOf(StartsWith(op + " "), HasSubstr(" " + layer + " "),
                 HasSubstr("CUDNN_STATUS_NOT_SUPPORTED: "));
  };
  EXPECT_THAT(warnings_,
              ::testing::UnorderedElementsAre(of("Conv2D", "Conv2D_1"), of("Conv2D", "Conv2D_4"),
                                              of("Conv2DBackwardWeights", "Conv2D_1"),
                                              of("Conv2DBackwardWeights", "Conv2D_4"),
                                              of("Conv2DBackwardData", "Conv2D_4")));
}

// The same values have the same loss and metrics, whoever evaluates them.
TEST_F(PlainConvolutionsTest, OnlyThoseOfAStepMayBeWhatIsFastest) {
  const auto runner = MakeRunner(absl::StatusCode::kUnimplemented);
  const std::vector<float> parameters = RandomFloats(random_, runner->layout().size, 0.3f);
  std::vector<float> gradients(parameters.size());
  const RandomBatch data(random_, Options().model, *kSparse, 2);
  ASSERT_TRUE(runner->Train(data.batch(), 1, parameters, gradients, nullptr).ok());
  EXPECT_THAT(trains_, ElementsAre(true, true, true, true, true));
  trains_.clear();
  ASSERT_TRUE(runner->Evaluate(data.batch(), parameters).ok());
  ASSERT_TRUE(runner->Predict(data.batch(), parameters, /*training=*/true).ok());
  ASSERT_TRUE(runner->Predict(data.batch(), parameters, /*training=*/false).ok());
  EXPECT_THAT(trains_, ElementsAre(false, false, false, false, false, false));
}

// Whoever is told of a batch that does not fit need not wait until all smaller ones are measured.
TEST_F(PlainConvolutionsTest, NothingIsMeasuredOfBatchesWhoseSizeAloneIsAsked) {
  auto device = std::make_unique<FakeDevice>(1);
  device->SetMemory(100 << 10);
  const auto runner = GraphRunner::Create(
      Options(), std::make_unique<CudaOnCpuBackend>(
                     std::move(device),
                     CudaOnCpuBackend::Parts{.convolutions = std::make_unique<NoConvolutions>(
                                                 absl::StatusCode::kUnimplemented, &trains_)}));
  ASSERT_TRUE(runner.ok()) << runner.status();
  EXPECT_THAT(std::string((*runner)->MemoryOfBatch(300).status().message()),
              HasSubstr("\"micro_batch_size\" to "));
  ASSERT_GT(trains_.size(), 10u);
  EXPECT_EQ(std::count(trains_.begin(), trains_.end(), true), 5) << "those of 300 examples";
  EXPECT_TRUE((*runner)->MemoryOfBatch(2).ok());
  EXPECT_EQ(std::count(trains_.begin(), trains_.end(), true), 10);
}

// By who has used another device since.
TEST_F(PlainConvolutionsTest, LibrariesGiveTheirDeviceObjectsBack) {
  auto device = std::make_unique<FakeDevice>(1);
  auto held = device->NewEvent();
  ASSERT_TRUE(held.ok());
  auto backend = std::make_unique<CudaOnCpuBackend>(
      std::move(device),
      CudaOnCpuBackend::Parts{
          .convolutions = std::make_unique<ConvolutionsOfDevice>(*std::move(held), &trains_)});
  FakeDevice other(1);
  backend.reset();  // or the process ends
  other.UseOnThisThread();
}

// A lost device, or an installation that is damaged, is no reason to go on slowly.
TEST_F(PlainConvolutionsTest, OtherFailuresAreThoseOfTheModel) {
  for (const absl::StatusCode code :
       {absl::StatusCode::kFailedPrecondition, absl::StatusCode::kUnavailable,
        absl::StatusCode::kInternal}) {
    const auto runner = MakeRunner(code);
    EXPECT_EQ(runner->MemoryOfBatch(3).status().code(), code);
  }
  EXPECT_THAT(warnings_, ElementsAre());
}

}  // namespace
}  // namespace shoal
