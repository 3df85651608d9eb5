#include "worker/compute/runner/graph_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/model/ops/bias.h"
#include "common/model/ops/concatenate.h"
#include "common/model/ops/dense.h"
#include "common/model/ops/gather.h"
#include "common/model/ops/reshape.h"
#include "tests/common/base/fails_with.h"
#include "tests/common/loss/loss_of.h"
#include "tests/worker/compute/backend_suite.h"
#include "tests/worker/compute/expect_near.h"
#include "tests/worker/compute/models/model_building.h"
#include "tests/worker/compute/models/random_batch.h"
#include "tests/worker/compute/models/sparse_loss.h"
#include "tests/worker/compute/suite_backends.h"
#include "worker/compute/registry/create_model_runner.h"

namespace shoal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A model with a use of everything that has to do with the order of steps: branches, a reshape,
// dropout, fused activations, odd channels.
Graph PooledModel(double dropout_rate = 0) {
  ModelBuilding model({kBatch, 9, 9, 2});
  model.Conv2D(5, {.size = {3, 3}, .padding = Padding::kSame}).Relu();
  const ValueId shared = model.current();
  model.Conv2D(5, {.size = {1, 1}}).Relu().Add(shared);
  model.Pool2D(Pool2DOp::Kind::kMax, {.size = {2, 2}, .strides = {2, 2}});
  model.Conv2D(7, {.size = {3, 3}}).Relu();
  model.Pool2D(Pool2DOp::Kind::kMax, {.size = {2, 2}, .strides = {1, 1}});
  return model.Flatten().Dropout(dropout_rate).Dense(6).Relu().Dense(4).Build();
}

// Convolutions, normalizations and residuals of layers under a dtype policy, logits of one without,
// as Keras advises.
Graph MixedModel(ComputeDtype type) {
  ModelBuilding model({kBatch, 9, 9, 3});
  model.ComputeIn(type);
  model.Conv2D(8, {.size = {3, 3}, .padding = Padding::kSame}, 1, false).BatchNormalization();
  model.Activation({.max_value = 6});
  const ValueId shared = model.current();
  model.DepthwiseConv2D({.size = {3, 3}, .padding = Padding::kSame}).BatchNormalization().Relu();
  model.Conv2D(8, {.size = {1, 1}}).Add(shared).Pad({{1, 1, 0}, {1, 1, 0}});
  model.Pool2D(Pool2DOp::Kind::kAverage, {.size = {2, 2}, .strides = {2, 2}}).Dropout(0.2);
  model.GlobalAveragePool2D().Dense(16).Relu();
  return model.ComputeIn(ComputeDtype::kFloat32).Dense(4).Build();
}

// Zeros around images, which some backends have their kernels read where the model writes them:
// before both kinds of convolutions, and before a max pooling, whose windows in the corners often
// have nothing but zeros, as the ReLU before it leaves many. It is read by others, too, also with
// what is around it.
Graph PaddedModel() {
  const Margins below_and_right = {.before = {0, 0, 0}, .after = {1, 1, 0}};
  const Margins around = {.before = {1, 1, 0}, .after = {1, 1, 0}};
  const Window three = {.size = {3, 3}, .strides = {2, 2}};
  ModelBuilding model({kBatch, 10, 8, 3});
  model.Pad(around).Conv2D(5, {.size = {3, 3}}).Relu();
  const ValueId active = model.current();
  model.Pad(around).Conv2D(5, three);
  const ValueId convolved = model.current();
  model.From(active).Pad(around);
  const ValueId padded = model.current();
  model.Pool2D(Pool2DOp::Kind::kMax, three);
  const ValueId pooled = model.current();
  model.From(padded).Conv2D(5, three).Add(pooled).Add(convolved);
  return model.Pad(below_and_right).DepthwiseConv2D(three).Flatten().Dense(4).Build();
}

