// The loss scale: its rule, and training under it on every backend that computes in float16.

#include "worker/compute/runner/loss_scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/model/ops/dense.h"
#include "common/model/training/training_graph.h"
#include "tests/common/loss/loss_of.h"
#include "tests/worker/compute/backend_suite.h"
#include "tests/worker/compute/double_interpreter.h"
#include "tests/worker/compute/models/model_building.h"
#include "tests/worker/compute/models/random_batch.h"
#include "tests/worker/compute/models/sparse_loss.h"
#include "tests/worker/compute/suite_backends.h"
#include "worker/compute/program/page_aligned.h"
#include "worker/compute/runner/graph_runner.h"

namespace shoal {
namespace {

TEST(LossScaleTest, DoublesAfterSoManyFiniteStepsInARow) {
  LossScale scale;
  EXPECT_EQ(scale.value(), 32768);
  for (int step = 1; step < 2000; ++step) scale.NoteFinite();
  EXPECT_EQ(scale.value(), 32768);
  scale.NoteFinite();
  EXPECT_EQ(scale.value(), 65536);
  for (int step = 1; step < 2000; ++step) scale.NoteFinite();
  scale.NoteOverflow();
  EXPECT_EQ(scale.value(), 32768);
  for (int step = 1; step < 2000; ++step) scale.NoteFinite();
  EXPECT_EQ(scale.value(), 32768) << "counted anew";
  scale.NoteFinite();
  EXPECT_EQ(scale.value(), 65536);
}

TEST(LossScaleTest, StaysBetweenOneAndWhatIsFinite) {
  LossScale scale;
  for (int step = 0; step < 15; ++step) scale.NoteOverflow();
  EXPECT_EQ(scale.value(), 1);
  scale.NoteOverflow();
  EXPECT_EQ(scale.value(), 1);
  for (int step = 0; step < 200 * 2000; ++step) scale.NoteFinite();
  EXPECT_TRUE(std::isfinite(scale.value()));
  EXPECT_GT(1 / scale.value(), 0);
  scale.NoteOverflow();
  EXPECT_TRUE(std::isfinite(scale.value()));
}

// A small network whose middle is of layers under the policy, with a normalization.
Graph Model(ComputeDtype type) {
  ModelBuilding model({kBatch, 6, 6, 2});
  model.ComputeIn(type);
  model.Conv2D(8, {.size = {3, 3}, .padding = Padding::kSame}).BatchNormalization().Relu();
  model.Pool2D(Pool2DOp::Kind::kAverage, {.size = {2, 2}, .strides = {2, 2}});
  model.Flatten().Dense(16).Relu();
  return model.ComputeIn(ComputeDtype::kFloat32).Dense(4).Build();
}

// Its kernel is penalised by more than what the loss says of it.
Graph PenalisedModel(ComputeDtype type, int64_t examples = kBatch) {
  Graph graph;
  const ValueId x = graph.AddInput("x", {examples, 8});
  const ValueId kernel =
      graph.AddVariable({.name = "kernel", .shape = {8, 4}, .regularizer = {.l1 = 0.1, .l2 = 3}});
  graph.SetOutputs({*graph.Add(std::make_shared<DenseOp>(), {x, kernel}, "dense", "", type)});
  return graph;
}

// Of losses that are one op and that are formulas, with penalties; and of nothing else.
TEST(LossScaleTest, MultipliesAllGradients) {
  Graph model = PenalisedModel(ComputeDtype::kFloat32, /*examples=*/5);
  const ValueId average = model.AddVariable(
      {.name = "average", .shape = {4}, .rule = UpdateRule::kMovingAverage, .momentum = 0.9});
  model.SetSample(average, average);
  for (const char* name : {"MeanSquaredError", "Huber"}) {
    SCOPED_TRACE(name);
    const auto training = BuildTrainingGraph(model, *LossOf(name), {.scales_loss = true});
    ASSERT_TRUE(training.ok()) << training.status();
    std::vector<std::vector<double>> gradients, losses;
    for (const double scale : {1, 8}) {
      std::mt19937 random(7);
      DoubleInterpreter interpreter(*training);
      const auto fill = [&random](std::vector<double>& values, size_t size) {
        for (size_t i = 0; i < size; ++i)
          values.push_back(static_cast<double>(random() % 100) / 50 - 1);
      };
      fill(interpreter.variable(0), 32);
      fill(interpreter.variable(1), 4);
      fill(interpreter.input(0), 40);
      fill(interpreter.input(1), 20);
      interpreter.input(2) = {scale};
      interpreter.Train();
      losses.push_back(interpreter.value(training->loss_per_example));
      gradients.push_back(interpreter.value(training->pushed_values[0]));
      EXPECT_EQ(interpreter.value(training->pushed_values[1]), interpreter.variable(1));
    }
    EXPECT_EQ(losses[1], losses[0]);
    for (size_t i = 0; i < gradients[0].size(); ++i)
      EXPECT_NEAR(gradients[1][i], 8 * gradients[0][i], 1e-12);
  }
}

class TrainingWithLossScaleTest : public BackendSuite {
 protected:
  static std::unique_ptr<GraphRunner> MakeRunner(Graph model, int64_t micro_batch_size = 0,
                                                 bool weighted = false) {
    GraphRunner::Options options;
    options.model = std::move(model);
    options.loss = kSparse;
    options.weighted = weighted;
    options.micro_batch_size = micro_batch_size;
    auto backend = CreateSuiteBackend(GetParam());
    EXPECT_TRUE(backend.ok()) << backend.status();
    auto runner = GraphRunner::Create(std::move(options), *std::move(backend));
    EXPECT_TRUE(runner.ok()) << runner.status();
    return *std::move(runner);
  }

