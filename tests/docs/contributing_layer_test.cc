#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/model/keras_layers.h"
#include "tests/common/model/test_models.h"

// The layer that docs/contributing/adding-a-kind.md shows, made as it says.

namespace shoal {
namespace {

using ::testing::ElementsAre;

TEST(ContributingLayerTest, IsReadAndCalled) {
  const auto parse = [](const Json& config) {
    return ParseKerasModel(
        SequentialJson({nullptr, 5, 3}, {LayerJson("Affine", "affine", config)}).dump());
  };
  const auto model = parse(Json::object());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(VariableNames(model->graph), ElementsAre("affine/factor", "affine/offset"));
  EXPECT_THAT(NodeTypes(model->graph), ElementsAre("Binary", "Binary"));
  EXPECT_EQ(OutputShape(*model), (Shape{kBatch, 5, 3}));
  const auto without = parse({{"use_offset", false}});
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_THAT(VariableNames(without->graph), ElementsAre("affine/factor"));
  EXPECT_THAT(std::string(parse({{"use_offset", 1}}).status().message()),
              testing::HasSubstr("$.config.layers[1].config.use_offset"));
}

TEST(ContributingLayerTest, IsInTheDocumentation) {
  for (const KerasLayerDescription& layer : DescribeKerasLayers()) {
    if (layer.class_name != "Affine") continue;
    EXPECT_THAT(layer.options, ElementsAre("use_offset", "factor_initializer", "factor_regularizer",
                                           "offset_initializer", "offset_regularizer"));
    return;
  }
  FAIL() << "there is no Affine";
}

}  // namespace
}  // namespace shoal