class GraphRunnerTest : public BackendSuite {
 protected:
  static std::unique_ptr<GraphRunner> MakeRunner(Graph model, uint64_t seed = 0,
                                                 std::shared_ptr<const Loss> loss = kSparse,
                                                 const std::string& backend_name = GetParam()) {
    GraphRunner::Options options;
    options.model = std::move(model);
    options.loss = loss;
    options.metrics = *MakeMetrics({"sparse_categorical_accuracy"});
    options.seed = seed;
    auto backend = CreateSuiteBackend(backend_name);
    EXPECT_TRUE(backend.ok()) << backend.status();
    auto runner = GraphRunner::Create(std::move(options), *std::move(backend));
    EXPECT_TRUE(runner.ok()) << runner.status();
    return *std::move(runner);
  }

  static void Poison(GraphRunner& runner) {
    const absl::Status poisoned = runner.backend().Poison(0);
    ASSERT_TRUE(poisoned.ok()) << poisoned;
  }

  std::mt19937 random_{11};
};

TEST_P(GraphRunnerTest, ReadsNothingThatItDidNotWrite) {
  auto runner = MakeRunner(PooledModel(0.3));
  const RandomBatch data(random_, PooledModel(), *kSparse, 5);
  const std::vector<float> parameters = RandomFloats(random_, runner->layout().size, 0.3f);
  std::vector<float> first(parameters.size()), second(parameters.size());
  const auto result = runner->Train(data.batch(), 1, parameters, first, nullptr);
  ASSERT_TRUE(result.ok()) << result.status();
  Poison(*runner);
  const auto again = runner->Train(data.batch(), 1, parameters, second, nullptr);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(result->loss_sum, again->loss_sum);
  EXPECT_EQ(first, second);

  const auto prediction = runner->Predict(data.batch(), parameters, false);
  const auto evaluation = runner->Evaluate(data.batch(), parameters);
  Poison(*runner);
  EXPECT_EQ(*prediction, *runner->Predict(data.batch(), parameters, false));
  Poison(*runner);
  EXPECT_EQ(evaluation->loss_sum, runner->Evaluate(data.batch(), parameters)->loss_sum);
}

// What backends compute along with something else comes out as it would alone.
TEST_P(GraphRunnerTest, AModelIsComputedAsByTheReference) {
  for (const Graph& model : {PooledModel(), MixedModel(ComputeDtype::kFloat32), PaddedModel()}) {
    auto runner = MakeRunner(model), reference = MakeRunner(model, 0, kSparse, "reference");
    const RandomBatch data(random_, model, *kSparse, 3);
    const std::vector<float> parameters = RandomFloats(random_, runner->layout().size, 0.3f);
    std::vector<float> actual(parameters.size()), expected(parameters.size());
    const auto result = runner->Train(data.batch(), 1, parameters, actual, nullptr);
    const auto wanted = reference->Train(data.batch(), 1, parameters, expected, nullptr);
    ASSERT_TRUE(result.ok() && wanted.ok()) << result.status() << wanted.status();
    EXPECT_NEAR(result->loss_sum, wanted->loss_sum, 1e-4);
    for (size_t i = 0; i < actual.size(); ++i) ASSERT_NEAR(actual[i], expected[i], 1e-3) << i;
  }
}