  struct Trained {
    BatchResult result;
    std::vector<float> pushed;  // variable by variable
    std::vector<int> done;      // variables, as they were said to be
  };
  static Trained Train(GraphRunner& runner, const Batch& batch,
                       const std::vector<float>& parameters) {
    Trained trained;
    // Pinned, as a worker's are: nothing else holds the host up until they are there.
    PageAlignedFloats gradients(parameters.size());
    const auto pinned = runner.Pin(gradients);
    EXPECT_TRUE(pinned.ok()) << pinned.status();
    const auto result =
        runner.Train(batch, 1, parameters, gradients, [&](int v) { trained.done.push_back(v); });
    EXPECT_TRUE(result.ok()) << result.status();
    trained.result = result.value_or(BatchResult());
    for (const ModelLayout::Extent& extent : runner.layout().variables) {
      const auto begin = gradients.begin() + extent.offset;
      trained.pushed.insert(trained.pushed.end(), begin, begin + extent.size);
    }
    return trained;
  }
  // Of the difference, relative to the second.
  static double Distance(const std::vector<float>& one, const std::vector<float>& other) {
    double squares = 0, all = 0;
    for (size_t i = 0; i < one.size(); ++i) {
      squares += std::pow(double{one[i]} - other[i], 2);
      all += std::pow(double{other[i]}, 2);
    }
    return std::sqrt(squares / all);
  }

