// Runs that begin before all of their parameters are there.

#include "worker/compute/program/arriving_parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/worker/compute/backend_suite.h"
#include "tests/worker/compute/device/fake_device.h"
#include "tests/worker/compute/device/fake_device_backend.h"
#include "tests/worker/compute/late_parameters.h"
#include "tests/worker/compute/models/model_building.h"
#include "tests/worker/compute/models/random_batch.h"
#include "tests/worker/compute/models/small_models.h"
#include "tests/worker/compute/models/sparse_loss.h"
#include "tests/worker/compute/suite_backends.h"
#include "worker/compute/cpu/cpu_backend.h"
#include "worker/compute/runner/graph_runner.h"

namespace shoal {
namespace {

using ::testing::Each;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

GraphRunner::Options OptionsOf(Graph model) {
  return {.model = std::move(model),
          .loss = kSparse,
          .metrics = *MakeMetrics({"sparse_categorical_accuracy"}),
          .seed = 3};
}

class ArrivingParametersTest : public BackendSuite {
 protected:
  static std::unique_ptr<GraphRunner> MakeRunner(GraphRunner::Options options) {
    return *GraphRunner::Create(std::move(options), *CreateSuiteBackend(GetParam()));
  }

  std::mt19937 random_{5};
};

// Runs on a device are played from the third on where all is there, and go on to be.
TEST_P(ArrivingParametersTest, EachReadParameterIsAwaitedOnce) {
  for (const int64_t micro_batch_size : {0, 2}) {
    GraphRunner::Options options = OptionsOf(SmallModel());
    options.micro_batch_size = micro_batch_size;
    const auto runner = MakeRunner(std::move(options));
    const ModelLayout& layout = runner->layout();
    const RandomBatch data(random_, SmallModel(), *kSparse, 5);
    for (uint64_t step = 0; step < 4; ++step) {
      const std::vector<float> values = RandomFloats(random_, layout.size, 0.3f);
      std::vector<float> expected(layout.size), gradients(layout.size);
      const auto wanted = runner->Train(data.batch(), step, values, expected, nullptr);
      ASSERT_TRUE(wanted.ok()) << wanted.status();
      ASSERT_TRUE(runner->backend().Poison(0).ok());
      LateParameters arriving(layout, values);
      const auto trained =
          runner->Train(data.batch(), step, arriving.buffer(), gradients, nullptr, &arriving);
      ASSERT_TRUE(trained.ok()) << trained.status();
      EXPECT_EQ(trained->loss_sum, wanted->loss_sum);
      EXPECT_EQ(gradients, expected);
      EXPECT_THAT(arriving.awaits(), Each(testing::Pair(testing::_, 1)));
      EXPECT_GE(arriving.awaits().size(), layout.variables.size() - 2) << "but for moving averages";
    }
  }
}

TEST_P(ArrivingParametersTest, MissingParametersEndTheRun) {
  const auto runner = MakeRunner(OptionsOf(SmallModel()));
  const ModelLayout& layout = runner->layout();
  const RandomBatch data(random_, SmallModel(), *kSparse, 5);
  const std::vector<float> values = RandomFloats(random_, layout.size, 0.3f);
  std::vector<float> expected(layout.size), gradients(layout.size);
  ASSERT_TRUE(runner->Train(data.batch(), 1, values, expected, nullptr).ok());
  for (int variable = 0; variable < static_cast<int>(layout.variables.size()); ++variable) {
    LateParameters arriving(layout, values);
    arriving.on_await = [variable](int awaited) {
      return awaited == variable ? absl::CancelledError("it does not come") : absl::OkStatus();
    };
    std::vector<int> done;
    const auto ended = runner->Train(
        data.batch(), 1, arriving.buffer(), gradients, [&done](int each) { done.push_back(each); },
        &arriving);
    if (ended.ok()) continue;  // a moving average
    EXPECT_TRUE(absl::IsCancelled(ended.status())) << ended.status();
    EXPECT_THAT(done, IsEmpty());
    ASSERT_TRUE(runner->Train(data.batch(), 1, values, gradients, nullptr).ok());
    EXPECT_EQ(gradients, expected) << "and the next one is as ever";
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, ArrivingParametersTest, ::testing::ValuesIn(SuiteBackends()),
                         [](const auto& info) { return info.param; });

// What a device is given meanwhile the next tests say.
TEST(ArrivingOnHostTest, TheFirstLayerIsComputedBeforeTheLastHasArrived) {
  std::mt19937 random(5);
  ModelBuilding model({kBatch, 8});
  const Graph graph = model.Dense(32, false).Dense(16, false).Build();
  std::vector<std::string> log;
  GraphRunner::Options options = OptionsOf(graph);
  options.on_work_timed = [&log](const std::string&, std::chrono::nanoseconds) {
    log.push_back("computed");
  };
  const auto runner = *GraphRunner::Create(std::move(options), CreateCpuBackend());
  const RandomBatch data(random, graph, *kSparse, 1);
  LateParameters arriving(runner->layout(), RandomFloats(random, runner->layout().size, 0.01f));
  arriving.on_await = [&log](int variable) {
    log.push_back(absl::StrCat("awaits ", variable));
    return absl::OkStatus();
  };
  std::vector<float> gradients(runner->layout().size);
  const auto trained =
      runner->Train(data.batch(), 0, arriving.buffer(), gradients, nullptr, &arriving);
  ASSERT_TRUE(trained.ok()) << trained.status();
  const auto first = std::ranges::find(log, "awaits 0");
  const auto last = std::ranges::find(first, log.end(), "awaits 1");
  ASSERT_NE(last, log.end());
  EXPECT_NE(std::find(first, last, "computed"), last);
}

class ArrivingOnDeviceTest : public ::testing::Test {
 protected:
  std::unique_ptr<GraphRunner> MakeRunner(Graph model, uint64_t seed, int64_t min_copied_bytes) {
    auto device = std::make_unique<FakeDevice>(seed);
    device_ = device.get();
    return *GraphRunner::Create(
        OptionsOf(std::move(model)),
        std::make_unique<FakeDeviceBackend>(std::move(device), min_copied_bytes));
  }

  FakeDevice* device_ = nullptr;  // of the last runner
  std::mt19937 random_{5};
};

// A device as fast as can be has done all that it was given when a variable comes.
TEST_F(ArrivingOnDeviceTest, NoCopyIsGivenBeforeItsVariablesAreThere) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    const auto runner = MakeRunner(SmallModel(), seed, /*min_copied_bytes=*/64);
    const RandomBatch data(random_, SmallModel(), *kSparse, 3);
    const std::vector<float> values = RandomFloats(random_, runner->layout().size, 0.3f);
    std::vector<float> expected(values.size()), gradients(values.size());
    for (const bool fast : {true, false}) {
      ASSERT_TRUE(runner->Train(data.batch(), 1, values, expected, nullptr).ok());
      ASSERT_TRUE(runner->backend().Poison(0).ok());
      LateParameters arriving(runner->layout(), values);
      arriving.on_await = [this, fast](int) {
        if (fast) device_->Finish();
        return absl::OkStatus();
      };
      const auto trained =
          runner->Train(data.batch(), 1, arriving.buffer(), gradients, nullptr, &arriving);
      ASSERT_TRUE(trained.ok()) << trained.status();
      EXPECT_EQ(gradients, expected);
    }
  }
}

// Two layers with a kernel each, a (48 bytes, variable 0) and b (96 bytes).
TEST_F(ArrivingOnDeviceTest, CopiesAreGivenAsTheyAreWantedAmongKernels) {
  ModelBuilding model({kBatch, 2});
  const auto runner = MakeRunner(model.Dense(6, false).Dense(4, false).Build(), 0, 1);
  std::vector<float> gradients(runner->layout().size);
  const std::vector<float> x = {1, 2}, y = {3};
  const Batch batch = {.examples = 1, .inputs = {x}, .target = y};
  std::vector<std::string>& log = device_->log();
  for (int run = 0; run < 3; ++run) {  // none is played
    LateParameters arriving(runner->layout(), std::vector<float>(gradients.size()));
    arriving.on_await = [&log](int variable) {
      log.push_back(absl::StrCat("awaits ", variable));
      return absl::OkStatus();
    };
    log.clear();
    ASSERT_TRUE(runner->Train(batch, 0, arriving.buffer(), gradients, nullptr, &arriving).ok());
    ASSERT_GE(log.size(), 14u);
    log.resize(14);
    EXPECT_THAT(log, ElementsAreArray({
                         "in: copy 516",
                         "in: event 6",
                         "compute: wait 6",  //
                         "awaits 0",
                         "in: copy 48",
                         "in: event 0",
                         "compute: wait 0",  //
                         "compute: kernel",  //
                         "awaits 1",
                         "in: copy 96",
                         "in: event 1",
                         "compute: wait 1",  //
                         "compute: kernel",
                         "compute: kernel",
                     }));
  }
}

}  // namespace
}  // namespace shoal