// Wherever they are added up; of rows, and of pixels, of which some are so many that several blocks
// of a device add them up.
TEST_P(GraphRunnerTest, TheSumsOfABatchAreThoseOfTheReference) {
  ModelBuilding rows({kBatch, 6}), pixels({kBatch, 5, 4, 2});
  rows.Dense(7);
  pixels.Conv2D(4, {.size = {1, 1}});
  const std::vector<std::string> of_classes = {"sparse_categorical_accuracy",
                                               "SparseTopKCategoricalAccuracy"};
  const std::vector<std::string> of_values = {
      "categorical_accuracy", "mse", "mae", "TopKCategoricalAccuracy", "binary_accuracy",
      "RootMeanSquaredError"};
  struct Case {
    Graph model;
    std::shared_ptr<const Loss> loss;
    std::vector<std::string> metrics;
    int64_t examples;
  };
  const auto squares = LossOf("MeanSquaredError");
  for (const Case& each :
       {Case{rows.Build(), kSparse, of_classes, 5}, Case{rows.Build(), squares, of_values, 70},
        Case{pixels.Build(), kSparse, of_classes, 900}, Case{pixels.Build(), squares, of_values, 3},
        Case{rows.Build(), squares, {"mse", "Precision"}, 4}}) {
    SCOPED_TRACE(absl::StrCat(each.metrics[0], " of ", each.examples));
    const RandomBatch data(random_, each.model, *each.loss, each.examples);
    const std::vector<float> weights = RandomFloats(random_, each.examples);
    std::vector<float> parameters;
    for (const bool weighted : {false, true}) {
      std::vector<BatchResult> results;
      for (const std::string& backend : {GetParam(), std::string("reference")}) {
        auto created = CreateSuiteBackend(backend);
        ASSERT_TRUE(created.ok()) << created.status();
        const auto weighted_metrics = weighted ? each.metrics : std::vector<std::string>();
        auto runner = GraphRunner::Create({.model = each.model,
                                           .loss = each.loss,
                                           .metrics = *MakeMetrics(each.metrics, weighted_metrics),
                                           .weighted = weighted},
                                          *std::move(created));
        ASSERT_TRUE(runner.ok()) << runner.status();
        if (parameters.empty()) parameters = RandomFloats(random_, (*runner)->layout().size, 0.3f);
        Batch batch = data.batch();
        if (weighted) batch.weights = weights;
        const auto result = (*runner)->Evaluate(batch, parameters);
        ASSERT_TRUE(result.ok()) << result.status();
        results.push_back(*result);
      }
      EXPECT_NEAR(results[0].loss_sum, results[1].loss_sum,
                  1e-3 * std::max(1.0, std::abs(results[1].loss_sum)));
      ASSERT_EQ(results[0].metric_sums.size(), results[1].metric_sums.size());
      for (size_t i = 0; i < results[1].metric_sums.size(); ++i) {
        const double wanted = results[1].metric_sums[i];
        EXPECT_NEAR(results[0].metric_sums[i], wanted, 1e-3 * std::max(1.0, std::abs(wanted)))
            << i << (weighted ? " weighted" : "");
      }
    }
  }
}

TEST_P(GraphRunnerTest, ComputesNearlyTheSameUnderADtypePolicy) {
  const RandomBatch data(random_, MixedModel(ComputeDtype::kFloat32), *kSparse, 6);
  std::vector<float> parameters;
  std::map<ComputeDtype, std::vector<float>> gradients;
  std::map<ComputeDtype, double> losses;
  for (const ComputeDtype type :
       {ComputeDtype::kFloat32, ComputeDtype::kBfloat16, ComputeDtype::kFloat16}) {
    auto runner = MakeRunner(MixedModel(type));
    if (parameters.empty()) parameters = RandomFloats(random_, runner->layout().size, 0.3f);
    gradients[type].resize(parameters.size());
    const auto result = runner->Train(data.batch(), 1, parameters, gradients[type], nullptr);
    ASSERT_TRUE(result.ok()) << result.status();
    losses[type] = result->loss_sum;
  }
  const auto distance = [&](ComputeDtype type) {
    const std::vector<float>&one = gradients[type], &other = gradients[ComputeDtype::kFloat32];
    double squares = 0, all = 0;
    for (size_t i = 0; i < one.size(); ++i) {
      squares += (double{one[i]} - other[i]) * (double{one[i]} - other[i]);
      all += double{other[i]} * other[i];
    }
    return std::sqrt(squares / all);
  };
  const auto backend = CreateSuiteBackend(GetParam());
  ASSERT_TRUE(backend.ok()) << backend.status();
  const std::set<ComputeDtype> known = ComputeDtypesOf(**backend);
  for (const ComputeDtype type : {ComputeDtype::kBfloat16, ComputeDtype::kFloat16}) {
    SCOPED_TRACE(NameOf(type));
    if (!known.contains(type)) {  // in float32
      EXPECT_EQ(distance(type), 0);
      continue;
    }
    EXPECT_NEAR(losses[type], losses[ComputeDtype::kFloat32], 0.02 * std::abs(losses[type]));
    EXPECT_LT(distance(type), 0.1);
    EXPECT_GT(distance(type), 1e-4);  // it is what was asked for
  }
}

