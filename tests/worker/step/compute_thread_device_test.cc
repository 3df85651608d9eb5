// A worker's steps on a device with memory of its own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/daemon/process/exit_code.h"
#include "tests/cluster/in_process/small_job.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/worker/compute/device/fake_device.h"
#include "tests/worker/compute/device/fake_device_backend.h"
#include "tests/worker/step/posted_loop.h"
#include "worker/compute/runner/graph_runner.h"
#include "worker/step/compute_thread.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Notes in `trained` for how many examples each program that trains is made.
class NotingBackend : public FakeDeviceBackend {
 public:
  NotingBackend(std::unique_ptr<FakeDevice> device, std::vector<int64_t>* trained)
      : FakeDeviceBackend(std::move(device), /*min_copied_bytes=*/64), trained_(*trained) {}

 protected:
  absl::Status AddSteps(ProgramBuilder& builder) const override {
    if (builder.plan().computes_gradients()) trained_.push_back(builder.plan().examples());
    return FakeDeviceBackend::AddSteps(builder);
  }

 private:
  std::vector<int64_t>& trained_;
};

class ComputeThreadDeviceTest : public testing::Test {
 protected:
  void NewComputer(int64_t memory_bytes) {
    computer_ = std::make_unique<ComputeThread>(ComputeThread::Options{
        .loop = &loop_, .create_runner = [this, memory_bytes](ModelRunner::Options options) {
          auto device = std::make_unique<FakeDevice>(/*seed=*/1);
          device->SetMemory(memory_bytes);
          device_ = device.get();
          options.micro_batch_size = micro_batch_size_;
          return GraphRunner::Create(std::move(options),
                                     std::make_unique<NotingBackend>(std::move(device), &trained_));
        }});
  }
  absl::StatusOr<StepComputer::Prepared> Prepare() {
    std::optional<absl::StatusOr<StepComputer::Prepared>> result;
    computer_->Prepare(small_.Load().ResolvedText(), /*ps_count=*/2,
                       [&](absl::StatusOr<StepComputer::Prepared> prepared) { result = prepared; });
    loop_.RunUntil([&] { return result.has_value(); });
    return result.value_or(absl::UnknownError("waited in vain"));
  }
  absl::StatusOr<BatchOutcome> Await(
      const std::function<void(std::function<void(absl::StatusOr<BatchOutcome>)>)>& start) {
    std::optional<absl::StatusOr<BatchOutcome>> result;
    start([&](absl::StatusOr<BatchOutcome> outcome) { result = outcome; });
    loop_.RunUntil([&] { return result.has_value(); });
    return result.value_or(absl::UnknownError("waited in vain"));
  }

  const TemporaryDirectory directory_;
  const SmallJob small_{.directory = directory_.path()};
  int64_t micro_batch_size_ = 0;
  std::vector<int64_t> trained_;  // examples of the programs that train, as they are made
  PostedLoop loop_;
  FakeDevice* device_ = nullptr;  // of the runner
  std::unique_ptr<ComputeThread> computer_;
};

TEST_F(ComputeThreadDeviceTest, ABatchThatDoesNotFitEndsThePreparation) {
  NewComputer(60 << 10);
  const absl::Status status = Prepare().status();
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("16 examples"), HasSubstr("\"micro_batch_size\" to ")));
  EXPECT_EQ(ExitCodeOf(status), kExitBadConfiguration);
}

// A step has but the time of a lease, and a program may take longer to make.
TEST_F(ComputeThreadDeviceTest, ProgramsAreMadeBeforeTheFirstStep) {
  for (const auto& [micro_batch_size, programs] :
       {std::pair<int64_t, std::vector<int64_t>>(0, {8, 16}), {12, {8, 4, 12}}, {5, {3, 5, 1}}}) {
    SCOPED_TRACE(micro_batch_size);
    micro_batch_size_ = micro_batch_size;
    trained_.clear();
    NewComputer(int64_t{1} << 30);
    ASSERT_TRUE(Prepare().ok());
    EXPECT_THAT(trained_, testing::UnorderedElementsAreArray(programs));
    trained_.clear();
    const uint64_t steps = 13;  // an epoch: 200 examples, 16 in a batch
    computer_->Prefetch(0, steps);
    for (uint64_t step = 0; step < steps; ++step) {
      const auto trained = Await([&](auto done) {
        computer_->Train(
            step, {}, [](int, int) {}, done);
      });
      ASSERT_TRUE(trained.ok()) << trained.status();
    }
    EXPECT_THAT(trained_, testing::IsEmpty());
  }
}

TEST_F(ComputeThreadDeviceTest, CopiesOfTheModelDoNotHoldTheWorkerUp) {
  NewComputer(int64_t{1} << 30);
  const auto prepared = Prepare();
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  const size_t model = prepared->layout->size * sizeof(float);
  EXPECT_GE(device_->pinned_bytes(), static_cast<int64_t>(3 * model));
  computer_->Prefetch(0, 1);
  const auto trained = Await([&](auto done) {
    computer_->Train(
        0, {}, [](int, int) {}, done);
  });
  ASSERT_TRUE(trained.ok()) << trained.status();
  computer_->PrefetchEvaluation(0);
  const auto evaluated = Await([&](auto done) { computer_->Evaluate(0, done); });
  ASSERT_TRUE(evaluated.ok()) << evaluated.status();
  EXPECT_EQ(std::count(device_->log().begin(), device_->log().end(), "host: held up"), 0);
}

// A batch that was in memory when the one before was computed is on the device; one that is read
// anew in another timeline is copied anew.
TEST_F(ComputeThreadDeviceTest, TheNextBatchIsOnTheDeviceWhenItsTurnComes) {
  NewComputer(int64_t{1} << 30);
  ASSERT_TRUE(Prepare().ok());
  // Whether the context alone was copied before the parameters.
  const auto train = [&](uint64_t step, uint64_t* batches_ready) {
    device_->log().clear();
    const auto trained = Await([&](auto done) {
      computer_->Train(
          step, {}, [](int, int) {}, done);
    });
    EXPECT_TRUE(trained.ok()) << trained.status();
    *batches_ready = trained.ok() ? trained->batches_ready : 0;
    return std::count(device_->log().begin(), device_->log().end(), "in: copy 32") == 1;
  };
  uint64_t ready = 0;
  uint64_t step = 0;
  do {  // until one is there
    computer_->CancelPrefetch();
    step = 0;
    computer_->Prefetch(step, 12);
    EXPECT_FALSE(train(step, &ready));
  } while (ready == 0);
  for (; ready > 0 && step < 10; ++step) EXPECT_TRUE(train(step + 1, &ready));
  do {
    computer_->CancelPrefetch();
    step = 0;
    computer_->Prefetch(step, 12);
    EXPECT_FALSE(train(step, &ready));
  } while (ready == 0);
  computer_->CancelAll();
  computer_->Prefetch(step + 1, 5);
  EXPECT_FALSE(train(step + 1, &ready));
}

}  // namespace
}  // namespace shoal
