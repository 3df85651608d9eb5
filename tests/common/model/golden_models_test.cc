#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "tests/common/model/test_models.h"

// Models as Keras wrote them: their variables are those of Keras.

namespace shoal {
namespace {

// Shapes of the tensors of a safetensors file whose names begin with `prefix`, without it.
std::map<std::string, Shape> TensorShapes(const std::string& path, const std::string& prefix) {
  const std::string bytes = ReadText(path);
  uint64_t length = 0;
  if (bytes.size() < sizeof(length)) return {};
  std::memcpy(&length, bytes.data(), sizeof(length));
  const Json header = Json::parse(bytes.substr(sizeof(length), length));
  std::map<std::string, Shape> shapes;
  for (const auto& [name, tensor] : header.items()) {
    if (name.rfind(prefix, 0) == 0) {
      shapes[name.substr(prefix.size())] = tensor["shape"].get<Shape>();
    }
  }
  return shapes;
}

class GoldenModelTest : public testing::TestWithParam<std::string> {};

TEST_P(GoldenModelTest, HasTheVariablesOfKeras) {
  const std::string folder = std::string("golden/") + GetParam() + "/";
  const absl::StatusOr<KerasModel> model = ParseKerasModel(ReadText(folder + "model.json"));
  ASSERT_TRUE(model.ok()) << model.status();
  const std::map<std::string, Shape> gradients =
      TensorShapes(folder + "case.safetensors", "gradient/");
  std::map<std::string, Shape> variables;
  for (const Variable& variable : model->graph.variables()) {
    variables[variable.name] = variable.shape;
    EXPECT_EQ(variable.rule == UpdateRule::kOptimizer, gradients.contains(variable.name))
        << variable.name;
  }
  ASSERT_FALSE(variables.empty());
  EXPECT_EQ(variables, TensorShapes(folder + "case.safetensors", "weights/"));

  Shape output = TensorShapes(folder + "case.safetensors", "output/inference").begin()->second;
  output[0] = kBatch;
  EXPECT_EQ(OutputShape(*model), output);
  std::map<std::string, Shape> inputs;
  for (const ValueId input : model->graph.inputs()) {
    const Value& value = model->graph.value(input);
    inputs[model->graph.inputs().size() == 1 ? "x" : value.name] = value.shape;
  }
  std::map<std::string, Shape> batch = TensorShapes(folder + "case.safetensors", "input/");
  for (auto& [name, shape] : batch) shape[0] = kBatch;
  EXPECT_EQ(inputs, batch);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenModelTest, testing::ValuesIn(GoldenCases()),
                         [](const auto& info) { return info.param; });

TEST(GoldenModelsTest, Keras2AndKeras3GiveTheSameGraph) {
  const auto keras2 = ParseKerasModel(ReadText("golden/keras2_fashion_cnn/model.json"));
  const auto keras3 = ParseKerasModel(ReadText("golden/fashion_cnn/model.json"));
  ASSERT_TRUE(keras2.ok() && keras3.ok());
  EXPECT_EQ(NodeTypes(keras2->graph), NodeTypes(keras3->graph));
  EXPECT_EQ(VariableNames(keras2->graph), VariableNames(keras3->graph));
  EXPECT_THAT(
      VariableNames(keras3->graph),
      testing::ElementsAre("conv2d/kernel", "conv2d/bias", "conv2d_1/kernel", "conv2d_1/bias",
                           "dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"));
  EXPECT_EQ(keras3->graph.variables()[0].initializer.kind, Initializer::Kind::kVarianceScaling);
  EXPECT_EQ(keras3->graph.variables()[1].initializer.kind, Initializer::Kind::kConstant);
}

}  // namespace
}  // namespace shoal