// Ids stay whole numbers on their way through a layer under a policy.
TEST_P(GraphRunnerTest, WholeNumbersStayExactUnderADtypePolicy) {
  Graph graph;
  std::vector<ValueId> ids;
  for (const char* name : {"one", "other"})
    ids.push_back(graph.AddInput(name, {kBatch, 1}, WholeNumbers{.min = 0, .max = 999}));
  const ValueId both =
      *graph.Add(std::make_shared<ConcatenateOp>(), ids, "both", "", ComputeDtype::kBfloat16);
  const ValueId table = graph.AddVariable({.name = "table", .shape = {1000, 1}});
  const ValueId rows = *graph.Add(std::make_shared<GatherOp>(), {table, both}, "rows");
  auto reshape = std::make_shared<ReshapeOp>();
  reshape->shape = {kBatch, 2};
  graph.SetOutputs({*graph.Add(std::move(reshape), {rows}, "row")});
  auto runner = MakeRunner(graph, 0, LossOf("MeanSquaredError"));
  std::vector<float> parameters(runner->layout().size);
  for (int i = 0; i < 1000; ++i) parameters[i] = static_cast<float>(i);
  const std::vector<float> one = {257, 513}, other = {999, 3};
  const auto predicted = runner->Predict({.examples = 2, .inputs = {one, other}}, parameters, true);
  ASSERT_TRUE(predicted.ok()) << predicted.status();
  EXPECT_EQ(*predicted, (std::vector<float>{257, 999, 513, 3}));
}

TEST_P(GraphRunnerTest, GapsOfTheGradientsAreLeftAlone) {
  auto runner = MakeRunner(PooledModel());
  const RandomBatch data(random_, PooledModel(), *kSparse, 2);
  const std::vector<float> parameters = RandomFloats(random_, runner->layout().size, 0.3f);
  std::vector<float> gradients(parameters.size(), 12345.0f);
  ASSERT_TRUE(runner->Train(data.batch(), 1, parameters, gradients, nullptr).ok());
  std::vector<bool> owned(gradients.size(), false);
  for (const auto& extent : runner->layout().variables) {
    std::fill_n(owned.begin() + extent.offset, extent.size, true);
  }
  for (size_t i = 0; i < gradients.size(); ++i) {
    EXPECT_EQ(gradients[i] == 12345.0f, !owned[i]) << i;
  }
}

TEST_P(GraphRunnerTest, VariableDoneIsItsLastUse) {
  auto runner = MakeRunner(PooledModel());
  const RandomBatch data(random_, PooledModel(), *kSparse, 4);
  const std::vector<float> original = RandomFloats(random_, runner->layout().size, 0.3f);
  std::vector<float> expected(original.size()), gradients(original.size());
  const auto result = runner->Train(data.batch(), 1, original, expected, nullptr);
  ASSERT_TRUE(result.ok());

  std::vector<float> parameters = original;
  std::map<int, int> calls;
  std::map<int, std::vector<float>> sent;
  const auto on_done = [&](int variable) {
    ++calls[variable];
    const auto& extent = runner->layout().variables[variable];
    // Take the gradient, then overwrite value and gradient: nothing may depend on them.
    sent[variable].assign(gradients.begin() + extent.offset,
                          gradients.begin() + extent.offset + extent.size);
    std::fill_n(parameters.begin() + extent.offset, extent.size, kNan);
    std::fill_n(gradients.begin() + extent.offset, extent.size, kNan);
  };
  const auto again = runner->Train(data.batch(), 1, parameters, gradients, on_done);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->loss_sum, result->loss_sum);
  const int variables = static_cast<int>(runner->layout().variables.size());
  for (int v = 0; v < variables; ++v) {
    EXPECT_EQ(calls[v], 1) << v;
    const auto& extent = runner->layout().variables[v];
    EXPECT_EQ(sent[v], std::vector<float>(expected.begin() + extent.offset,
                                          expected.begin() + extent.offset + extent.size))
        << v;
  }
  EXPECT_EQ(calls.size(), static_cast<size_t>(variables));
}

