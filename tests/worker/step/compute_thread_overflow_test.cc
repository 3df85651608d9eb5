// Steps whose gradient overflows float16: what a worker makes of them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "tests/worker/step/compute_thread_fixture.h"
#include "tests/worker/step/passing_runner.h"
#include "worker/compute/registry/create_model_runner.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Says of some batches that their gradient overflowed.
class OverflowingRunner : public PassingRunner {
 public:
  // `times_forgotten` must outlive this.
  OverflowingRunner(std::unique_ptr<ModelRunner> runner, std::set<uint64_t> batches,
                    int* times_forgotten)
      : PassingRunner(std::move(runner)),
        batches_(std::move(batches)),
        times_forgotten_(*times_forgotten) {}

  bool scales_loss() const override { return true; }
  void ForgetLossScale() override { ++times_forgotten_; }
  absl::StatusOr<BatchResult> Train(const Batch& batch, uint64_t step,
                                    std::span<const float> parameters, std::span<float> gradients,
                                    const std::function<void(int)>& on_variable_done,
                                    ArrivingParameters* arriving) override {
    const bool overflows = batches_.contains(step);
    absl::StatusOr<BatchResult> result = runner().Train(
        batch, step, parameters, gradients, overflows ? nullptr : on_variable_done, arriving);
    if (!result.ok()) return result;
    result->loss_scale = 1024;
    result->overflowed = overflows;
    if (overflows) std::ranges::fill(gradients, std::numeric_limits<float>::quiet_NaN());
    return result;
  }

 private:
  const std::set<uint64_t> batches_;
  int& times_forgotten_;
};

class ComputeThreadOverflowTest : public ComputeThreadTest {
 protected:
  // A computer in which these batches overflow.
  absl::StatusOr<StepComputer::Prepared> PrepareOverflowing(const Job& job,
                                                            std::set<uint64_t> batches) {
    create_runner_ = [this, batches](ModelRunner::Options options) {
      absl::StatusOr<std::unique_ptr<ModelRunner>> runner = CreateModelRunner(std::move(options));
      if (runner.ok()) {
        *runner =
            std::make_unique<OverflowingRunner>(*std::move(runner), batches, &times_forgotten_);
      }
      return runner;
    };
    NewComputer();
    absl::StatusOr<StepComputer::Prepared> prepared = Prepare(job.ResolvedText());
    if (prepared.ok()) Initialize(job, *prepared->layout, prepared->parameters);
    return prepared;
  }
  static std::vector<float> Pushed(const StepComputer::Prepared& prepared) {
    std::vector<float> pushed;
    for (const ModelLayout::Extent& extent : prepared.layout->variables) {
      const auto begin = prepared.gradients.begin() + extent.offset;
      pushed.insert(pushed.end(), begin, begin + extent.size);
    }
    return pushed;
  }

  int times_forgotten_ = 0;
};

TEST_F(ComputeThreadOverflowTest, AStepThatOverflowsIsSkipped) {
  for (const char* optimizer :
       {R"("adam")", R"({"class_name": "SGD", "config": {"global_clipnorm": 0.5}})",
        R"({"class_name": "SGD", "config": {"clipnorm": 0.5}})"}) {
    SCOPED_TRACE(optimizer);
    Job job = small_.Load();
    job.optimizer = optimizer;
    const auto prepared = PrepareOverflowing(job, {1});
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    for (uint64_t step = 0; step < 3; ++step) {
      int chunks = 0;
      const auto outcome = Train(step, [&](int, int) { ++chunks; });
      ASSERT_TRUE(outcome.ok()) << outcome.status();
      EXPECT_EQ(outcome->skipped, step == 1);
      EXPECT_EQ(outcome->overflows, step == 1 ? 1u : 0u);
      EXPECT_EQ(outcome->loss_scale, 1024);
      EXPECT_EQ(outcome->examples, 16u);
      EXPECT_GT(outcome->loss_sum, 0);
      EXPECT_EQ(chunks > 0, step != 1);
    }
  }
}

TEST_F(ComputeThreadOverflowTest, AWorkersMomentumKnowsNothingOfIt) {
  Job job = small_.Load();
  job.optimizer = R"({"class_name": "SGD", "config": {"learning_rate": 0.01}})";
  job.strategy.worker_momentum = 0.9;
  std::vector<std::vector<float>> last;
  for (const std::vector<uint64_t>& steps : {std::vector<uint64_t>{0, 1, 2}, {0, 2}}) {
    const auto prepared = PrepareOverflowing(job, {1});
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    for (const uint64_t step : steps) ASSERT_TRUE(Train(step).ok());
    last.push_back(Pushed(*prepared));
  }
  EXPECT_EQ(last[0], last[1]);
}

