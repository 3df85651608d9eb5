// Steps that begin before all of their parameters are there.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "tests/worker/step/compute_thread_fixture.h"
#include "tests/worker/step/passing_runner.h"
#include "worker/compute/registry/create_model_runner.h"

namespace shoal {
namespace {

using testing::IsEmpty;

// Says of all variables that they are done, whatever has arrived.
class HastyRunner : public PassingRunner {
 public:
  HastyRunner(std::unique_ptr<ModelRunner> runner, EventLoop* loop, std::function<void()> on_begun)
      : PassingRunner(std::move(runner)), loop_(loop), on_begun_(std::move(on_begun)) {}

  absl::StatusOr<BatchResult> Train(const Batch& batch, uint64_t, std::span<const float>,
                                    std::span<float>,
                                    const std::function<void(int)>& on_variable_done,
                                    ArrivingParameters*) override {
    loop_->Post(on_begun_);
    for (int v = static_cast<int>(layout().variables.size()) - 1; v >= 0; --v) on_variable_done(v);
    return BatchResult{.examples = batch.examples, .metric_sums = {0}};
  }

 private:
  EventLoop* const loop_;
  const std::function<void()> on_begun_;
};

class ComputeThreadArrivalTest : public ComputeThreadTest {
 protected:
  ComputeThreadArrivalTest() {
    create_runner_ = [this](ModelRunner::Options options) {
      options.on_work_timed = [this](const std::string&, std::chrono::nanoseconds) {
        loop_.Post([this] { ++computed_; });
      };
      return CreateModelRunner(std::move(options));
    };
  }

  void PrepareSmallJob() {
    NewComputer();
    const Job job = small_.Load();
    auto prepared = Prepare(job.ResolvedText());
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    prepared_ = *std::move(prepared);
    values_.resize(prepared_.layout->size);
    Initialize(job, *prepared_.layout, values_);
    all_.clear();
    for (int ps = 0; ps < 2; ++ps) {
      const int count = static_cast<int>(prepared_.shard_map->ps(ps).chunks.size());
      for (int chunk = 0; chunk < count; ++chunk) all_.push_back({ps, chunk});
    }
    ASSERT_GE(all_.size(), 4u);
  }
  void ForgetValues() { std::ranges::fill(prepared_.parameters, NAN); }
  // They come into the buffer.
  void Write(const ChunkId& id) {
    for (const ChunkPiece& piece : prepared_.shard_map->ps(id.ps).chunks[id.chunk].pieces) {
      const int64_t begin =
          prepared_.layout->variables[piece.variable].offset + piece.variable_offset;
      std::copy_n(values_.begin() + begin, piece.size, prepared_.parameters.begin() + begin);
    }
  }
  // Those with a piece of the last layer, or the others.
  std::vector<ChunkId> OfLastLayer(bool wanted) const {
    const int last = static_cast<int>(prepared_.layout->variables.size()) - 2;  // and its bias
    std::vector<ChunkId> chunks;
    for (const ChunkId& id : all_) {
      const auto& pieces = prepared_.shard_map->ps(id.ps).chunks[id.chunk].pieces;
      if (std::ranges::any_of(pieces, [&](const auto& piece) { return piece.variable >= last; }) ==
          wanted)
        chunks.push_back(id);
    }
    return chunks;
  }
  void Begin(std::vector<ChunkId> missing) {
    outcome_.reset();
    computer_->Train(
        1, std::move(missing),
        [this](int ps, int chunk) {
          chunks_.push_back({ps, chunk});
        },
        [this](absl::StatusOr<BatchOutcome> outcome) { outcome_ = std::move(outcome); });
  }
  void Arrive(const std::vector<ChunkId>& chunks) {
    for (const ChunkId& id : chunks) {
      Write(id);
      computer_->Arrived(id.ps, id.chunk);
    }
  }
  void AwaitOutcome() {
    loop_.RunUntil([this] { return outcome_.has_value(); });
  }
  std::vector<float> Gradients() const {
    std::vector<float> gradients;
    for (const ModelLayout::Extent& extent : prepared_.layout->variables) {
      const auto begin = prepared_.gradients.begin() + extent.offset;
      gradients.insert(gradients.end(), begin, begin + extent.size);
    }
    return gradients;
  }