TEST_P(GraphRunnerTest, LastLayersAreDoneFirst) {
  auto runner = MakeRunner(PooledModel());
  const RandomBatch data(random_, PooledModel(), *kSparse, 4);
  const std::vector<float> parameters = RandomFloats(random_, runner->layout().size, 0.3f);
  std::vector<float> gradients(parameters.size());
  std::vector<int> order;
  ASSERT_TRUE(runner
                  ->Train(data.batch(), 1, parameters, gradients,
                          [&](int variable) { order.push_back(variable); })
                  .ok());
  const int last = static_cast<int>(runner->layout().variables.size()) - 1;
  EXPECT_THAT((std::vector<int>{order[0], order[1]}),
              ::testing::UnorderedElementsAre(last, last - 1));
  EXPECT_LE(order.back(), 1);
}

TEST_P(GraphRunnerTest, FrozenVariablesHaveNoGradient) {
  Graph graph;
  const ValueId x = graph.AddInput("x", {kBatch, 2});
  Variable frozen;
  frozen.name = "frozen";
  frozen.shape = {2, 3};
  frozen.rule = UpdateRule::kFrozen;
  Variable trained = frozen;
  trained.name = "trained";
  trained.shape = {3, 2};
  trained.rule = UpdateRule::kOptimizer;
  const ValueId kernel = graph.AddVariable(frozen);
  const ValueId kernel2 = graph.AddVariable(trained);
  const ValueId hidden = *graph.Add(std::make_shared<DenseOp>(), {x, kernel}, "a");
  graph.SetOutputs({*graph.Add(std::make_shared<DenseOp>(), {hidden, kernel2}, "b")});
  auto runner = MakeRunner(graph);
  const RandomBatch data(random_, graph, *kSparse, 3);
  const std::vector<float> parameters = RandomFloats(random_, runner->layout().size);
  std::vector<float> gradients(parameters.size(), kNan);
  std::vector<int> done;
  ASSERT_TRUE(runner
                  ->Train(data.batch(), 0, parameters, gradients,
                          [&](int variable) { done.push_back(variable); })
                  .ok());
  EXPECT_EQ(done, std::vector<int>{1});
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(std::isnan(gradients[i]));
  for (int i = 0; i < 6; ++i) EXPECT_FALSE(std::isnan(gradients[16 + i]));
}

// Its loss does not depend on the average, and what is pushed is no gradient.
TEST_P(GraphRunnerTest, AMovingAveragePushesItsSample) {
  Graph graph;
  const ValueId x = graph.AddInput("x", {kBatch, 2});
  const ValueId average = graph.AddVariable(
      {.name = "average", .shape = {2}, .rule = UpdateRule::kMovingAverage, .momentum = 0.9});
  const ValueId kernel = graph.AddVariable({.name = "kernel", .shape = {2, 4}});
  graph.SetSample(average, *graph.Add(std::make_shared<BiasBackwardOp>(), {x}, "sum"));
  graph.SetOutputs({*graph.Add(std::make_shared<DenseOp>(), {x, kernel}, "dense")});
  auto runner = MakeRunner(graph);
  const RandomBatch data(random_, graph, *kSparse, 3);
  const std::vector<float> parameters = RandomFloats(random_, runner->layout().size);
  std::vector<float> pushed(parameters.size(), kNan);
  std::vector<int> done;
  ASSERT_TRUE(runner
                  ->Train(data.batch(), 0, parameters, pushed,
                          [&](int variable) { done.push_back(variable); })
                  .ok());
  EXPECT_THAT(done, ::testing::UnorderedElementsAre(0, 1));
  const std::span<const float> images = data.batch().inputs[0].floats();
  EXPECT_FLOAT_EQ(pushed[0], images[0] + images[2] + images[4]);
  EXPECT_FLOAT_EQ(pushed[1], images[1] + images[3] + images[5]);
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(std::isnan(pushed[16 + i]));
}

