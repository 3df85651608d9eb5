// Steps of the strategy local: several batches, by an optimizer of the worker's own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <map>

#include "tests/worker/step/compute_thread_fixture.h"
#include "tests/worker/step/passing_runner.h"
#include "worker/compute/registry/create_model_runner.h"

namespace shoal {
namespace {

using testing::HasSubstr;

constexpr char kAdam[] = R"({"class_name": "Adam", "config": {"learning_rate": 0.01}})";

class ComputeThreadLocalTest : public ComputeThreadTest {
 protected:
  // 200 examples are 13 batches: blocks of 4, 4, 4 and 1.
  Job LocalJob(uint64_t batches = 4) const {
    Job job = small_.Load();
    job.strategy.name = "local";
    job.strategy.batches_per_step = batches;
    job.strategy.outer_optimizer = R"({"class_name": "SGD", "config": {"learning_rate": 1}})";
    job.optimizer = kAdam;
    return job;
  }
  // What is pushed for what is in chunks; gaps between variables are of no matter.
  std::vector<float> Pushed(const StepComputer::Prepared& prepared) const {
    std::vector<float> pushed;
    for (const ModelLayout::Extent& extent : prepared.layout->variables) {
      const auto begin = prepared.gradients.begin() + extent.offset;
      pushed.insert(pushed.end(), begin, begin + extent.size);
    }
    return pushed;
  }
};

TEST_F(ComputeThreadLocalTest, PushesTheDifferenceOfALoopOverItsBatches) {
  const Job job = LocalJob();
  const auto prepared = Prepare(job.ResolvedText());
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  EXPECT_EQ(prepared->total_steps, 8u) << "2 epochs";
  Initialize(job, *prepared->layout, prepared->parameters);

  const auto runner = ReferenceRunner(job);
  BatchSource source = TrainingBatches(job);
  const auto optimizer = *MakeOptimizer(job.optimizer);
  std::vector<float> values(prepared->layout->size), gradients(values.size()), m(values.size()),
      v(values.size());
  uint64_t batch = 0;
  // The last block of the first epoch has one batch, and the optimizer goes on.
  for (uint64_t step = 0; step < 5; ++step) {
    const std::vector<float> before(prepared->parameters.begin(), prepared->parameters.end());
    values = before;
    uint64_t examples = 0;
    double loss = 0;
    std::vector<uint64_t> indices;
    for (int i = 0; i < (step == 3 ? 1 : 4); ++i, ++batch) {
      const std::unique_ptr<LoadedBatch> loaded = *source.Take(batch);
      const auto result = runner->Train({.examples = static_cast<int64_t>(loaded->examples),
                                         .inputs = {loaded->inputs[0]},
                                         .target = loaded->targets},
                                        batch, values, gradients, nullptr);
      ASSERT_TRUE(result.ok()) << result.status();
      optimizer->Prepare(batch + 1)->Apply(gradients, values, values,
                                           std::vector<float*>{m.data(), v.data()});
      examples += result->examples;
      loss += result->loss_sum;
      indices.insert(indices.end(), loaded->indices.begin(), loaded->indices.end());
    }
    int chunks = 0;
    const auto outcome = Train(step, [&](int, int) { ++chunks; });
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    EXPECT_GT(chunks, 4) << "all that are pushed";
    EXPECT_EQ(outcome->examples, examples);
    EXPECT_NEAR(outcome->loss_sum, loss, 1e-9 * loss);
    ASSERT_EQ(batches_.size(), step + 1);
    EXPECT_EQ(batches_.back().step, step);
    EXPECT_EQ(batches_.back().indices, indices);
    EXPECT_TRUE(std::equal(before.begin(), before.end(), prepared->parameters.begin()))
        << "a worker may do another step of the same round from them";
    for (const ModelLayout::Extent& extent : prepared->layout->variables) {
      for (int64_t k = extent.offset; k < extent.offset + extent.size; ++k)
        ASSERT_EQ(prepared->gradients[k], before[k] - values[k]) << "step " << step;
    }
    // As with an outer rate of one.
    std::copy(values.begin(), values.end(), prepared->parameters.begin());
  }
}

// Three groups of chunks are exchanged after the first, second and third of four batches while
// there is another step to come, else what is left after the last: then no batch is left out. The
// ps' rate is one, so that the values are as if there were no exchange, and those of a job of
// single batches.
TEST_F(ComputeThreadLocalTest, FragmentsAreExchangedWhileTheStepIsComputed) {
  const auto alone = Prepare(LocalJob(1).ResolvedText());
  ASSERT_TRUE(alone.ok()) << alone.status();
  Initialize(LocalJob(), *alone->layout, alone->parameters);
  std::vector<std::vector<float>> after;  // so many batches
  for (uint64_t batch = 0; batch <= 8; ++batch) {
    after.emplace_back(alone->parameters.begin(), alone->parameters.end());
    ASSERT_TRUE(Train(batch).ok());
    for (const ModelLayout::Extent& extent : alone->layout->variables) {
      for (int64_t k = extent.offset; k < extent.offset + extent.size; ++k)
        alone->parameters[k] -= alone->gradients[k];
    }
  }

  NewComputer();
  Job job = LocalJob();
  job.strategy.fragments = 3;
  const auto prepared = Prepare(job.ResolvedText());
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  std::copy(after[0].begin(), after[0].end(), prepared->parameters.begin());
  const Fragments fragments(*prepared->shard_map, 3);
  ASSERT_EQ(fragments.count(), 3u);
  std::map<std::pair<int, int>, uint64_t> fragment_of;
  for (uint64_t f = 0; f < 3; ++f) {
    for (const ChunkId& id : fragments.group(f)) fragment_of[{id.ps, id.chunk}] = f;
  }
  computer_->Prefetch(0, 2);
  for (uint64_t step = 0; step < 2; ++step) {
    size_t chunks = 0;
    const auto outcome = Train(step, [&](int ps, int chunk) {
      ++chunks;
      const uint64_t in_first = 1 + fragment_of[{ps, chunk}];
      const uint64_t from = step == 0 ? 0 : in_first, to = step == 0 ? in_first : 8;
      for (const ChunkPiece& piece : prepared->shard_map->ps(ps).chunks[chunk].pieces) {
        const int64_t begin =
            prepared->layout->variables[piece.variable].offset + piece.variable_offset;
        for (int64_t k = begin; k < begin + piece.size; ++k) {
          ASSERT_NEAR(prepared->gradients[k], after[from][k] - after[to][k], 1e-5)
              << "step " << step << ", fragment " << in_first - 1;
          prepared->parameters[k] -= prepared->gradients[k];
        }
      }
      computer_->Arrived(ps, chunk);
    });
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    EXPECT_EQ(chunks, fragment_of.size()) << "each once";
  }
  // Another timeline begins with what is pulled.
  computer_->CancelAll();
  std::copy(after[0].begin(), after[0].end(), prepared->parameters.begin());
  ASSERT_TRUE(Train(0).ok());
  for (const ModelLayout::Extent& extent : prepared->layout->variables) {
    for (int64_t k = extent.offset; k < extent.offset + extent.size; ++k)
      ASSERT_NEAR(prepared->gradients[k], after[0][k] - after[4][k], 1e-5);
  }
}

// With next to no rate next to nothing is pushed, whatever the others do.
TEST_F(ComputeThreadLocalTest, ProgressOfOthersIsNoDifferenceOfThisWorker) {
  Job job = LocalJob();
  job.strategy.fragments = 3;
  job.optimizer = R"({"class_name": "SGD", "config": {"learning_rate": 1e-12}})";
  const auto prepared = Prepare(job.ResolvedText());
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  Initialize(job, *prepared->layout, prepared->parameters);
  computer_->Prefetch(0, 4);
  for (uint64_t step = 0; step < 4; ++step) {
    std::vector<std::pair<int, int>> chunks;
    ASSERT_TRUE(Train(step, [&](int ps, int chunk) { chunks.emplace_back(ps, chunk); }).ok());
    EXPECT_THAT(Pushed(*prepared), testing::Each(testing::FloatNear(0, 1e-6))) << "step " << step;
    for (float& value : prepared->parameters) value += 0.25f;
    for (const auto& [ps, chunk] : chunks) computer_->Arrived(ps, chunk);
  }
}

// So does a momentum of the worker's own, of the strategy async.
TEST_F(ComputeThreadLocalTest, KeptValuesEndWithTheTimelineNotWithLeases) {
  Job with_momentum = small_.Load();
  with_momentum.optimizer = R"({"class_name": "SGD", "config": {"learning_rate": 0.01}})";
  with_momentum.strategy.worker_momentum = 0.9;
  for (const Job& job : {LocalJob(), with_momentum}) {
    SCOPED_TRACE(job.strategy.name);
    std::map<std::string, std::vector<float>> second;  // step, by what came before it
    for (const std::string between : {"nothing", "other leases", "another timeline"}) {
      NewComputer();
      const auto prepared = Prepare(job.ResolvedText());
      ASSERT_TRUE(prepared.ok()) << prepared.status();
      Initialize(job, *prepared->layout, prepared->parameters);
      ASSERT_TRUE(Train(0).ok());
      if (between == "other leases") computer_->CancelPrefetch();
      if (between == "another timeline") computer_->CancelAll();
      ASSERT_TRUE(Train(1).ok());
      second[between] = Pushed(*prepared);
    }
    NewComputer();
    const auto prepared = Prepare(job.ResolvedText());
    Initialize(job, *prepared->layout, prepared->parameters);
    ASSERT_TRUE(Train(1).ok());
    EXPECT_EQ(second["other leases"], second["nothing"]);
    EXPECT_EQ(second["another timeline"], Pushed(*prepared)) << "as a worker just started";
    EXPECT_NE(second["another timeline"], second["nothing"]);
  }
}

// Counts batches, and has something happen in one.
class CountingRunner : public PassingRunner {
 public:
  CountingRunner(std::unique_ptr<ModelRunner> runner, std::function<void()> on_batch)
      : PassingRunner(std::move(runner)), on_batch_(std::move(on_batch)) {}

