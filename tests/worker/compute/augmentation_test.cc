// Layers that augment images, as models from Keras have them: what they draw, and when.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "common/model/model_layout.h"
#include "common/model/training/training_graph.h"
#include "tests/common/loss/loss_of.h"
#include "tests/common/model/test_models.h"
#include "tests/worker/compute/expect_near.h"
#include "tests/worker/compute/tested_backends.h"
#include "worker/compute/plan/plan.h"
#include "worker/compute/registry/create_model_runner.h"
#include "worker/compute/runner/model_runner.h"

namespace shoal {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Not;

class AugmentationTest : public ::testing::TestWithParam<std::string> {
 protected:
  struct Run {
    uint64_t seed = 1;
    bool training = true;
    int threads = 1;
  };

  // What a model of those layers makes of images of that height and width, of one channel.
  std::vector<float> Augment(const std::vector<Json>& layers, int64_t height, int64_t width,
                             const std::vector<float>& images, Run run) const {
    const Json model = SequentialJson({nullptr, height, width, 1}, layers);
    auto parsed = ParseKerasModel(model.dump());
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    auto runner = CreateModelRunner({.model = std::move(parsed->graph),
                                     .loss = LossOf("MeanSquaredError"),
                                     .backend = GetParam(),
                                     .threads = run.threads,
                                     .seed = run.seed});
    EXPECT_TRUE(runner.ok()) << runner.status();
    const Batch batch = {.examples = static_cast<int64_t>(images.size()) / (height * width),
                         .inputs = {images}};
    const auto output = (*runner)->Predict(batch, {}, run.training);
    EXPECT_TRUE(output.ok()) << output.status();
    return *output;
  }

  // 0, 1, 2, ... in each image.
  static std::vector<float> Ramps(int64_t examples, int64_t pixels) {
    std::vector<float> images(examples * pixels);
    for (size_t i = 0; i < images.size(); ++i) images[i] = static_cast<float>(i % pixels);
    return images;
  }