TEST_P(GraphRunnerTest, DropoutIsAFunctionOfSeedAndStep) {
  const Graph model = PooledModel(0.5);
  const RandomBatch data(random_, model, *kSparse, 6);
  auto runner = MakeRunner(model, 7), same = MakeRunner(model, 7), other = MakeRunner(model, 8);
  const std::vector<float> parameters = RandomFloats(random_, runner->layout().size, 0.3f);
  std::vector<float> gradients(parameters.size());
  const auto loss = [&](GraphRunner& r, uint64_t step) {
    return r.Train(data.batch(), step, parameters, gradients, nullptr)->loss_sum;
  };
  const double step_3 = loss(*runner, 3);
  EXPECT_NE(step_3, loss(*runner, 4));
  EXPECT_EQ(step_3, loss(*runner, 3));
  EXPECT_EQ(step_3, loss(*same, 3));
  EXPECT_NE(step_3, loss(*other, 3));
}

TEST_P(GraphRunnerTest, DropoutKeepsTheMean) {
  ModelBuilding building({kBatch, 1000});
  building.Dropout(0.25);
  const Graph model = building.Build();
  auto runner = MakeRunner(model, 1, LossOf("MeanSquaredError"));
  const std::vector<float> ones(20000, 1.0f);
  const Batch batch = {.examples = 20, .inputs = {ones}, .target = {}};
  const auto trained = runner->Predict(batch, {}, true);
  ASSERT_TRUE(trained.ok()) << trained.status();
  int kept = 0;
  for (const float value : *trained) {
    ASSERT_TRUE(value == 0 || value == static_cast<float>(1 / 0.75));
    kept += value != 0;
  }
  EXPECT_NEAR(kept, 15000, 400);  // 6 standard deviations
  EXPECT_EQ(*runner->Predict(batch, {}, false), ones);
}

TEST_P(GraphRunnerTest, DropoutOfGroups) {
  ModelBuilding building({kBatch, 5, 8, 10});
  building.Dropout(0.5, {.block = 5 * 8 * 10, .period = 10});  // whole channels
  auto runner = MakeRunner(building.Build(), 1, LossOf("MeanSquaredError"));
  const std::vector<float> ones(40 * 400, 1.0f);
  const auto trained = runner->Predict({.examples = 40, .inputs = {ones}, .target = {}}, {}, true);
  ASSERT_TRUE(trained.ok()) << trained.status();
  int kept = 0;
  for (int example = 0; example < 40; ++example) {
    for (int i = 0; i < 400; ++i) {
      EXPECT_EQ((*trained)[example * 400 + i], (*trained)[example * 400 + i % 10]);
    }
    for (int channel = 0; channel < 10; ++channel) kept += (*trained)[example * 400 + channel] != 0;
  }
  EXPECT_NEAR(kept, 200, 60);  // 6 standard deviations
}

TEST_P(GraphRunnerTest, ManyBatchSizesInTurn) {
  auto runner = MakeRunner(PooledModel());
  const std::vector<float> parameters = RandomFloats(random_, runner->layout().size, 0.3f);
  std::vector<std::unique_ptr<RandomBatch>> batches;
  std::vector<std::vector<float>> expected;
  for (int64_t examples = 1; examples <= 12; ++examples) {
    batches.push_back(std::make_unique<RandomBatch>(random_, PooledModel(), *kSparse, examples));
    std::vector<float> gradients(parameters.size());
    ASSERT_TRUE(runner->Train(batches.back()->batch(), 0, parameters, gradients, nullptr).ok());
    expected.push_back(gradients);
  }
  for (size_t i = 0; i < batches.size(); ++i) {
    std::vector<float> gradients(parameters.size());
    ASSERT_TRUE(runner->Train(batches[i]->batch(), 0, parameters, gradients, nullptr).ok());
    EXPECT_EQ(gradients, expected[i]) << i + 1 << " examples";
  }
}

TEST_P(GraphRunnerTest, BatchIsTheSumOfItsExamples) {
  auto runner = MakeRunner(PooledModel());
  const std::vector<float> parameters = RandomFloats(random_, runner->layout().size, 0.3f);
  const RandomBatch data(random_, PooledModel(), *kSparse, 3);
  const auto whole = runner->Evaluate(data.batch(), parameters);
  double loss_sum = 0, correct = 0;
  for (int i = 0; i < 3; ++i) {
    const Batch one = {.examples = 1,
                       .inputs = {std::span(data.input).subspan(i * 162, 162)},
                       .target = std::span(data.target).subspan(i, 1)};
    const auto result = runner->Evaluate(one, parameters);
    loss_sum += result->loss_sum;
    correct += result->metric_sums[0];
  }
  EXPECT_EQ(whole->examples, 3);
  EXPECT_NEAR(whole->loss_sum, loss_sum, 1e-5 * loss_sum);
  EXPECT_EQ(whole->metric_sums[0], correct);
}