// Of a block the batches that do not overflow are what it comes to; of one of which all do, the
// difference is nothing, and it is pushed as every other.
TEST_F(ComputeThreadOverflowTest, ABlockIsWhatItsOtherBatchesComeTo) {
  Job job = SmallJob{.directory = directory_.path(), .normalization = R"("momentum": 0.5)"}.Load();
  job.strategy.name = "local";
  job.strategy.batches_per_step = 3;
  job.strategy.outer_optimizer = R"({"class_name": "SGD", "config": {"learning_rate": 1}})";
  job.optimizer = R"({"class_name": "Adam", "config": {"learning_rate": 0.01}})";
  const auto prepared = PrepareOverflowing(job, {1, 3, 4, 5});
  ASSERT_TRUE(prepared.ok()) << prepared.status();

  const KerasModel model = *ParseKerasModel(job.model_json);
  const auto runner = ReferenceRunner(job);
  BatchSource source = TrainingBatches(job);
  InnerOptimizer inner({.optimizer = *MakeOptimizer(job.optimizer),
                        .batches_per_step = 3,
                        .variables = model.graph.variables()});
  std::vector<float> pushed(prepared->layout->size);
  inner.Begin(prepared->parameters);
  for (const uint64_t batch : {0, 2}) {
    const std::unique_ptr<LoadedBatch> loaded = *source.Take(batch);
    ASSERT_TRUE(runner
                    ->Train({.examples = static_cast<int64_t>(loaded->examples),
                             .inputs = {loaded->inputs[0]},
                             .target = loaded->targets},
                            batch, inner.values(), pushed, nullptr)
                    .ok());
    inner.Update(batch, pushed);
  }
  inner.Finish(prepared->parameters, pushed);
  int chunks = 0;
  const auto outcome = Train(0, [&](int, int) { ++chunks; });
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_FALSE(outcome->skipped);
  EXPECT_EQ(outcome->overflows, 1u);
  EXPECT_EQ(outcome->examples, 48u);
  EXPECT_GT(chunks, 4);
  for (const ModelLayout::Extent& extent : prepared->layout->variables) {
    for (int64_t k = extent.offset; k < extent.offset + extent.size; ++k)
      ASSERT_EQ(prepared->gradients[k], pushed[k]) << k;
  }

  const int all = std::exchange(chunks, 0);
  const auto skip = Train(1, [&](int, int) { ++chunks; });
  ASSERT_TRUE(skip.ok()) << skip.status();
  EXPECT_FALSE(skip->skipped);
  EXPECT_EQ(skip->overflows, 3u);
  EXPECT_EQ(chunks, all);
  for (size_t v = 0; v < model.graph.variables().size(); ++v) {
    const ModelLayout::Extent& extent = prepared->layout->variables[v];
    const bool averages = model.graph.variables()[v].rule == UpdateRule::kMovingAverage;
    for (int64_t k = extent.offset; k < extent.offset + extent.size; ++k) {
      // A sample that is the average itself.
      ASSERT_FLOAT_EQ(prepared->gradients[k], averages ? prepared->parameters[k] : 0) << k;
    }
  }
}

TEST_F(ComputeThreadOverflowTest, TheLossScaleEndsWithTheTimeline) {
  ASSERT_TRUE(PrepareOverflowing(small_.Load(), {}).ok());
  ASSERT_TRUE(Train(0).ok());
  computer_->CancelPrefetch();
  ASSERT_TRUE(Train(1).ok());
  EXPECT_EQ(times_forgotten_, 0);
  computer_->CancelAll();
  ASSERT_TRUE(Train(1).ok());
  EXPECT_EQ(times_forgotten_, 1);
}

// Promise 9: what others compute is not to depend on what this worker has computed before.
TEST_F(ComputeThreadOverflowTest, RoundsAreRejectedByWhoHasALossScale) {
  Job rounds = small_.Load();
  rounds.strategy.name = "sync";
  rounds.strategy.gradients_per_update = 2;
  const absl::Status rejected = PrepareOverflowing(rounds, {}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(rejected)) << rejected;
  EXPECT_THAT(
      std::string(rejected.message()),
      AllOf(HasSubstr("\"mixed_bfloat16\""), HasSubstr("\"async\""), HasSubstr("--device=cpu")));
  Job local = rounds;
  local.strategy.name = "local";
  local.strategy.outer_optimizer = R"({"class_name": "SGD", "config": {"learning_rate": 1}})";
  EXPECT_TRUE(absl::IsFailedPrecondition(PrepareOverflowing(local, {}).status()));
  local.strategy.gradients_per_update = 0;
  EXPECT_TRUE(PrepareOverflowing(local, {}).ok());
  // Whoever computes all of it in float32 takes part.
  create_runner_ = CreateModelRunner;
  NewComputer();
  EXPECT_TRUE(Prepare(rounds.ResolvedText()).ok());
}

}  // namespace
}  // namespace shoal
