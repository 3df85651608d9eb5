// The ops that formulas are made of: gradients against finite differences, cpu against reference,
// over shapes that are repeated in every way.

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "common/model/ops/binary.h"
#include "common/model/ops/reduce.h"
#include "common/model/ops/unary.h"
#include "tests/worker/compute/double_interpreter.h"
#include "tests/worker/compute/tested_backends.h"
#include "worker/compute/model_runner.h"

namespace shoal {
namespace {

constexpr int64_t kExamples = 3;
const LossAttributes kMse = {.kind = LossAttributes::Kind::kMeanSquaredError};

std::shared_ptr<const Op> MakeBinary(BinaryOp::Kind kind) {
  auto op = std::make_shared<BinaryOp>();
  op->kind = kind;
  return op;
}

std::shared_ptr<const Op> MakeUnary(UnaryOp op) { return std::make_shared<UnaryOp>(std::move(op)); }

// An input of four axes, a few variables, and ops between them; all values stay away from zero.
class Formula {
 public:
  Formula() : input_(graph_.AddInput("x", {kBatch, 2, 1, 3})) {}

  ValueId input() const { return input_; }
  const Shape& shape(ValueId value) const { return graph_.value(value).shape; }
  ValueId Variable(Shape shape) {
    return graph_.AddVariable(
        {.name = "v" + std::to_string(graph_.variables().size()), .shape = std::move(shape)});
  }
  ValueId Add(std::shared_ptr<const Op> op, std::vector<ValueId> inputs) {
    const absl::StatusOr<ValueId> value = graph_.Add(std::move(op), std::move(inputs), "formula");
    EXPECT_TRUE(value.ok()) << value.status();
    return value.value_or(input_);
  }
  Graph Build(ValueId output) {
    graph_.SetOutputs({output});
    return graph_;
  }

 private:
  Graph graph_;
  const ValueId input_;
};

std::vector<double> Random(std::mt19937& random, int64_t count) {
  std::uniform_real_distribution<double> size(0.4, 1.6);
  std::vector<double> values(count);
  for (double& value : values) value = size(random);
  return values;
}

void ExpectRightGradients(const Graph& model) {
  const auto training = BuildTrainingGraph(model, kMse);
  ASSERT_TRUE(training.ok()) << training.status();
  std::mt19937 random(4);
  DoubleInterpreter interpreter(*training, kExamples);
  for (const int input : {0, 1}) {
    Shape shape = training->graph.value(training->graph.inputs()[input]).shape;
    if (shape[0] == kBatch) shape[0] = kExamples;
    interpreter.SetInput(input, Random(random, ElementCount(shape)));
  }
  const int variables = static_cast<int>(model.variables().size());
  for (int v = 0; v < variables; ++v) {
    interpreter.variable(v) = Random(random, ElementCount(model.variables()[v].shape));
  }
  interpreter.Run();
  std::vector<std::vector<double>> gradients;
  for (int v = 0; v < variables; ++v) gradients.push_back(interpreter.gradient(v));
  for (int v = 0; v < variables; ++v) {
    for (size_t i = 0; i < gradients[v].size(); ++i) {
      constexpr double kStep = 1e-6;
      double& weight = interpreter.variable(v)[i];
      const double original = weight;
      weight = original + kStep;
      const double above = interpreter.Run();
      weight = original - kStep;
      const double below = interpreter.Run();
      weight = original;
      const double expected = (above - below) / (2 * kStep);
      ASSERT_NEAR(gradients[v][i], expected, 1e-7 + 1e-6 * std::abs(expected))
          << "variable " << v << "[" << i << "]";
    }
  }
}

// Output and gradients of the cpu backend, on two threads, against the reference's.
void ExpectTheSameOnCpu(const Graph& model) {
  std::mt19937 random(5);
  const auto floats = [&](int64_t count) {
    const std::vector<double> values = Random(random, count);
    return std::vector<float>(values.begin(), values.end());
  };
  std::vector<float> parameters, input, target;
  std::vector<std::vector<float>> outputs, gradients;
  for (const std::string& backend : TestedBackends()) {
    const auto runner =
        ModelRunner::Create({.model = model, .loss = kMse, .backend = backend, .threads = 2});
    ASSERT_TRUE(runner.ok()) << runner.status();
    if (parameters.empty()) {
      const auto count = [&](ValueId value) {
        Shape shape = model.value(value).shape;
        shape[0] = kExamples;
        return ElementCount(shape);
      };
      parameters = floats((*runner)->layout().size);
      input = floats(count(model.inputs()[0]));
      target = floats(count(model.outputs()[0]));
    }
    const Batch batch = {.examples = kExamples, .inputs = {input}, .target = target};
    const auto output = (*runner)->Predict(batch, parameters, false);
    ASSERT_TRUE(output.ok()) << output.status();
    outputs.push_back(*output);
    std::vector<float> gradient(parameters.size());
    ASSERT_TRUE((*runner)->Train(batch, 0, parameters, gradient, nullptr).ok());
    gradients.push_back(gradient);
  }
  if (outputs.size() < 2) return;
  for (size_t i = 0; i < outputs[0].size(); ++i) {
    ASSERT_NEAR(outputs[1][i], outputs[0][i], 1e-5 * (1 + std::abs(outputs[0][i])));
  }
  for (size_t i = 0; i < gradients[0].size(); ++i) {
    ASSERT_NEAR(gradients[1][i], gradients[0][i], 1e-4 * (1 + std::abs(gradients[0][i])));
  }
}

void Check(const Graph& model) {
  ExpectRightGradients(model);
  if (::testing::Test::HasFatalFailure()) return;
  ExpectTheSameOnCpu(model);
}

const std::vector<Shape>& Repeatable() {
  static const auto& shapes = *new std::vector<Shape>{
      {2, 1, 3}, {3}, {1}, {2, 1, 1}, {1, 2, 1, 3}, {1, 1, 1, 1}, {2, 4, 1}};
  return shapes;
}

TEST(BinaryOpTest, EveryKindOnEveryShape) {
  using Kind = BinaryOp::Kind;
  for (const Kind kind : {Kind::kAdd, Kind::kSubtract, Kind::kMultiply, Kind::kDivide,
                          Kind::kMaximum, Kind::kMinimum}) {
    for (const Shape& shape : Repeatable()) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(kind) << " " << ShapeToString(shape));
      Formula formula;
      const ValueId right =
          formula.Add(MakeBinary(kind), {formula.input(), formula.Variable(shape)});
      const ValueId left = formula.Add(MakeBinary(kind), {formula.Variable({2, 1, 1}), right});
      Check(formula.Build(formula.Add(MakeBinary(kind), {left, right})));
      if (HasFatalFailure()) return;
    }
  }
}

