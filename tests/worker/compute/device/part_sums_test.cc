// The gradients of the parts of a batch, which a device adds up.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/worker/compute/device/fake_device.h"
#include "tests/worker/compute/device/fake_device_backend.h"
#include "tests/worker/compute/expect_near.h"
#include "tests/worker/compute/models/model_building.h"
#include "tests/worker/compute/models/random_batch.h"
#include "tests/worker/compute/models/small_models.h"
#include "tests/worker/compute/models/sparse_loss.h"
#include "worker/compute/reference/reference_backend.h"
#include "worker/compute/runner/graph_runner.h"

namespace shoal {
namespace {

// Orders of what the streams do.

class PartSumsTest : public ::testing::Test {
 protected:
  static GraphRunner::Options Options(int64_t micro_batch_size) {
    return {.model = NormalizedModel(),
            .loss = kSparse,
            .metrics = *MakeMetrics({"sparse_categorical_accuracy"}),
            .micro_batch_size = micro_batch_size,
            .seed = 3};
  }
  std::unique_ptr<GraphRunner> MakeRunner(int64_t micro_batch_size, uint64_t seed,
                                          int64_t min_copied_bytes = 64) {
    auto device = std::make_unique<FakeDevice>(seed);
    device_ = device.get();
    auto runner = GraphRunner::Create(
        Options(micro_batch_size),
        std::make_unique<FakeDeviceBackend>(std::move(device), min_copied_bytes));
    EXPECT_TRUE(runner.ok()) << runner.status();
    return *std::move(runner);
  }
  std::vector<float> Parameters(const ModelRunner& runner) {
    return NonNegativeParameters(random_, runner);
  }
  int64_t Count(const std::string& line) const {
    return std::count(device_->log().begin(), device_->log().end(), line);
  }

  std::mt19937 random_{5};
  FakeDevice* device_ = nullptr;  // of the last runner
};

// Batches in one, two and three parts in turn, by programs that are first run, then recorded, then
// played: bit by bit what the host adds up. What was there before is nothing.
TEST_F(PartSumsTest, AreThoseOfTheHost) {
  const auto reference = *GraphRunner::Create(Options(4), CreateReferenceBackend());
  const size_t size = reference->layout().size;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const auto runner = MakeRunner(4, seed);
    std::vector<float> expected(size), gradients(size, kNan);
    const auto pinned = runner->backend().Pin(gradients);
    ASSERT_TRUE(pinned.ok()) << pinned.status();
    uint64_t step = 0;
    for (const int64_t examples : {12, 4, 9, 12, 8, 4, 12, 4, 12, 12}) {
      const RandomBatch data(random_, NormalizedModel(), *kSparse, examples);
      const std::vector<float> parameters = Parameters(*reference);
      const auto wanted = reference->Train(data.batch(), ++step, parameters, expected, nullptr);
      std::vector<int> done;
      const auto on_done = [&](int variable) {
        done.push_back(variable);
        const auto& [offset, count] = runner->layout().variables[variable];
        for (int64_t i = offset; i < offset + count; ++i) {
          ASSERT_EQ(gradients[i], expected[i]) << "of variable " << variable;
          gradients[i] = kNan;
        }
      };
      const auto trained = runner->Train(data.batch(), step, parameters, gradients, on_done);
      ASSERT_TRUE(trained.ok()) << trained.status();
      EXPECT_EQ(trained->loss_sum, wanted->loss_sum);
      EXPECT_EQ(trained->metric_sums, wanted->metric_sums);
      std::sort(done.begin(), done.end());
      ASSERT_EQ(done.size(), runner->layout().variables.size());
      EXPECT_EQ(std::unique(done.begin(), done.end()), done.end()) << "each once";
      ASSERT_TRUE(runner->backend().Poison(0).ok());
    }
    EXPECT_GT(Count("compute: play"), 0);
  }
}

// Of each part losses and predictions are copied, and of the last one the gradients, as of a whole
// batch.
TEST_F(PartSumsTest, LeaveTheDeviceOnce) {
  const RandomBatch data(random_, NormalizedModel(), *kSparse, 12);
  const auto copies_out = [&](int64_t micro_batch_size) {
    const auto runner = MakeRunner(micro_batch_size, 0, int64_t{1} << 40);
    std::vector<float> gradients(runner->layout().size);
    EXPECT_TRUE(runner->Train(data.batch(), 1, Parameters(*runner), gradients, nullptr).ok());
    return std::count_if(device_->log().begin(), device_->log().end(),
                         [](const std::string& line) { return line.starts_with("out: copy "); });
  };
  const int64_t of_whole = copies_out(0);
  EXPECT_GT(of_whole, 2);
  EXPECT_EQ(copies_out(4), of_whole + 2 * 2);
}

TEST_F(PartSumsTest, TheirMemoryIsTakenBeforeTheFirstStep) {
  for (const int64_t micro_batch_size : {0, 4}) {
    const auto runner = MakeRunner(micro_batch_size, 0);
    ASSERT_TRUE(runner->MemoryOfBatch(12).ok());
    const int64_t taken = device_->taken_bytes();
    const RandomBatch data(random_, NormalizedModel(), *kSparse, 12);
    const std::vector<float> parameters = Parameters(*runner);
    std::vector<float> gradients(parameters.size());
    ASSERT_TRUE(runner->Train(data.batch(), 1, parameters, gradients, nullptr).ok());
    EXPECT_EQ(device_->taken_bytes(), taken);
  }
}

// They take memory, too.
TEST_F(PartSumsTest, TheSizeOfAPartThatIsSaidToFitDoes) {
  ModelBuilding model({kBatch, 64});
  GraphRunner::Options options = Options(0);
  options.model = model.Dense(256).Dense(4).Build();
  const auto make = [&](int64_t micro_batch_size) {
    auto device = std::make_unique<FakeDevice>(0);
    device_ = device.get();
    options.micro_batch_size = micro_batch_size;
    return *GraphRunner::Create(options, std::make_unique<FakeDeviceBackend>(std::move(device), 1));
  };
  auto runner = make(0);
  ASSERT_TRUE(runner->MemoryOfBatch(60).ok());
  const int64_t memory_bytes = device_->taken_bytes() * 65 / 64;
  runner = make(0);
  device_->SetMemory(memory_bytes);
  const std::string message(runner->MemoryOfBatch(100).status().message());
  const std::string advice = "set \"micro_batch_size\" to ";
  const size_t at = message.find(advice);
  ASSERT_NE(at, std::string::npos) << message;
  const int64_t fits = std::stoi(message.substr(at + advice.size()));
  EXPECT_GT(fits, 1) << message;
  runner = make(fits);
  device_->SetMemory(memory_bytes);
  const absl::Status taken = runner->MemoryOfBatch(100).status();
  EXPECT_TRUE(taken.ok()) << message << "; " << taken;
}

}  // namespace
}  // namespace shoal