  StepComputer::Prepared prepared_;
  std::vector<float> values_;
  std::vector<ChunkId> all_;
  int computed_ = 0;             // ops
  std::vector<ChunkId> chunks_;  // that are said to be complete
  std::optional<absl::StatusOr<BatchOutcome>> outcome_;
};

TEST_F(ComputeThreadArrivalTest, TheFirstLayerIsComputedBeforeTheLastHasArrived) {
  PrepareSmallJob();
  Arrive(all_);
  Begin({});
  AwaitOutcome();
  ASSERT_TRUE(outcome_->ok()) << outcome_->status();
  EXPECT_EQ((*outcome_)->parameter_wait_us, 0u);
  const std::vector<float> expected = Gradients();

  ForgetValues();
  std::ranges::fill(prepared_.gradients, NAN);
  chunks_.clear();
  ASSERT_TRUE(computer_->BeginsEarly());
  Begin(all_);
  computed_ = 0;
  const std::vector<ChunkId> early = OfLastLayer(false);
  ASSERT_FALSE(early.empty());
  Arrive(early);
  loop_.RunUntil([this] { return computed_ > 0; });
  EXPECT_THAT(chunks_, IsEmpty());
  EXPECT_FALSE(outcome_.has_value());
  Arrive(OfLastLayer(true));
  AwaitOutcome();
  ASSERT_TRUE(outcome_->ok()) << outcome_->status();
  EXPECT_EQ(Gradients(), expected);
  EXPECT_THAT(chunks_, testing::UnorderedElementsAreArray(all_));
  // As answers to pushes do.
  Arrive(all_);
  EXPECT_TRUE(Train(2).ok());
}

TEST_F(ComputeThreadArrivalTest, AStepWhoseParametersDoNotArriveIsCancelled) {
  PrepareSmallJob();
  for (const bool with_timeline : {false, true}) {
    for (const bool computing : {false, true}) {
      ForgetValues();
      computed_ = 0;
      Begin(all_);
      if (computing) {
        Arrive(OfLastLayer(false));
        loop_.RunUntil([this] { return computed_ > 0; });
      }
      with_timeline ? computer_->CancelAll() : computer_->CancelStep();
      AwaitOutcome();
      EXPECT_TRUE(absl::IsCancelled(outcome_->status())) << outcome_->status();
      EXPECT_THAT(chunks_, IsEmpty());
      Arrive(all_);
      EXPECT_TRUE(Train(1).ok()) << "another one is computed as ever";
    }
  }
}

TEST_F(ComputeThreadArrivalTest, EndsWhileItWaits) {
  PrepareSmallJob();
  Begin(all_);
  Arrive(OfLastLayer(false));
  loop_.RunUntil([this] { return computed_ > 0; });
  computer_.reset();
}

// Its version may still be rejected.
TEST_F(ComputeThreadArrivalTest, NothingIsSaidOfAStepBeforeAllIsThere) {
  bool begun = false;
  create_runner_ =
      [&](ModelRunner::Options options) -> absl::StatusOr<std::unique_ptr<ModelRunner>> {
    return std::make_unique<HastyRunner>(*CreateModelRunner(std::move(options)), &loop_,
                                         [&begun] { begun = true; });
  };
  PrepareSmallJob();
  Begin(all_);
  loop_.RunUntil([&begun] { return begun; });
  computer_->CancelStep();
  AwaitOutcome();
  EXPECT_TRUE(absl::IsCancelled(outcome_->status())) << outcome_->status();
  EXPECT_THAT(chunks_, IsEmpty());
  Begin(all_);
  Arrive(all_);
  AwaitOutcome();
  EXPECT_TRUE(outcome_->ok()) << outcome_->status();
  EXPECT_THAT(chunks_, testing::UnorderedElementsAreArray(all_));
}

// The loop brings what they would wait for; and a cancelled step says nothing of the next.
TEST_F(ComputeThreadArrivalTest, AStepOnTheLoopDoesNotBeginEarly) {
  short_step_ = std::chrono::hours(1);
  create_runner_ = CreateModelRunner;
  NewComputer(nullptr);
  ASSERT_TRUE(Prepare(small_.Load().ResolvedText()).ok());
  EXPECT_TRUE(computer_->BeginsEarly());
  Begin({{0, 0}});
  computer_->CancelStep();
  AwaitOutcome();
  EXPECT_TRUE(computer_->BeginsEarly());
  ASSERT_TRUE(Train(0).ok());
  EXPECT_FALSE(computer_->BeginsEarly());
}

TEST_F(ComputeThreadArrivalTest, LocalStepsDoNotBeginEarly) {
  Job job = small_.Load();
  job.strategy.name = "local";
  job.strategy.batches_per_step = 4;
  job.strategy.outer_optimizer = R"({"class_name": "SGD", "config": {"learning_rate": 1}})";
  NewComputer();
  ASSERT_TRUE(Prepare(job.ResolvedText()).ok());
  EXPECT_FALSE(computer_->BeginsEarly());
}

}  // namespace
}  // namespace shoal
