#include "worker/job/augmented_pictures.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/common/loss/loss_of.h"
#include "tests/common/model/test_models.h"
#include "worker/compute/registry/create_model_runner.h"
#include "worker/compute/runner/model_runner.h"

namespace shoal {
namespace {

KerasModel Model(const std::vector<Json>& layers) {
  auto model = ParseKerasModel(SequentialJson({nullptr, 4, 4, 1}, layers).dump());
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

const Json kRescale = LayerJson("Rescaling", "scale", {{"scale", 0.5}});
const Json kFlip = LayerJson("RandomFlip", "flip", Json::object());
const Json kCrop = LayerJson("RandomCrop", "crop", {{"height", 3}, {"width", 2}});
const Json kConv = LayerJson("Conv2D", "conv", {{"filters", 4}, {"kernel_size", 2}});

std::vector<float> Ramps(int64_t examples) {
  std::vector<float> pictures(examples * 16);
  for (size_t i = 0; i < pictures.size(); ++i) pictures[i] = static_cast<float>(i % 16);
  return pictures;
}

TEST(AugmentedPicturesTest, AreWhatTheModelTrainsOn) {
  const std::vector<float> pictures = Ramps(9);
  const auto augmented =
      AugmentPictures(Model({kRescale, kFlip, kCrop, kConv}).graph, pictures, 9, 7, 0);
  ASSERT_TRUE(augmented.ok()) << augmented.status();
  EXPECT_EQ(augmented->shape, (Shape{3, 2, 1}));
  // Of step 0, the model's first layers by themselves.
  const auto runner = CreateModelRunner({.model = Model({kRescale, kFlip, kCrop}).graph,
                                         .loss = LossOf("MeanSquaredError"),
                                         .seed = 7});
  ASSERT_TRUE(runner.ok()) << runner.status();
  EXPECT_EQ(augmented->values,
            *(*runner)->Predict({.examples = 9, .inputs = {pictures}}, {}, /*training=*/true));
  const auto of_step = [&](uint64_t step) {
    return AugmentPictures(Model({kFlip, kConv}).graph, pictures, 9, 7, step)->values;
  };
  EXPECT_EQ(of_step(5), of_step(5));
  EXPECT_NE(of_step(5), of_step(6));
}

TEST(AugmentedPicturesTest, AreThePicturesWhereNothingChangesThem) {
  const auto augmented = AugmentPictures(Model({kRescale, kConv}).graph, Ramps(2), 2, 1, 0);
  ASSERT_TRUE(augmented.ok()) << augmented.status();
  EXPECT_EQ(augmented->values, Ramps(2));
  EXPECT_EQ(augmented->shape, (Shape{4, 4, 1}));
}

}  // namespace
}  // namespace shoal