  absl::StatusOr<BatchResult> Train(const Batch& batch, uint64_t step,
                                    std::span<const float> parameters, std::span<float> gradients,
                                    const std::function<void(int)>& on_variable_done,
                                    ArrivingParameters* arriving) override {
    on_batch_();
    return runner().Train(batch, step, parameters, gradients, on_variable_done, arriving);
  }

 private:
  const std::function<void()> on_batch_;
};

// Nobody waits for the rest of 500 batches.
TEST_F(ComputeThreadLocalTest, AStepOfATimelineThatIsOverIsCancelled) {
  int batches = 0;
  create_runner_ = [&](ModelRunner::Options options) {
    absl::StatusOr<std::unique_ptr<ModelRunner>> runner = CreateModelRunner(std::move(options));
    if (runner.ok()) {
      *runner = std::make_unique<CountingRunner>(*std::move(runner), [&] {
        if (++batches == 2) {
          EXPECT_EQ(computer_->progress().batches_done, 1u);
          EXPECT_EQ(computer_->progress().batches, 13u);
          computer_->CancelAll();
          EXPECT_EQ(computer_->progress().batches, 0u);
        }
      });
    }
    return runner;
  };
  NewComputer();
  ASSERT_TRUE(Prepare(LocalJob(13).ResolvedText()).ok());
  int chunks = 0;
  const absl::Status over = Train(0, [&](int, int) { ++chunks; }).status();
  EXPECT_TRUE(absl::IsCancelled(over)) << over;
  EXPECT_EQ(batches, 2);
  EXPECT_EQ(chunks, 0) << "nothing of it is pushed";
  EXPECT_TRUE(Train(0).ok()) << "in the next timeline";
}

// It was asked for before the timeline ended, and begun by nobody: it neither holds up the next one
// nor leaves anything behind.
TEST_F(ComputeThreadLocalTest, AStepThatWaitsWhenItsTimelineEndsIsNotBegun) {
  std::atomic<int> batches = 0;
  std::promise<void> began, go_on;
  create_runner_ = [&](ModelRunner::Options options) {
    absl::StatusOr<std::unique_ptr<ModelRunner>> runner = CreateModelRunner(std::move(options));
    if (runner.ok()) {
      *runner = std::make_unique<CountingRunner>(*std::move(runner), [&] {
        if (++batches > 1) return;
        began.set_value();
        go_on.get_future().wait();
      });
    }
    return runner;
  };
  NewComputer();
  ASSERT_TRUE(Prepare(LocalJob().ResolvedText()).ok());
  std::vector<absl::Status> ends;
  for (const uint64_t step : {0, 1}) {
    computer_->Train(
        step, {}, [](int, int) { ADD_FAILURE() << "pushed"; },
        [&ends](absl::StatusOr<BatchOutcome> outcome) { ends.push_back(outcome.status()); });
  }
  began.get_future().wait();
  computer_->CancelAll();
  go_on.set_value();
  loop_.RunUntil([&] { return ends.size() == 2; });
  EXPECT_TRUE(absl::IsCancelled(ends[0]) && absl::IsCancelled(ends[1])) << ends[0] << ends[1];
  EXPECT_EQ(batches, 1);
}

TEST_F(ComputeThreadLocalTest, ItsMemoryIsCounted) {
  const Job job = LocalJob();
  memory_ = {.bytes = 1000, .text = "this machine has nothing"};
  NewComputer();
  EXPECT_THAT(std::string(Prepare(job.ResolvedText()).status().message()),
              HasSubstr("inner optimizer"));
}

}  // namespace
}  // namespace shoal