  static std::vector<float> Image(const std::vector<float>& images, int64_t example,
                                  int64_t pixels) {
    return {images.begin() + example * pixels, images.begin() + (example + 1) * pixels};
  }
};

TEST_P(AugmentationTest, FlipsHalfOfTheImages) {
  const std::vector<float> image = {0, 1, 2, 3, 4, 5};
  const struct {
    Json mode;
    std::vector<float> flipped;
  } kModes[] = {{"horizontal", {2, 1, 0, 5, 4, 3}},
                {"vertical", {3, 4, 5, 0, 1, 2}},
                {"horizontal_and_vertical", {5, 4, 3, 2, 1, 0}},
                {nullptr, {5, 4, 3, 2, 1, 0}}};
  for (const auto& [mode, flipped] : kModes) {
    SCOPED_TRACE(mode.dump());
    const Json layer = LayerJson("RandomFlip", "flip", {{"mode", mode}, {"seed", 3}});
    const std::vector<float> augmented = Augment({layer}, 2, 3, Ramps(1000, 6), {});
    int flips = 0;
    for (int64_t i = 0; i < 1000; ++i) {
      const std::vector<float> result = Image(augmented, i, 6);
      ASSERT_TRUE(result == image || result == flipped);
      flips += result == flipped;
    }
    EXPECT_NEAR(flips, 500, 95);  // 6 standard deviations
  }
}

// Every kind of augmentation, one behind the other.
std::vector<Json> Everything() {
  return {
      LayerJson("RandomContrast", "contrast", {{"factor", {0, 0.5}}}),
      LayerJson("RandomBrightness", "brightness", {{"factor", 0.2}}),
      LayerJson("RandomFlip", "flip", Json::object()),
      LayerJson("RandomTranslation", "move", {{"height_factor", 0.2}, {"width_factor", {0, 0.3}}}),
      LayerJson("RandomRotation", "turn", {{"factor", 0.2}, {"fill_mode", "nearest"}}),
      LayerJson("RandomZoom", "zoom", {{"height_factor", 0.3}, {"fill_mode", "wrap"}}),
      LayerJson("RandomCrop", "crop", {{"height", 11}, {"width", 8}})};
}

TEST_P(AugmentationTest, IsAFunctionOfSeedAndPlaceInTheBatch) {
  const std::vector<float> images = Ramps(40, 12 * 9);
  const std::vector<float> once = Augment(Everything(), 12, 9, images, {});
  EXPECT_EQ(once, Augment(Everything(), 12, 9, images, {.threads = 2}));
  EXPECT_NE(once, Augment(Everything(), 12, 9, images, {.seed = 2}));
  // Equal images become different ones, and the first of a larger batch what they are in a smaller.
  const std::vector<float> first = Image(once, 0, 11 * 8);
  EXPECT_NE(first, Image(once, 1, 11 * 8));
  EXPECT_EQ(first, Augment(Everything(), 12, 9, Ramps(1, 12 * 9), {}));
}

TEST_P(AugmentationTest, DoesNothingInInference) {
  std::vector<Json> layers = Everything();
  layers.pop_back();
  const std::vector<float> images = Ramps(3, 12 * 30);  // beyond 255 too
  EXPECT_EQ(Augment(layers, 12, 30, images, {.training = false}), images);
}

// The ops that a plan of that mode computes.
std::vector<std::string> ComputedOps(PlanMode mode) {
  const auto model = ParseKerasModel(SequentialJson({nullptr, 12, 9, 1}, Everything()).dump());
  EXPECT_TRUE(model.ok()) << model.status();
  const auto training = BuildTrainingGraph(model->graph, *LossOf("MeanSquaredError"));
  EXPECT_TRUE(training.ok()) << training.status();
  const Plan plan(*training, mode, 2);
  std::vector<std::string> ops;
  for (const Node& node : plan.nodes()) ops.push_back(node.op->type());
  return ops;
}

TEST(ComputedOpsTest, AreThoseOfTheMode) {
  EXPECT_THAT(ComputedOps(PlanMode::kPredict),
              ElementsAre("ModeSwitch", "ModeSwitch", "ModeSwitch", "ModeSwitch", "ModeSwitch",
                          "ModeSwitch", "Crop", "Resize", "ModeSwitch"));
  for (const PlanMode mode : {PlanMode::kTrain, PlanMode::kPredictTraining}) {
    EXPECT_THAT(ComputedOps(mode), Contains("Warp").Times(5));
    EXPECT_THAT(ComputedOps(mode), Not(Contains("Resize")));
  }
}

TEST_P(AugmentationTest, EachCallOfASharedLayerDrawsItsOwn) {
  const Json add = LayerJson("Subtract", "less", Json::object());
  Json flip = CalledJson(LayerJson("RandomFlip", "flip", Json::object()), {"input"});
  flip["inbound_nodes"].push_back({{"input", 0, 0, Json::object()}});
  Json less = CalledJson(add, {"flip", "flip"});
  less["inbound_nodes"][0][1][1] = 1;
  const Json input = LayerJson("InputLayer", "input", {{"batch_shape", {nullptr, 2, 3, 1}}});
  const auto parsed =
      ParseKerasModel(FunctionalJson({CalledJson(input, {}), flip, less}, "input", "less").dump());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const auto runner = CreateModelRunner(
      {.model = parsed->graph, .loss = LossOf("MeanSquaredError"), .backend = GetParam()});
  ASSERT_TRUE(runner.ok()) << runner.status();
  const std::vector<float> images = Ramps(100, 6);
  const auto difference = (*runner)->Predict({.examples = 100, .inputs = {images}}, {}, true);
  ASSERT_TRUE(difference.ok()) << difference.status();
  EXPECT_NE(std::count(difference->begin(), difference->end(), 0.0f), 600);
}

TEST_P(AugmentationTest, DrawsFromTheWholeRange) {
  // What is added to zeros: 300 times -0.25 to 0.5.
  const Json brightness = LayerJson("RandomBrightness", "brightness",
                                    {{"factor", {-0.25, 0.5}}, {"value_range", {-100, 200}}});
  std::vector<float> drawn = Augment({brightness}, 1, 1, std::vector<float>(2000, 0), {});
  std::sort(drawn.begin(), drawn.end());
  EXPECT_GE(drawn.front(), -75);
  EXPECT_LT(drawn.front(), -70);
  EXPECT_LE(drawn.back(), 150);
  EXPECT_GT(drawn.back(), 145);
  EXPECT_NEAR(drawn[1000], 37.5, 16);  // 6 standard deviations of the median

  // The range of values cuts off.
  const Json high =
      LayerJson("RandomBrightness", "high", {{"factor", {0.1, 0.2}}, {"value_range", {7, 5}}});
  EXPECT_THAT(Augment({high}, 1, 1, std::vector<float>(20, 6.9f), {}), Each(7.0f));

  // One channel of -1 and 1, whose mean is 0: by 1 - 0.3 to 1 + 0.8.
  const Json contrast =
      LayerJson("RandomContrast", "contrast", {{"factor", {0.3, 0.8}}, {"value_range", {-9, 9}}});
  std::vector<float> images(2000);
  for (size_t i = 0; i < images.size(); ++i) images[i] = i % 2 == 0 ? -1 : 1;
  drawn = Augment({contrast}, 1, 2, images, {});
  EXPECT_NEAR(*std::max_element(drawn.begin(), drawn.end()), 1.8, 0.02);
  float least = 9;
  for (const float value : drawn) least = std::min(least, std::abs(value));
  EXPECT_NEAR(least, 0.7, 0.02);
}

TEST_P(AugmentationTest, MovesDownAndRight) {
  // By 0 to 4 of 8 rows, the ramp going on: what stands in row 7 came from row 3 at the furthest.
  const Json move =
      LayerJson("RandomTranslation", "move",
                {{"height_factor", {0, 0.5}}, {"width_factor", {0, 0}}, {"fill_mode", "nearest"}});
  const std::vector<float> moved = Augment({move}, 8, 1, Ramps(500, 8), {});
  float least = 9, most = -1;
  for (int64_t i = 0; i < 500; ++i) {
    least = std::min(least, moved[i * 8 + 7]);
    most = std::max(most, moved[i * 8 + 7]);
  }
  EXPECT_NEAR(least, 3, 0.1);
  EXPECT_NEAR(most, 7, 0.1);
}

TEST_P(AugmentationTest, CropsABatchAtOnePlace) {
  const Json crop = LayerJson("RandomCrop", "crop", {{"height", 2}, {"width", 3}});
  std::vector<int> places(12);
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const std::vector<float> cropped = Augment({crop}, 5, 5, Ramps(3, 25), {.seed = seed});
    const float first = cropped[0];
    for (int64_t i = 0; i < 3 * 6; ++i) {
      ASSERT_EQ(cropped[i], first + static_cast<float>(i % 6 / 3 * 5 + i % 3));
    }
    ASSERT_LT(static_cast<int>(first) / 5, 4);
    ASSERT_LT(static_cast<int>(first) % 5, 3);
    ++places[static_cast<int>(first) / 5 * 3 + static_cast<int>(first) % 5];
  }
  EXPECT_THAT(places, Each(::testing::Gt(0)));  // of each 17; none: once in 10^6
}