// An example that counts twice is as if it were there twice, but for the number that is divided by.
TEST_P(GraphRunnerTest, ExamplesCountByTheirWeightsAndInTrainingByTheirClass) {
  const auto make = [](bool weighted, std::map<int64_t, double> class_weights) {
    return *GraphRunner::Create(
        {.model = PooledModel(),
         .loss = kSparse,
         .metrics = *MakeMetrics({"sparse_categorical_accuracy"}, {"sparse_categorical_accuracy"}),
         .weighted = weighted,
         .class_weights = std::move(class_weights)},
        *CreateSuiteBackend(GetParam()));
  };
  const auto plain = make(false, {}), weighted = make(true, {{0, 2}, {3, 0.5}});
  RandomBatch data(random_, PooledModel(), *kSparse, 4);
  data.target = {0, 3, 1, 0};
  const std::vector<float> weights = {1, 4, 3, 0}, in_training = {2, 2, 3, 0};
  const std::vector<float> parameters = RandomFloats(random_, plain->layout().size, 0.3f);
  std::vector<float> gradients(parameters.size()), expected(parameters.size()), one(gradients);
  double loss = 0, evaluated = 0, right = 0;
  for (int i = 0; i < 4; ++i) {
    const Batch example = {.examples = 1,
                           .inputs = {std::span(data.input).subspan(i * 162, 162)},
                           .target = std::span(data.target).subspan(i, 1)};
    const auto result = plain->Train(example, 0, parameters, one, nullptr);
    ASSERT_TRUE(result.ok()) << result.status();
    loss += in_training[i] * result->loss_sum;
    evaluated += weights[i] * result->loss_sum;
    right += in_training[i] * result->metric_sums[0];
    for (size_t g = 0; g < one.size(); ++g) expected[g] += in_training[i] / 4 * one[g];
  }
  Batch batch = data.batch();
  batch.weights = weights;
  const auto trained = weighted->Train(batch, 0, parameters, gradients, nullptr);
  ASSERT_TRUE(trained.ok()) << trained.status();
  EXPECT_NEAR(trained->loss_sum, loss, 1e-5 * loss);
  EXPECT_FLOAT_EQ(static_cast<float>(trained->metric_sums[1]), static_cast<float>(right));
  EXPECT_EQ(trained->metric_sums[2], 7);
  ExpectNear(gradients, expected, 1e-4, 1e-5, "gradients");
  const auto result = weighted->Evaluate(batch, parameters);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_NEAR(result->loss_sum, evaluated, 1e-5 * evaluated);
  EXPECT_EQ(result->metric_sums[2], 8);
  batch.weights = std::span(weights).first(3);
  EXPECT_THAT(weighted->Evaluate(batch, parameters).status(),
              FailsWith(absl::StatusCode::kInvalidArgument, {"weights", "4", "3"}));
}

TEST_P(GraphRunnerTest, RejectsWhatDoesNotFit) {
  auto runner = MakeRunner(PooledModel());
  const std::vector<float> parameters(runner->layout().size);
  std::vector<float> gradients(parameters.size());
  const RandomBatch data(random_, PooledModel(), *kSparse, 3);
  const auto error = [&](const Batch& batch) {
    const auto result = runner->Train(batch, 0, parameters, gradients, nullptr);
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
    return result.status().ToString();
  };
  Batch batch = data.batch();
  batch.examples = 4;
  EXPECT_THAT(error(batch),
              AllOf(HasSubstr("input \"input\""), HasSubstr("486"), HasSubstr("648")));
  batch.examples = 0;
  EXPECT_THAT(error(batch), HasSubstr("0 examples"));
  batch = data.batch();
  batch.target = batch.target.subspan(1);
  EXPECT_THAT(error(batch),
              AllOf(HasSubstr("target"), HasSubstr("3 examples"), HasSubstr("2 values")));
  batch = data.batch();
  batch.inputs.clear();
  EXPECT_THAT(error(batch), HasSubstr("0 inputs"));
  const std::vector<float> labels = {0, 3, 4};
  batch = data.batch();
  batch.target = labels;
  EXPECT_THAT(error(batch), AllOf(HasSubstr("example 2"), HasSubstr("label 4")));
  EXPECT_FALSE(runner->Train(data.batch(), 0, {}, gradients, nullptr).ok());
  EXPECT_FALSE(runner->Train(data.batch(), 0, parameters, {}, nullptr).ok());
}