  std::mt19937 random_{5};
};

TEST_P(TrainingWithLossScaleTest, GradientsAreThoseOfTheLossWhateverTheScale) {
  auto runner = MakeRunner(Model(ComputeDtype::kFloat16));
  auto exact = MakeRunner(Model(ComputeDtype::kFloat32));
  EXPECT_TRUE(runner->scales_loss());
  EXPECT_FALSE(exact->scales_loss());
  const RandomBatch data(random_, Model(ComputeDtype::kFloat32), *kSparse, 8);
  const std::vector<float> parameters = RandomFloats(random_, runner->layout().size, 0.3f);
  const Trained expected = Train(*exact, data.batch(), parameters);
  EXPECT_EQ(expected.result.loss_scale, 0);
  // The second time steps are recorded, from the third on played.
  for (int run = 0; run < 4; ++run) {
    const Trained trained = Train(*runner, data.batch(), parameters);
    EXPECT_EQ(trained.result.loss_scale, 32768);
    EXPECT_FALSE(trained.result.overflowed);
    EXPECT_LT(Distance(trained.pushed, expected.pushed), 0.02);
    EXPECT_GT(Distance(trained.pushed, expected.pushed), 1e-6) << "it is what was asked for";
    EXPECT_EQ(trained.done.size(), expected.done.size());
    EXPECT_NEAR(trained.result.loss_sum, expected.result.loss_sum, 0.02);
  }
  // Large kernels have large gradients, until the scale is one that they fit in.
  std::vector<float> wild = parameters;
  for (float& value : wild) value *= 20;
  double scale = 32768;
  Trained trained;
  for (; (trained = Train(*runner, data.batch(), wild)).result.overflowed; scale /= 2) {
    EXPECT_EQ(trained.result.loss_scale, scale);
    EXPECT_TRUE(trained.done.empty()) << "nothing leaves";
    EXPECT_TRUE(std::isfinite(trained.result.loss_sum));
    EXPECT_EQ(trained.result.examples, 8);
    ASSERT_GT(scale, 1);
  }
  EXPECT_LT(scale, 32768) << "the test provokes none";
  EXPECT_EQ(trained.done.size(), expected.done.size());
  EXPECT_LT(Distance(trained.pushed, Train(*exact, data.batch(), wild).pushed), 0.02);
  // The recorded steps go by the scale of now.
  trained = Train(*runner, data.batch(), parameters);
  EXPECT_EQ(trained.result.loss_scale, scale);
  EXPECT_LT(Distance(trained.pushed, expected.pushed), 0.02);
  runner->ForgetLossScale();
  EXPECT_EQ(Train(*runner, data.batch(), parameters).result.loss_scale, 32768);
}

// Where a batch is on the device before it is trained on, the scale is that of after the batch
// before.
TEST_P(TrainingWithLossScaleTest, ABatchThatIsThereAlreadyHasTheScaleOfNow) {
  const Graph model = Model(ComputeDtype::kFloat16);
  auto told = MakeRunner(model), untold = MakeRunner(model);
  std::vector<float> parameters = RandomFloats(random_, told->layout().size, 0.3f);
  for (float& value : parameters) value *= 20;
  std::vector<RandomBatch> data;
  for (int i = 0; i < 8; ++i) data.emplace_back(random_, model, *kSparse, 8);
  int overflows = 0;
  for (size_t i = 0; i + 1 < data.size(); ++i) {
    Batch next = data[i + 1].batch(), batch = data[i].batch();
    next.id = i + 2;
    batch.id = i + 1;
    batch.next = &next;
    const Trained trained = Train(*told, batch, parameters);
    const Trained expected = Train(*untold, data[i].batch(), parameters);
    EXPECT_EQ(trained.result.loss_scale, expected.result.loss_scale);
    EXPECT_EQ(trained.result.overflowed, expected.result.overflowed);
    EXPECT_EQ(trained.result.loss_sum, expected.result.loss_sum);
    if (!expected.result.overflowed) {
      EXPECT_EQ(trained.pushed, expected.pushed);
    }
    overflows += expected.result.overflowed;
  }
  EXPECT_GT(overflows, 0) << "the test provokes none";
  EXPECT_LT(overflows, 7);
}

// They are far below what float16 has.
TEST_P(TrainingWithLossScaleTest, SmallGradientsAreNotLost) {
  auto runner = MakeRunner(Model(ComputeDtype::kFloat16), 0, /*weighted=*/true);
  auto exact = MakeRunner(Model(ComputeDtype::kFloat32), 0, /*weighted=*/true);
  const RandomBatch data(random_, Model(ComputeDtype::kFloat32), *kSparse, 8);
  const std::vector<float> weights(8, 1e-6f);
  Batch batch = data.batch();
  batch.weights = weights;
  const std::vector<float> parameters = RandomFloats(random_, runner->layout().size, 0.3f);
  auto no_averages = [](std::vector<float> pushed) {
    // What the moving averages push is of no gradient, and large.
    for (float& value : pushed) value = std::abs(value) > 1e-3f ? 0 : value;
    return pushed;
  };
  const std::vector<float> expected = no_averages(Train(*exact, batch, parameters).pushed);
  EXPECT_LT(Distance(no_averages(Train(*runner, batch, parameters).pushed), expected), 0.03);
}

TEST_P(TrainingWithLossScaleTest, PenaltiesOfVariablesAreInTheScale) {
  auto runner = MakeRunner(PenalisedModel(ComputeDtype::kFloat16));
  auto exact = MakeRunner(PenalisedModel(ComputeDtype::kFloat32));
  const RandomBatch data(random_, PenalisedModel(ComputeDtype::kFloat32), *kSparse, 8);
  const std::vector<float> parameters = RandomFloats(random_, runner->layout().size, 0.3f);
  EXPECT_LT(Distance(Train(*runner, data.batch(), parameters).pushed,
                     Train(*exact, data.batch(), parameters).pushed),
            0.01);
}

// Of a batch in parts, whichever part it is in.
TEST_P(TrainingWithLossScaleTest, AnOverflowOfAPartIsOneOfTheBatch) {
  const Graph model = Model(ComputeDtype::kFloat16);
  const RandomBatch data(random_, model, *kSparse, 8);
  for (const int64_t wild_example : {0, 3, 7}) {
    SCOPED_TRACE(wild_example);
    auto runner = MakeRunner(model, /*micro_batch_size=*/3);
    const std::vector<float> parameters = RandomFloats(random_, runner->layout().size, 0.3f);
    Batch batch = data.batch();
    EXPECT_FALSE(Train(*runner, batch, parameters).result.overflowed);
    std::vector<float> wild = data.input;
    const int64_t size = static_cast<int64_t>(wild.size()) / 8;
    std::fill_n(wild.begin() + wild_example * size, size, std::numeric_limits<float>::infinity());
    batch.inputs = {wild};
    const Trained trained = Train(*runner, batch, parameters);
    EXPECT_TRUE(trained.result.overflowed);
    EXPECT_TRUE(trained.done.empty());
    EXPECT_EQ(trained.result.examples, 8);
    EXPECT_EQ(Train(*runner, data.batch(), parameters).result.loss_scale, 16384) << "once";
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, TrainingWithLossScaleTest,
                         ::testing::ValuesIn(ReducedPrecisionBackends()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace shoal