// What Keras 3.15 gives in training: RandomCrop(height, width) of (3, 4) pixels.
TEST_P(AugmentationTest, CropsSmallImagesAsKerasDoes) {
  std::vector<float> image = Ramps(1, 12);
  for (float& value : image) value = std::pow(value, 1.5f);
  const auto expect = [&](int64_t height, int64_t width, const std::vector<float>& expected) {
    const Json crop = LayerJson("RandomCrop", "crop", {{"height", height}, {"width", width}});
    for (const bool training : {true, false}) {
      ExpectNear(Augment({crop}, 3, 4, image, {.training = training}), expected, 1e-6, 0, "crop");
    }
  };
  expect(4, 3,
         {1, 2.8284271f, 5.1961522f, 7.3627119f, 10.246246f, 13.523719f, 17.112713f, 21.044128f,
          25.256239f, 27, 31.622776f, 36.482873f});
  expect(2, 6,
         {8, 9.59017f, 11.766439f, 14.110839f, 16.608599f, 18.520258f, 22.627417f, 24.813709f,
          27.770464f, 30.852314f, 34.052822f, 36.482873f});
  expect(5, 2,
         {1, 2.8284271f, 5.0721359f, 7.5758319f, 11.18034f, 14.696939f, 20.672138f, 24.852444f, 27,
          31.622776f});
  expect(3, 4, image);
}

// keras.ops.image.resize of the window that Keras documents.
TEST_P(AugmentationTest, CropsTheMiddleInInference) {
  const auto expect = [&](int64_t height, int64_t width, const std::vector<float>& expected) {
    const Json crop = LayerJson("RandomCrop", "crop", {{"height", height}, {"width", width}});
    ExpectNear(Augment({crop}, 6, 9, Ramps(1, 54), {.training = false}), expected, 1e-6, 0, "crop");
  };
  expect(4, 4,
         {3.5f, 5, 6.5f, 8, 17, 18.5f, 20, 21.5f, 30.5f, 32, 33.5f, 35, 44, 45.5f, 47, 48.5f});
  expect(2, 5, {11.65f, 13.45f, 15.25f, 17.05f, 18.85f, 25.15f, 26.95f, 28.75f, 30.55f, 32.35f});
  expect(5, 3,
         {3.9f, 4.9f, 5.9f, 14.7f, 15.7f, 16.7f, 25.5f, 26.5f, 27.5f, 36.3f, 37.3f, 38.3f, 47.1f,
          48.1f, 49.1f});
}

INSTANTIATE_TEST_SUITE_P(Backends, AugmentationTest, ::testing::ValuesIn(TestedBackends()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace shoal