// No backend has a kernel for it.
struct UnheardOp : Op {
  const char* type() const override { return "Unheard"; }
  absl::StatusOr<std::vector<Shape>> InferShapes(const std::vector<Shape>& inputs) const override {
    return inputs;
  }
};

TEST_P(GraphRunnerTest, SaysBeforeTheFirstBatchWhatItHasNoKernelFor) {
  Graph graph;
  ValueId value = graph.AddInput("x", {kBatch, 2});
  for (const char* layer : {"a", "b", "c", "d", "b"}) {
    value = *graph.Add(std::make_shared<UnheardOp>(), {value}, layer);
  }
  graph.SetOutputs({value});
  const auto runner =
      GraphRunner::Create({.model = graph, .loss = kSparse}, *CreateSuiteBackend(GetParam()));
  EXPECT_THAT(runner.status(),
              FailsWith(absl::StatusCode::kUnimplemented,
                        {GetParam(), "Unheard (layers \"a\", \"b\", \"c\" and 1 more)"}));
}

TEST_P(GraphRunnerTest, SaysWhichLayersItComputesInFloat32) {
  Graph graph;
  ValueId value = graph.AddInput("x", {kBatch, 2});
  const ValueId kernel = graph.AddVariable({.name = "kernel", .shape = {2, 2}});
  const auto add = [&](const char* layer, ComputeDtype dtype) {
    value = *graph.Add(std::make_shared<DenseOp>(), {value, kernel}, layer, "", dtype);
  };
  const auto backend = CreateSuiteBackend(GetParam());
  ASSERT_TRUE(backend.ok()) << backend.status();
  add("plain", ComputeDtype::kFloat32);
  EXPECT_EQ(DescribePrecision(**backend, graph), "");
  for (const char* layer : {"a", "b", "c", "d", "b"}) add(layer, ComputeDtype::kBfloat16);
  add("e", ComputeDtype::kFloat16);
  const std::set<ComputeDtype> known = ComputeDtypesOf(**backend);
  const std::string said = DescribePrecision(**backend, graph);
  EXPECT_EQ(said.empty(), known.size() == 3);
  if (said.empty()) return;
  EXPECT_THAT(said, AllOf(HasSubstr(" float16 (layer \"e\")"), HasSubstr((*backend)->name()),
                          HasSubstr("no kernel"), HasSubstr("float32")));
  const auto names_bfloat16 = HasSubstr("bfloat16 (layers \"a\", \"b\", \"c\" and 1 more)");
  if (known.contains(ComputeDtype::kBfloat16)) {
    EXPECT_THAT(said, Not(names_bfloat16));
  } else {
    EXPECT_THAT(said, names_bfloat16);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, GraphRunnerTest, ::testing::ValuesIn(SuiteBackends()),
                         [](const auto& info) { return info.param; });

TEST(ModelRunnerTest, RejectsUnknownBackendsAndNoThreads) {
  ModelRunner::Options options;
  options.model = PooledModel();
  options.loss = kSparse;
  options.backend = "cpus";
  EXPECT_THAT(CreateModelRunner(options).status(),
              FailsWith(absl::StatusCode::kInvalidArgument, {"\"cpus\"", "\"cpu\""}));
  options.backend = "reference";
  options.threads = 0;
  EXPECT_THAT(CreateModelRunner(options).status(),
              FailsWith(absl::StatusCode::kInvalidArgument, {"0"}));
}

}  // namespace
}  // namespace shoal