TEST(BinaryOpTest, EqualOnesShareTheGradientOfTheMaximum) {
  Formula formula;
  const ValueId one = formula.Variable({3}), other = formula.Variable({3});
  const Graph model = formula.Build(
      formula.Add(MakeBinary(BinaryOp::Kind::kMaximum),
                  {formula.Add(MakeBinary(BinaryOp::Kind::kMultiply), {formula.input(), one}),
                   formula.Add(MakeBinary(BinaryOp::Kind::kMultiply), {formula.input(), other})}));
  const auto training = BuildTrainingGraph(model, kMse);
  ASSERT_TRUE(training.ok()) << training.status();
  DoubleInterpreter interpreter(*training, 1);
  interpreter.SetInput(0, std::vector<double>(6, 1));
  interpreter.SetInput(1, std::vector<double>(6, 0));
  interpreter.variable(0) = {1, 2, 3};
  interpreter.variable(1) = {1, 1, 4};
  interpreter.Run();
  // d/dw of the mean of 6 squares, each 2 w / 6, two of each column.
  EXPECT_NEAR(interpreter.gradient(0)[0], 2.0 / 6, 1e-12);
  EXPECT_NEAR(interpreter.gradient(1)[0], 2.0 / 6, 1e-12);
  EXPECT_NEAR(interpreter.gradient(0)[1], 2 * 2 * 2.0 / 6, 1e-12);
  EXPECT_EQ(interpreter.gradient(1)[1], 0);
}

TEST(BinaryOpTest, ShapesThatDoNotGoTogetherAreNamed) {
  const auto shape = BinaryOp().InferShapes({{kBatch, 2, 3}, {2, 2}});
  EXPECT_EQ(shape.status().message(),
            "inputs of the shapes (None, 2, 3) and (2, 2) do not go together; each extent must be "
            "equal, or 1");
}

TEST(UnaryOpTest, EveryKind) {
  using Kind = UnaryOp::Kind;
  for (const Kind kind : {Kind::kExp, Kind::kLog, Kind::kAbs, Kind::kSquare, Kind::kSquareRoot,
                          Kind::kPower, Kind::kClip}) {
    SCOPED_TRACE(static_cast<int>(kind));
    UnaryOp op;
    op.kind = kind;
    op.exponent = 2.5;
    op.low = 0.3;
    op.high = 1;
    Formula formula;
    const ValueId product = formula.Add(MakeBinary(BinaryOp::Kind::kMultiply),
                                        {formula.input(), formula.Variable({3})});
    Check(formula.Build(formula.Add(MakeUnary(op), {product})));
    if (HasFatalFailure()) return;
  }
}

TEST(ReduceOpTest, SumsAndMaximaAlongAnyAxes) {
  for (const Shape& shape : std::vector<Shape>{{kBatch, 2, 4, 3},
                                               {kBatch, 2, 4, 1},
                                               {kBatch, 1, 4, 1},
                                               {kBatch, 1, 4, 3},
                                               {1, 2, 1, 3},
                                               {1, 1, 1, 1},
                                               {4, 3},
                                               {1}}) {
    for (const bool sum : {true, false}) {
      SCOPED_TRACE(testing::Message() << ShapeToString(shape) << (sum ? " sum" : " maximum"));
      Formula formula;
      const ValueId product = formula.Add(MakeBinary(BinaryOp::Kind::kMultiply),
                                          {formula.input(), formula.Variable({2, 4, 3})});
      auto sum_to = std::make_shared<SumToOp>();
      auto max_to = std::make_shared<MaxToOp>();
      sum_to->shape = max_to->shape = shape;
      const ValueId reduced = sum ? formula.Add(sum_to, {product}) : formula.Add(max_to, {product});
      // Repeated again, the output is one of examples.
      const ValueId repeated = formula.Add(std::make_shared<BroadcastLikeOp>(), {reduced, product});
      Check(formula.Build(formula.Add(MakeBinary(BinaryOp::Kind::kMultiply), {repeated, product})));
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace shoal
